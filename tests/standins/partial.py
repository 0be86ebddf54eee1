#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs on the stand-in cluster of which the trace tells the GPU's part only in part, each in another
way: whatever is missing, the report keeps its promises (promises.py), and says what is missing.

    partial.py --build BUILD [--only NAME] [--keep DIRECTORY]
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from promises import broken  # noqa: E402

STEPS = 24
DIE = ["--fault", "2", "--fault-rank", "1", "--fault-step"]


def coverage(report, name):
    return report["quality"]["coverage"].get(name, {"share": None, "note": ""})


def of(report, name):
    return [f for f in report["findings"] if f["id"] == name]


def whole(report):
    """What a run of which everything was seen says: the figures the others are held against."""
    overlap = report["overlap"]
    assert overlap["ranks"] == 4 and overlap["reason"] is None, overlap
    assert report["gpu_timeline"]["seen"] > 0.99 and report["kernels"]["seen"] > 0.99
    assert not of(report, "DATA.PARTIAL"), report["findings"]
    return {"compute": computes(report), "transfer": overlap["exposed_transfer_ms"],
            "nccl": nccl_per_kernel(report)}


def computes(report):
    return [rank["median_compute_ms"] for rank in report["distributed"]["ranks"]]


def nccl_per_kernel(report):
    """By numbers: how long collectives take has waiting in it, and that the load of this machine."""
    counts = {c["category"]: c["count"] for c in report["kernels"]["by_category"]}
    return counts["NCCL"] / sum(n for name, n in counts.items()
                                if name not in ("NCCL", "memcpy", "memset"))


def near(value, wanted, allowed):
    assert value is not None and abs(value - wanted) <= allowed, (value, wanted)


def as_whole(report, truth):
    """What is known of a part is that of the whole: steps are alike. How long ranks wait for each
    other, and for this machine, is not."""
    for own, other in zip(computes(report), truth["compute"]):
        near(own, other, 0.05 * other)
    if report["overlap"]["exposed_transfer_ms"] is not None:
        near(report["overlap"]["exposed_transfer_ms"], truth["transfer"], 0.25 * truth["transfer"])
    near(nccl_per_kernel(report), truth["nccl"], 0.1 * truth["nccl"])
    assert report["gpu_timeline"]["busy_fraction"] > 0.6, report["gpu_timeline"]


def nothing_of_kernels(report):
    for part in ("overlap", "gpu_timeline", "critical_path"):
        assert report[part]["reason"], part
    assert report["overlap"]["exposed_ms"] is None and report["phases"]["comm_ms"] is None
    assert coverage(report, "kernel times")["share"] == 0
    assert "NO KERNEL TIMES" in coverage(report, "kernel times")["note"]
    assert [line["name"] for line in report["budget"]["lines"]] == ["not seen"]


def only_collectives(report, truth):
    nothing_of_kernels(report)
    assert coverage(report, "collective times")["share"] == 1
    assert "ONLY COLLECTIVES WERE TIMED" in report["kernels"]["reason"], report["kernels"]
    assert all(c["share"] is None for c in report["kernels"]["by_category"])
    assert "all work but collectives" in of(report, "DATA.PARTIAL")[0]["title"]


def host_only(reason, remedy):
    def check(report, truth):
        nothing_of_kernels(report)
        assert "NO COLLECTIVE TIMES" in coverage(report, "collective times")["note"]
        found = of(report, "DATA.PARTIAL")
        assert "COMMUNICATION TIMES ARE MISSING" in [f["title"] for f in found], found
        assert all(reason in f["evidence"] and remedy in f["action"] for f in found), found
        assert report["distributed"]["stragglers"] == [] and not report["distributed"]["n_steps"]
        assert report["kernels"]["by_category"] == []
    return check


def some_steps(report, truth):
    assert 0 < report["overlap"]["steps"] < report["steps"]["count"] - 4
    assert 0 < report["gpu_timeline"]["seen"] < 0.9 and 0 < report["kernels"]["seen"] < 0.9
    as_whole(report, truth)


def overwritten(report, truth):
    some_steps(report, truth)
    assert coverage(report, "steps with kernels")["share"] < 0.9


def half_of_the_steps(report, truth):
    some_steps(report, truth)
    assert coverage(report, "steps whose GPU time was taken")["share"] < 0.9
    assert any("of the steps" in f["title"] for f in of(report, "DATA.PARTIAL"))


def no_whole_step(report, truth):
    assert report["overlap"]["exposed_ms"] is None
    assert "NO STEP WAS WATCHED" in report["overlap"]["reason"], report["overlap"]
    assert "NO STEP WAS WATCHED" in report["critical_path"]["reason"]
    assert any("TSCOPE_GPU_STEPS" in f["action"] for f in of(report, "DATA.PARTIAL"))


def graphs_as_a_whole(report, truth):
    """Communication inside is not computation: only steps before the first graph count."""
    for own, other in zip(computes(report), truth["compute"]):
        near(own, other, 0.05 * other)
    assert report["overlap"]["exposed_transfer_ms"] > 0.9 * truth["transfer"], report["overlap"]
    assert 0 < report["overlap"]["steps"] <= 8, report["overlap"]
    assert report["gpu_timeline"]["total_ms"] is None and report["gpu_timeline"]["reason"]
    assert "SOME COLLECTIVES ARE MISSING" in report["kernels"]["note"]
    assert coverage(report, "steps with times of all collectives")["share"] < 0.5


def killed(report, truth):
    """What CUPTI had not handed over is not idle time."""
    some_steps(report, truth)
    assert coverage(report, "launch calls")["share"] > 0.95
    assert "did not end normally" in report["quality"]["gpu_timing"]
    assert any("did not end normally" in f["title"] for f in of(report, "DATA.PARTIAL"))


def one_rank_blind(report, truth):
    """Rank 2 has no GPU times: means are over the three others, and it is named."""
    assert report["overlap"]["ranks"] == 3 and report["gpu_timeline"]["ranks"] == 3
    assert report["kernels"]["ranks"] == 3
    assert report["overlap"]["by_rank"][2]["exposed_ms"] is None
    assert report["overlap"]["by_rank"][2]["comm_ms"] is None
    assert report["distributed"]["ranks"][2]["mean_compute_ms"] is None
    assert report["distributed"]["stragglers"] == []
    titles = [f["title"] for f in of(report, "DATA.PARTIAL")]
    assert "COMMUNICATION TIMES ARE MISSING ON rank 2" in titles, titles
    assert all(f["ranks"] == [2] for f in of(report, "DATA.PARTIAL")), report["findings"]
    assert "rank 2: host only" in report["quality"]["gpu_timing"], report["quality"]
    assert report["overlap"]["exposed_wait_ms"] is None


def one_rank_missing(report, truth):
    assert report["quality"]["partial_ranks"] == [2], report["quality"]
    found = of(report, "DATA.PARTIAL")[0]
    assert found["severity"] == "critical" and found["ranks"] == [2], found
    assert coverage(report, "ranks")["share"] == 0.75
    assert "none among the 3 OF 4 RANKS FOUND" in report["text"]
    assert "TRANSFER HOLDS WAITING FOR RANKS NOT FOUND" in report["text"]
    assert coverage(report, "matched collectives")["share"] == 0
    assert report["overlap"]["ranks"] == 3


def one_rank_cut(report, truth):
    assert 2 in report["quality"]["partial_ranks"]
    titles = [f["title"] for f in of(report, "DATA.PARTIAL")]
    assert "The trace of 1 rank is damaged" in titles, titles
    assert not any("did not end normally" in title for title in titles), titles


def alone(report, truth):
    """One rank: nothing to communicate with, and nothing is missing."""
    assert not of(report, "DATA.PARTIAL"), report["findings"]
    assert "collective times" not in report["quality"]["coverage"]
    assert report["gpu_timeline"]["seen"] > 0.99


def last_words(report, truth):
    """The retained was full: later collectives are not known, and that is counted."""
    assert report["quality"]["lost"] > 0 and of(report, "DATA.PARTIAL")
    clock = report["quality"]["clock"] # as calls and their runs still belong together
    assert clock["aligned"] and clock["residual_us"] < 100, clock
    as_whole(report, truth)


def too_few_to_repeat(report, truth):
    """Eight collectives of one kind are not eight steps."""
    assert report["steps"]["count"] in (0, 2), report["steps"]


def no_steps(report, truth):
    """Start-up cannot be told from training."""
    assert report["steps"]["count"] == 0, report["steps"]
    assert all(f["severity"] == "info" and f["worth_s"] is None
               for f in of(report, "EFFICIENCY.RECOVERABLE")), report["findings"]
    assert not any("each step" in f["title"] for f in report["findings"]), report["findings"]


# options, environment, environment of rank 2 alone, what to do to the traces, what must be so
CASES = {
    "whole": ([], {}, {}, None, None),
    "events": ([], {"TSCOPE_GPU": "events"}, {}, None, only_collectives),
    "host": ([], {"TSCOPE_GPU": "host"}, {}, None, host_only("TSCOPE_GPU=host", "Unset TSCOPE_GPU")),
    "one-connection": ([], {"TSCOPE_GPU": "events", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {}, None,
                       host_only("CUDA_DEVICE_MAX_CONNECTIONS", "CUPTI")),
    "other-tool": ([], {"CUDA_INJECTION64_PATH": "/opt/tool/libtool.so"}, {}, None,
                   host_only("CUDA_INJECTION64_PATH", "CUDA_INJECTION64_PATH")),
    # Enough for dozens of steps: with two or three, the part of a step at the edge decides the counts.
    "ring": (["--steps", "120"], {"TSCOPE_RING_MAX": "256K"}, {}, None, overwritten),
    "retained-full": (["--steps", "200"], {"TSCOPE_RETAINED_MAX": "128K"}, {}, None, last_words),
    "duty": (["--steps", "64", "--marks", "1", "--warmup", "0", "--ahead", "1"],
             {"TSCOPE_GPU_STEPS": "8/16"}, {}, None, half_of_the_steps),
    "duty-too-short": (["--steps", "48", "--marks", "1", "--warmup", "0", "--ahead", "1"],
                       {"TSCOPE_GPU_STEPS": "1/8"}, {}, None, no_whole_step),
    "graphs-whole": (["--graph", "8"], {"TSCOPE_GPU_GRAPHS": "whole"}, {}, None, graphs_as_a_whole),
    "no-driver": ([], {"TSCOPE_DRIVER": "off"}, {}, None, as_whole),
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


def start(build, folder, options, env, env2):
    base = {key: value for key, value in os.environ.items()
            if not key.startswith(("TSCOPE", "STANDIN", "SKEW", "RANK", "CUDA_"))}
    ranks = 1 if "--ranks" in options else 4
    base.update({"LD_PRELOAD": os.path.join(build, "preload", "libtscope.so"),
                 "TSCOPE_DIR": os.path.join(folder, "traces"), "TSCOPE_RUN": "partial",
                 "STANDIN_RENDEZVOUS": folder, "WORLD_SIZE": str(ranks), "STANDIN_LINK_GBPS": "0.5",
                 "STANDIN_LATENCY_US": "20", **env})
    command = [os.path.join(build, "tests", "standins", "train"), "--steps", str(STEPS), *options]
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL,
                             env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                  **(env2 if rank == 2 else {})})
            for rank in range(ranks)]


def finish(ranks, dies):
    """Waits for all, or, where rank 1 dies, for its end: the others then wait for it for ever."""
    try:
        if dies:
            ranks[1].wait(timeout=60)
        else:
            for rank in ranks:
                assert rank.wait(timeout=60) == 0
    finally:
        for rank in ranks:
            rank.send_signal(signal.SIGKILL)
        for rank in ranks:
            rank.wait()


def trace_of(folder, pid):
    run = os.path.join(folder, "traces", "partial")
    return next(os.path.join(run, name) for name in os.listdir(run) if f"-{pid}-" in name)


def look(build, folder, name):
    options, env, env2, harm, check = CASES[name]
    ranks = start(build, folder, options, env, env2)
    finish(ranks, "--fault" in options)
    if harm == "remove":
        os.unlink(trace_of(folder, ranks[2].pid))
    elif harm == "cut":
        path = trace_of(folder, ranks[2].pid)
        os.truncate(path, os.path.getsize(path) * 2 // 3)
    tool = [os.path.join(build, "analyzer", "tscope-report")]
    traces = os.path.join(folder, "traces")
    text = subprocess.run([*tool, traces], capture_output=True, check=True, text=True).stdout
    with open(os.path.join(folder, "report.txt"), "w", encoding="utf-8") as out:
        out.write(text)
    document = subprocess.run([*tool, "--format", "json", traces], capture_output=True, check=True,
                              text=True).stdout
    wrong = broken(document, text)
    assert not wrong, "\n  ".join(["promises are broken:", *wrong])
    return {**json.loads(document), "text": text}, check


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", choices=sorted(CASES))
    parser.add_argument("--keep", help="leave traces and reports there")
    options = parser.parse_args()
    failed, truth = 0, None
    for name in CASES:
        if options.only not in (None, "whole", name) and name != "whole":
            continue
        folder = tempfile.mkdtemp(prefix="tscope-partial-")
        if options.keep:
            shutil.rmtree(folder)
            folder = os.path.join(options.keep, name)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        try:
            report, check = look(os.path.abspath(options.build), folder, name)
            if name == "whole":
                truth = whole(report)
            elif check:
                check(report, truth)
            print(f"ok     {name}", flush=True)
        except AssertionError as error:
            failed += 1
            where = error.__traceback__
            while where.tb_next:
                where = where.tb_next
            print(f"FAILED {name}: line {where.tb_lineno}: {error}", flush=True)
        finally:
            if not options.keep:
                shutil.rmtree(folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())
