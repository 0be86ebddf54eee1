#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs on the stand-in cluster whose trace lacks some of the GPU's work, each for another reason.
Whatever is missing, the report keeps its promises (promises.py) and says what is missing.

    partial.py --build BUILD [--repeat N] [--keep DIR] [CASE...]
"""
import functools
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from built import built  # noqa: E402
from findings import findings_of  # noqa: E402
from observed import run  # noqa: E402
from promises import broken  # noqa: E402
from read_trace import paths_under  # noqa: E402
from repeated import main  # noqa: E402
from standin_job import StandinJob  # noqa: E402
from summaries import report_on  # noqa: E402

STEPS = 24
DIE = ["--fault", "2", "--fault-rank", "1", "--fault-step"]


def coverage(report, name):
    return report["quality"]["coverage"].get(name, {"share": None, "note": ""})


def whole(report, truth=None):
    """A run with a complete trace; returns the figures that the other runs are compared with."""
    overlap = report["overlap"]
    assert overlap["ranks"] == 4 and overlap["reason"] is None, overlap
    assert report["gpu_timeline"]["seen"] > 0.99 and report["kernels"]["seen"] > 0.99
    assert not findings_of(report, "DATA.PARTIAL"), report["findings"]
    return {"compute": computes(report), "transfer": overlap["exposed_transfer_ms"],
            "nccl": nccl_per_kernel(report)}


def computes(report):
    return [rank["median_compute_ms"] for rank in report["distributed"]["ranks"]]


def nccl_per_kernel(report):
    """The ratio of counts, not of times: the times of collectives include waits, and those depend on the
    load of this machine."""
    counts = {c["category"]: c["count"] for c in report["kernels"]["by_category"]}
    return counts["communication"] / sum(n for name, n in counts.items()
                                if name not in ("communication", "memcpy", "memset"))


def near(value, wanted, allowed):
    assert value is not None and abs(value - wanted) <= allowed, (value, wanted)


def same_as_whole(report, truth):
    """All steps are alike, so the figures of a part are those of the whole. This does not hold for the
    time that ranks wait for each other or for this machine."""
    for own, other in zip(computes(report), truth["compute"]):
        near(own, other, 0.05 * other)
    if report["overlap"]["exposed_transfer_ms"] is not None:
        near(report["overlap"]["exposed_transfer_ms"], truth["transfer"], 0.25 * truth["transfer"])
    near(nccl_per_kernel(report), truth["nccl"], 0.1 * truth["nccl"])
    assert report["gpu_timeline"]["busy_fraction"] > 0.6, report["gpu_timeline"]


def no_kernel_times(report):
    for part in ("overlap", "gpu_timeline", "critical_path"):
        assert report[part]["reason"], part
    assert report["overlap"]["exposed_ms"] is None and report["phases"]["comm_ms"] is None
    assert coverage(report, "kernel times")["share"] == 0
    assert "NO KERNEL TIMES" in coverage(report, "kernel times")["note"]
    assert [line["name"] for line in report["budget"]["lines"]] == ["not seen"]


def only_collectives(report, truth):
    no_kernel_times(report)
    assert coverage(report, "collective times")["share"] == 1
    assert "ONLY COLLECTIVES WERE TIMED" in report["kernels"]["reason"], report["kernels"]
    assert all(c["share"] is None for c in report["kernels"]["by_category"])
    assert "all work but collectives" in findings_of(report, "DATA.PARTIAL")[0]["title"]


def host_only(reason, remedy):
    def check(report, truth):
        no_kernel_times(report)
        assert "NO COLLECTIVE TIMES" in coverage(report, "collective times")["note"]
        found = findings_of(report, "DATA.PARTIAL")
        assert "COMMUNICATION TIMES ARE MISSING" in [f["title"] for f in found], found
        assert all(reason in f["evidence"] and remedy in f["action"] for f in found), found
        assert report["distributed"]["stragglers"] == [] and not report["distributed"]["n_steps"]
        assert report["kernels"]["by_category"] == []
    return check


def some_steps(report, truth):
    assert 0 < report["overlap"]["steps"] < report["steps"]["count"] - 4
    assert 0 < report["gpu_timeline"]["seen"] < 0.9 and 0 < report["kernels"]["seen"] < 0.9
    same_as_whole(report, truth)


def overwritten(report, truth):
    some_steps(report, truth)
    assert coverage(report, "steps with kernels")["share"] < 0.9


def half_of_the_steps(report, truth):
    some_steps(report, truth)
    assert coverage(report, "steps whose GPU time was taken")["share"] < 0.9
    assert any("of the steps" in f["title"] for f in findings_of(report, "DATA.PARTIAL"))


def no_whole_step(report, truth):
    assert report["overlap"]["exposed_ms"] is None
    assert "NO STEP WAS WATCHED" in report["overlap"]["reason"], report["overlap"]
    assert "NO STEP WAS WATCHED" in report["critical_path"]["reason"]
    assert any("TSCOPE_GPU_STEPS" in f["action"] for f in findings_of(report, "DATA.PARTIAL"))


def one_record_per_graph(report, truth):
    """The communication in a graph must not count as computation: only the steps before the first graph
    have figures."""
    for own, other in zip(computes(report), truth["compute"]):
        near(own, other, 0.05 * other)
    assert report["overlap"]["exposed_transfer_ms"] > 0.9 * truth["transfer"], report["overlap"]
    assert 0 < report["overlap"]["steps"] <= 8, report["overlap"]
    assert report["gpu_timeline"]["total_ms"] is None and report["gpu_timeline"]["reason"]
    assert "SOME COLLECTIVES ARE MISSING" in report["kernels"]["note"]
    assert coverage(report, "steps with times of all collectives")["share"] < 0.5


def killed(report, truth):
    """Work whose records CUPTI had not delivered must not count as idle time."""
    some_steps(report, truth)
    assert coverage(report, "launch calls")["share"] > 0.95
    assert "did not end normally" in report["quality"]["gpu_timing"]
    assert any("did not end normally" in f["title"] for f in findings_of(report, "DATA.PARTIAL"))


def one_rank_blind(report, truth):
    """Rank 2 has no GPU times: means are over the three other ranks, and the report names rank 2."""
    assert report["overlap"]["ranks"] == 3 and report["gpu_timeline"]["ranks"] == 3
    assert report["kernels"]["ranks"] == 3
    assert report["overlap"]["by_rank"][2]["exposed_ms"] is None
    assert report["overlap"]["by_rank"][2]["comm_ms"] is None
    assert report["distributed"]["ranks"][2]["mean_compute_ms"] is None
    assert report["distributed"]["stragglers"] == []
    titles = [f["title"] for f in findings_of(report, "DATA.PARTIAL")]
    assert "COMMUNICATION TIMES ARE MISSING ON rank 2" in titles, titles
    assert all(f["ranks"] == [2] for f in findings_of(report, "DATA.PARTIAL")), report["findings"]
    assert "rank 2: host only" in report["quality"]["gpu_timing"], report["quality"]
    assert report["overlap"]["exposed_wait_ms"] is None


def one_rank_missing(report, truth):
    assert report["quality"]["partial_ranks"] == [2], report["quality"]
    found = findings_of(report, "DATA.PARTIAL")[0]
    assert found["severity"] == "critical" and found["ranks"] == [2], found
    assert coverage(report, "ranks")["share"] == 0.75
    assert "none among the 3 OF 4 RANKS FOUND" in report["text"]
    assert "TRANSFER HOLDS WAITING FOR RANKS NOT FOUND" in report["text"]
    assert coverage(report, "matched collectives")["share"] == 0
    assert report["overlap"]["ranks"] == 3


def one_rank_cut(report, truth):
    assert 2 in report["quality"]["partial_ranks"]
    titles = [f["title"] for f in findings_of(report, "DATA.PARTIAL")]
    assert "The trace of 1 rank is damaged" in titles, titles
    assert not any("did not end normally" in title for title in titles), titles


def alone(report, truth):
    """A single rank does not communicate, so nothing is missing."""
    assert not findings_of(report, "DATA.PARTIAL"), report["findings"]
    assert "collective times" not in report["quality"]["coverage"]
    assert report["gpu_timeline"]["seen"] > 0.99


def retained_ring_full(report, truth):
    """The retained records reached their limit: later collectives are lost, and the loss is counted."""
    assert report["quality"]["lost"] > 0 and findings_of(report, "DATA.PARTIAL")
    clock = report["quality"]["clock"] # because calls are still matched with their runs
    assert clock["aligned"] and clock["residual_us"] < 100, clock
    same_as_whole(report, truth)


def too_few_to_repeat(report, truth):
    """Eight collectives of one kind must not be taken for eight steps."""
    assert report["steps"]["count"] in (0, 2), report["steps"]


def no_steps(report, truth):
    """The report cannot distinguish start-up from training."""
    assert report["steps"]["count"] == 0, report["steps"]
    assert all(f["severity"] == "info" and f["saving_s"] is None
               for f in findings_of(report, "EFFICIENCY.RECOVERABLE")), report["findings"]
    assert not any("each step" in f["title"] for f in report["findings"]), report["findings"]


# options, environment, additional environment of rank 2, damage to the traces, check of the report
CASES = {
    "whole": ([], {}, {}, None, whole),
    "events": ([], {"TSCOPE_GPU": "events"}, {}, None, only_collectives),
    "host": ([], {"TSCOPE_GPU": "host"}, {}, None, host_only("TSCOPE_GPU=host", "Unset TSCOPE_GPU")),
    "one-connection": ([], {"TSCOPE_GPU": "events", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {}, None,
                       host_only("CUDA_DEVICE_MAX_CONNECTIONS", "CUPTI")),
    "other-tool": ([], {"CUDA_INJECTION64_PATH": "/opt/tool/libtool.so"}, {}, None,
                   host_only("CUDA_INJECTION64_PATH", "CUDA_INJECTION64_PATH")),
    # Enough for dozens of steps. With two or three, the partial step at the edge would dominate the counts.
    "ring": (["--steps", "160"], {"TSCOPE_RING_MAX": "256K"}, {}, None, overwritten),
    "retained-full": (["--steps", "250"], {"TSCOPE_RETAINED_MAX": "320K"}, {}, None, retained_ring_full),
    "duty": (["--steps", "64", "--marks", "1", "--warmup", "0", "--ahead", "1"],
             {"TSCOPE_GPU_STEPS": "8/16"}, {}, None, half_of_the_steps),
    "duty-too-short": (["--steps", "48", "--marks", "1", "--warmup", "0", "--ahead", "1"],
                       {"TSCOPE_GPU_STEPS": "1/8"}, {}, None, no_whole_step),
    "graphs-whole": (["--graph", "8"], {"TSCOPE_GPU_GRAPHS": "whole"}, {}, None, one_record_per_graph),
    "no-driver": ([], {"TSCOPE_DRIVER": "off"}, {}, None, same_as_whole),
    "killed": ([*DIE, "40", "--steps", "100000"], {}, {}, None, killed),
    "one-rank-blind": ([], {}, {"TSCOPE_GPU": "host"}, None, one_rank_blind),
    "one-rank-events": ([], {}, {"TSCOPE_GPU": "events"}, None, None),
    "one-rank-missing": ([], {}, {}, "remove", one_rank_missing),
    "one-rank-cut": ([], {}, {}, "cut", one_rank_cut),
    "alone": (["--ranks", "1"], {}, {}, None, alone),
    "two-steps": (["--steps", "2"], {}, {}, None, too_few_to_repeat),
    "one-step": (["--steps", "1"], {}, {}, None, no_steps),
    "no-common-collective": (["--alone", "1"], {}, {}, None, None),
}
# What is compared with the whole run.
COMPARED = {"ring", "retained-full", "duty", "graphs-whole", "no-driver", "killed"}


def start(build, folder, options, env, env2):
    return StandinJob(build, folder, "--steps", str(STEPS), *options, run="partial", ranks=1 if "--ranks" in options else 4,
               of_rank={2: env2}, stderr=None, **env)


def finish(job, dies):
    """Waits for all ranks. If rank 1 dies, waits only for rank 1, because the others then wait for ever."""
    try:
        if dies:
            job.ranks[1].wait(timeout=60)
        else:
            assert not any(job.wait(60))
    finally:
        job.end()


def trace_of(job, rank):
    return next(path for path in paths_under(job.run) if f"-{job.ranks[rank].pid}-" in path)


def run_case(build, folder, name):
    options, env, env2, damage, _ = CASES[name]
    job = start(build, folder, options, env, env2)
    finish(job, "--fault" in options)
    if damage == "remove":
        os.unlink(trace_of(job, 2))
    elif damage == "cut":
        path = trace_of(job, 2)
        os.truncate(path, os.path.getsize(path) * 2 // 3)
    tool = built(build, "tscope-report")
    text = run(tool, job.traces).stdout
    with open(os.path.join(folder, "report.txt"), "w", encoding="utf-8") as out:
        out.write(text)
    document = report_on(tool, job.traces)
    wrong = broken(json.dumps(document), text)
    assert not wrong, "\n  ".join(["promises are broken:", *wrong])
    return {**document, "text": text}


@functools.cache
def truth_of(build):
    with tempfile.TemporaryDirectory(prefix="tscope-whole-") as folder:
        return whole(run_case(build, folder, "whole"))


def check(name, build, folder):
    report, judge = run_case(build, folder, name), CASES[name][-1]
    if judge:
        judge(report, truth_of(build) if name in COMPARED else None)


if __name__ == "__main__":
    main(CASES, check)
