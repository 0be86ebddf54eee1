#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a scenario on the stand-in cluster under the shim, and compares the report with the truth that
the simulator logged.

    scenarios.py --build BUILD [--repeat N] [--keep DIR] [SCENARIO...]
    scenarios.py --list

Every figure must be right within 3 % or 100 us per step, whichever is larger; communication by kernels
of other libraries than NCCL within 1 %, or 20 us.
"""
import json
import os
import subprocess
import sys
from statistics import median

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from built import built  # noqa: E402
from observed import EMULATOR, clean_environment, observed_environment  # noqa: E402
from outcomes import expect  # noqa: E402
from promises import broken  # noqa: E402
from repeated import main  # noqa: E402
from summaries import report_on  # noqa: E402
from truth import Truth  # noqa: E402

STEPS = 40

# Offsets of seconds, drifts of up to 50 ppm in both directions, and a host name for each rank. Over a
# hundred steps the drifts alone put the clocks 230 us apart.
HOSTILE = {
    "SKEW_OFFSET_NS": "0,7300000000,-4100000000,2500000000",
    "SKEW_DRIFT_PPM": "0,50,-50,25",
    "SKEW_HOSTS": "1",
}

SLOW_STAGE = ["--slow-factor", "1.5", "--slow-stage"]

# Slow enough that GEMMs take a large part of the step and are longer than the gaps around them.
GEMMS = {"STANDIN_TFLOPS": "10", "STANDIN_GPU_NAME": "NVIDIA H100 80GB HBM3"}
JITTER = 0.2
LAYERS, RANKS, OF_EACH = 8, 4, 2
# The shapes of train_gemms.c, and the dense peak of an H100.
SHAPES = {"bf16/fp16": ((2048, 1024, 1024), 989e12), "tf32": ((1024, 1024, 1024), 494.5e12),
          "fp32": ((1024, 512, 1024), 67e12)}

# Communication that runs as kernels of other libraries (train --family): a slow rank, a rank that is late,
# and overlap by turns; and what the report calls their operations.
SLOW, LATE, SERIAL = (["--slow-rank", "2", "--slow-factor", "1.25"], {"straggler": 2}), \
    (["--input-ms", "8", "--ahead", "1", "--slow-input-rank", "1"], {"straggler": 1}), \
    (["--overlap", "0"], {})
FAMILIES = {
    "deepep": (*SLOW, {"DeepEP layout", "DeepEP notify", "DeepEP dispatch", "DeepEP combine"}),
    "deepep-intranode": (*LATE, {"DeepEP notify", "DeepEP dispatch", "DeepEP combine"}),
    "deepep-low-latency": (*SERIAL, {"DeepEP dispatch", "DeepEP combine"}),
    "nccl-ep": (*SLOW, {"NCCL EP dispatch", "NCCL EP combine"}),
    "mori": (*LATE, {"MORI dispatch", "MORI combine"}),
    "symmetric": (*SLOW, {"symm_mem all_reduce"}),
    "symmetric-multimem": (*SERIAL, {"symm_mem all_reduce", "symm_mem barrier"}),
    "nvshmem": (*LATE, {"NVSHMEM reduce", "NVSHMEM barrier"}),
    "userbuffers": (*SLOW, {"userbuffers reduce_scatter", "userbuffers all_gather"}),
    "vllm": (*LATE, {"custom all_reduce"}),
    "sglang": (*SERIAL, {"custom all_reduce"}),
    "quick": (*SLOW, {"quick all_reduce"}),
    "tensorrt": (*LATE, {"TensorRT-LLM all_reduce"}),
    "tensorrt-experts": (*SLOW, {"TensorRT-LLM layout", "TensorRT-LLM dispatch",
                                 "TensorRT-LLM combine"}),
    "flashinfer": (*SERIAL, {"FlashInfer all_reduce and norm"}),
    "mscclpp": (*SLOW, {"MSCCL++ all_reduce"}),
    "torchcomms": (*LATE, {"torchcomms all_reduce"}),
    "device-api": (*SLOW, {"all_reduce on NCCL's device API"}),
}

# options of the training program, environment, and what is checked in addition to the usual figures
SCENARIOS = {
    "data-parallel": {"options": []},
    "cuda13": {"options": [], "train": "train13"},
    "slow-rank": {"options": ["--slow-rank", "2", "--slow-factor", "1.25"], "straggler": 2},
    "slow-link": {"options": ["--slow-link", "1-2:0.2"]},
    "slow-input": {"options": ["--input-ms", "8", "--ahead", "1"]},
    "slow-input-one-rank": {"options": ["--input-ms", "8", "--ahead", "1",
                                        "--slow-input-rank", "1"],
                            "straggler": 1},
    "no-overlap": {"options": ["--overlap", "0"]},
    "pipeline": {"options": ["--pipeline", "4", "--micro-batches", "6"], "pipeline": (4, 6)},
    "pipeline-data": {"options": ["--pipeline", "2"], "pipeline": (2, 4)},
    "pipeline-slow-stage": {"options": ["--pipeline", "4", "--micro-batches", "6", *SLOW_STAGE, "2"],
                            "pipeline": (4, 6), "slow_stages": [2]},
    "pipeline-two-slow-stages": {"options": ["--pipeline", "4", "--micro-batches", "6", *SLOW_STAGE, "1", "--slow-stage-too", "3"],
                                 "pipeline": (4, 6), "slow_stages": [1, 3]},
    "pipeline-data-slow-stage": {"options": ["--pipeline", "2", *SLOW_STAGE, "1"], "pipeline": (2, 4), "slow_stages": [1]},
    "pipeline-interleaved": {"options": ["--steps", "12", "--pipeline", "4", "--micro-batches", "8", "--schedule", "1"],
                             "pipeline": (4, 8), "chunks": 2},
    "pipeline-interleaved-slow-stage": {"options": ["--steps", "12", "--pipeline", "4", "--micro-batches", "8", "--schedule", "1",
                                                    *SLOW_STAGE, "1"],
                                        "pipeline": (4, 8), "chunks": 2, "slow_stages": [1]},
    "pipeline-zero-bubble": {"options": ["--pipeline", "4", "--micro-batches", "8", "--schedule", "2"],
                             "pipeline": (4, 8)},
    "pipeline-zero-bubble-slow-stage": {"options": ["--pipeline", "2", "--schedule", "2", *SLOW_STAGE, "0"],
                                        "pipeline": (2, 4), "slow_stages": [0]},
    "tensor": {"options": ["--tensor", "2"]},
    "experts-all": {"options": ["--experts", "1", "--loss", "0", "--marks", "1", "--tensor", "4"],
                    "family": {"all_to_all"}},
    **{f"experts-{name}": {"options": ["--experts", "1", "--loss", "0", "--marks", "1", "--tensor", "2", *SLOW[0], *more],
                           "family": {"all_to_all", "all_reduce"}, **SLOW[1]}
       for name, more in {"of-two": [], "graph": ["--graph", "8"]}.items()},
    "hostile-clocks": {"options": ["--steps", "100"], "env": HOSTILE, "hostile": True},
    "hostile-clocks-slow-rank": {"options": ["--slow-rank", "1", "--slow-factor", "1.25"],
                                 "env": HOSTILE, "hostile": True, "straggler": 1},
    "graph": {"options": ["--graph", "8"]},
    "graph-slow-rank": {"options": ["--graph", "8", "--slow-rank", "2", "--slow-factor", "1.25"],
                        "straggler": 2},
    "graph-tensor": {"options": ["--graph", "8", "--tensor", "2", "--bucket-kb", "1024"]},
    "graph-pipeline": {"options": ["--graph", "8", "--pipeline", "2"], "pipeline": (2, 4)},
    "gpu-events": {"options": ["--slow-rank", "2", "--slow-factor", "1.25"],
                   "env": {"TSCOPE_GPU": "events"}, "timing": "events"},
    "gpu-events-groups": {"options": ["--pipeline", "2"], "env": {"TSCOPE_GPU": "events"},
                          "timing": "events"},
    "gemms": {"options": ["--gemms", "2"], "env": GEMMS},
    "gemms-no-tf32": {"options": ["--gemms", "2"],
                         "env": {**GEMMS, "NVIDIA_TF32_OVERRIDE": "0"}},
    "gemms-graph": {"options": ["--gemms", "2", "--graph", "8"], "env": GEMMS},
    "gemms-events": {"options": ["--gemms", "2", "--steps", "60"], "timing": "events",
                        "env": {**GEMMS, "TSCOPE_GPU": "events",
                                "STANDIN_GEMM_JITTER": str(JITTER)}},
    "gpu-host-only": {"options": [], "env": {"TSCOPE_GPU": "host"}, "timing": "host"},
    "gpu-one-connection": {"options": [], "env": {"CUDA_DEVICE_MAX_CONNECTIONS": "1",
                                                  "TSCOPE_GPU": "events"}, "timing": "host"},
    "gpu-duty-cycle": {"options": ["--steps", "128", "--marks", "1", "--warmup", "0",
                                   "--ahead", "1"],
                       "env": {"TSCOPE_GPU_STEPS": "16/32"}, "timing": "duty"},
    "host-ahead": {"options": ["--marks", "1", "--ahead", "3", "--loss", "0"], "ahead": True},
    "host-ahead-slow-rank": {"options": ["--marks", "1", "--ahead", "3", "--loss", "0",
                                         "--slow-rank", "2", "--slow-factor", "1.25"],
                             "ahead": True, "straggler": 2},
    "host-never-waits": {"options": ["--marks", "1", "--ahead", "0", "--loss", "0"],
                         "ahead": True},
    "host-ahead-one-gpu": {"options": ["--ranks", "1", "--marks", "1", "--ahead", "3",
                                       "--loss", "0"], "ahead": True},
    "host-ahead-events": {"options": ["--marks", "1", "--ahead", "3", "--loss", "0"],
                          "env": {"TSCOPE_GPU": "events"}, "timing": "events"},
    "host-ahead-duty-cycle": {"options": ["--steps", "128", "--marks", "1", "--warmup", "0",
                                          "--ahead", "3", "--loss", "0"],
                              "env": {"TSCOPE_GPU_STEPS": "16/32"}, "timing": "duty"},
    **{f"family-{name}": {"options": ["--family", name, "--loss", "0", "--marks", "1"] + more,
                          "family": operations, **facts}
       for name, (more, facts, operations) in FAMILIES.items()},
    "family-hostile-clocks": {"options": ["--family", "deepep", "--loss", "0", "--marks", "1",
                                         "--steps", "100", *SLOW[0]],
                              "env": HOSTILE, "hostile": True, **SLOW[1]},
    "family-two-groups": {"options": ["--family", "symmetric", "--tensor", "2", "--loss", "0",
                                      "--marks", "1"], "family": {"symm_mem all_reduce"}},
    **{f"copy-engines-{name}": {"options": ["--gather", "1", "--loss", "0", "--marks", "1"] + more,
                                "env": {"NCCL_CTA_POLICY": "2"}, "family": {"all_gather"}, **facts}
       for name, (more, facts) in {"slow-rank": SLOW, "late-rank": LATE, "serial": SERIAL}.items()},
    "copy-engines-graph": {"options": ["--gather", "1", "--graph", "8", "--loss", "0", "--marks", "1", *SLOW[0]],
                           "env": {"NCCL_CTA_POLICY": "2"}, "family": {"all_gather"}, **SLOW[1]},
    "copy-engines-nodes": {"options": ["--gather", "1", "--loss", "0", "--marks", "1", *SLOW[0]],
                           "env": {"NCCL_CTA_POLICY": "2", "STANDIN_NODES": "2"}, "family": {"all_gather"}, **SLOW[1]},
    "peer-copies": {"options": ["--peer-kb", "512", "--loss", "0", "--marks", "1", *SLOW[0]],
                    "family": {"all_reduce", "copy between GPUs"}, **SLOW[1]},
    "copy-engines-events": {"options": ["--gather", "1", *SLOW[0]], "timing": "events",
                            "env": {"NCCL_CTA_POLICY": "2", "TSCOPE_GPU": "events"}},
    "no-common-collective": {"options": ["--alone", "1", "--ranks", "2"],
                             "env": {**HOSTILE, "SKEW_DRIFT_PPM": "0,50"}, "refused": True},
}


class Comparison:
    def __init__(self):
        self.wrong = 0
        print(f"{'':34} {'report':>12} {'truth':>12} {'allowed':>9}")

    def line(self, name, reported, truth, allowed, right):
        text = "null" if reported is None else f"{reported:12.4f}"
        print(f"{name:34} {text:>12} {truth:12.4f} {allowed:9.4f} {'' if right else '  <-- wrong'}")
        self.wrong += not right

    def ms(self, name, reported, truth_ns, more=0):
        truth = truth_ns / 1e6
        allowed = max(0.03 * abs(truth), 0.1) + more
        self.line(name, reported, truth, allowed,
                  reported is not None and abs(reported - truth) <= allowed)

    def share(self, name, reported, truth):
        self.line(name, reported, truth, 0.03,
                  reported is not None and abs(reported - truth) <= 0.03)

    def exactly(self, name, reported, truth):
        self.line(name, reported, truth, 0,
                  reported is not None and abs(reported - truth) <= 1e-6 * abs(truth))

    def equal(self, name, reported, wanted):
        if reported != wanted:
            self.wrong += 1
            print(f"{name}: {reported}, not {wanted}  <-- wrong")


def run_ranks(train, options, env, directory):
    """The training program starts its ranks itself. An emulated one cannot, so this function does."""
    if not EMULATOR:
        subprocess.run([train] + options, env=env, check=True, stdout=subprocess.DEVNULL)
        return
    ranks = [subprocess.Popen([*EMULATOR, train] + options,
                              env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                   "WORLD_SIZE": "2", "STANDIN_RENDEZVOUS": directory},
                              stdout=subprocess.DEVNULL) for rank in range(2)]
    if any([rank.wait() for rank in ranks]):
        sys.exit("a rank failed")


def reporter(build):
    """The tscope-report to run. For an emulated run, TSCOPE_REPORT may name that of the host machine."""
    path = os.environ.get("TSCOPE_REPORT")
    return [path] if path else [*EMULATOR, built(build, "tscope-report")]


def run(scenario, build, directory):
    log, traces = os.path.join(directory, "log"), os.path.join(directory, "traces")
    preload = [built(build, "libtscope.so")]
    if "SKEW_HOSTS" in scenario.get("env", {}):
        preload.insert(0, built(build, "libskewclock.so"))
    train = os.path.join(build, "tests", "standins", scenario.get("train", "train"))
    # the launcher is not a rank: it has no RANK, so its clocks are not changed
    env = observed_environment(" ".join(preload), traces, TSCOPE_RUN="scenario", STANDIN_LOG=log, **scenario.get("env", {}))
    os.makedirs(log, exist_ok=True)
    run_ranks(train, ["--steps", str(STEPS)] + scenario["options"], env, directory)
    made = report(build, directory) if EMULATOR else report_on(*reporter(build), traces)
    with open(os.path.join(directory, "report.json"), "w") as out:
        json.dump(made, out, indent=2)
    return made, Truth(log)


def report(build, directory, *options, form="json"):
    made = subprocess.run(
        [*reporter(build), "--format", form, *options, os.path.join(directory, "traces")],
        stdout=subprocess.PIPE, check=True, env=clean_environment(LC_ALL="C.UTF-8")).stdout.decode()
    return json.loads(made) if form == "json" else made


def broken_promises(build, directory, made):
    wrong = broken(json.dumps(made), report(build, directory, form="text"))
    for one in wrong:
        print(f"{one}  <-- wrong")
    return len(wrong)


def compare_steps(check, report, truth, steady, first, last):
    walls = sorted(sum(rank.steps[s][1] - rank.steps[s][0] for rank in truth.ranks) /
                   len(truth.ranks) for s in range(first, last))
    check.ms("steps.median_ms", report["steps"]["median_ms"], walls[len(walls) // 2])
    check.ms("distributed.mean_step_wall_ms", report["distributed"]["mean_step_wall_ms"],
             steady["step"])


def compare_overlap(check, overlap, steady):
    for field, key in {"comm_ms": "comm", "exposed_ms": "exposed",
                       "exposed_wait_ms": "exposed_wait",
                       "exposed_transfer_ms": "exposed_transfer"}.items():
        check.ms("overlap." + field, overlap[field], steady[key])
    by_rank = {entry["rank"]: entry for entry in overlap["by_rank"]}
    for rank in steady["ranks"]:
        check.ms(f"overlap.by_rank[{rank['rank']}].exposed_ms",
                 by_rank.get(rank["rank"], {}).get("exposed_ms"), rank["exposed"])


def compare_family(check, report, steady, operations):
    """The overlap to a percent, and the operations by name; nothing of it is taken for compute or NCCL's."""
    overlap = report["overlap"]
    for field, key in {"comm_ms": "comm", "exposed_ms": "exposed", "exposed_wait_ms": "exposed_wait",
                       "exposed_transfer_ms": "exposed_transfer"}.items():
        truth = steady[key] / 1e6
        allowed = max(0.01 * truth, 0.02)
        check.line(field + ", to a percent", overlap[field], truth, allowed,
                   overlap[field] is not None and abs(overlap[field] - truth) <= allowed)
    check.equal("operations", {row["op"] for row in overlap["by_collective"]}, operations)


def compare_compute(check, distributed, steady):
    by_rank = {entry["rank"]: entry for entry in distributed["ranks"]}
    for rank in steady["ranks"]:
        check.ms(f"ranks[{rank['rank']}].mean_compute_ms",
                 by_rank.get(rank["rank"], {}).get("mean_compute_ms"), rank["compute"])


def compare_path(check, path, steady):
    truth = steady["path"]
    categories = dict(path["by_category"] or {})
    total = path["length_ms"] or 0
    check.ms("critical_path.length_ms", path["length_ms"], truth["step"])
    named = {"compute": "compute", "communication": "communication", "memory copy": "copy"}
    rest, longer = total, abs(total - truth["step"] / 1e6)  # where it is cut; that is some category's
    for reported, key in named.items():
        value = categories.get(reported)
        rest -= value or 0
        check.ms(f"path {reported}", value, truth["by_category"][key], longer)
    check.ms("path all else", rest, truth["by_category"]["launch"] + truth["by_category"]["host"])


def compare_what_if(check, path, truth, first, last):
    what_if = truth.what_if(first, last)
    reported_ms = {entry["change"]: entry["step_ms"] for entry in path["what_if"]}
    if truth.meetings:
        check.ms("what if: communication free", reported_ms.get("communication takes no time"),
                 what_if["communication"])
    for number, step in what_if["ranks"].items():
        change = f"rank {number} as fast as its peers"
        if change in reported_ms:
            check.ms("what if: " + change, reported_ms[change], step)


def worth_naming(what_if, step, least=0.02):
    """Hosts without cores can make a step so long that a slow device hardly makes it longer."""
    return step < (1 - least) * what_if["unchanged"]


def compare_slow_stage(check, report, truth, scenario, first, last):
    """Slow stages are named, all of their ranks, and worth what a replay of the log says; no other is."""
    stages, slow = scenario["pipeline"][0], scenario.get("slow_stages", [])
    found = [f for f in report["findings"] if f["title"].startswith("Stage")]
    ranks = [rank.number for rank in truth.ranks if rank.number % stages in slow]
    what_if = truth.what_if(first, last, [ranks]) if ranks else {}
    worth = ranks and (found or worth_naming(what_if, what_if["groups"][0], 0.05))
    check.equal("stages that are named", [f["ranks"] for f in found], [ranks] if worth else [])
    if ranks:
        step = what_if["groups"][0]
        rows = {row["change"]: row["step_ms"] for row in report["critical_path"]["what_if"]}
        name = f"stage{'s'[len(slow) == 1:]} {', '.join(map(str, slow))}"
        check.ms(f"what if: {name}", rows.get(f"{name} as fast as the others"), step)


def compare_pipeline(check, pipeline, steady, stages, batches, chunks=1):
    """The bubble consists of the messages between stages and the waits. With one pipeline there is no
    other communication."""
    check.equal("pipeline.stages", pipeline["stages"], stages)
    check.equal("pipeline.microbatches", pipeline["microbatches"], batches)
    check.share("pipeline.inherent", pipeline["inherent"], (stages - 1) / (chunks * batches + stages - 1))
    if len(steady["ranks"]) == stages:
        compute = sum(rank["compute"] for rank in steady["ranks"])
        exposed = sum(rank["exposed"] for rank in steady["ranks"])
        check.share("pipeline.bubble", pipeline["bubble"], exposed / (compute + exposed))


def compare_gemms(check, report, truth, first, last, tf32=True):
    """Operations from the training program's schedule, times from the simulator's log."""
    gemms, budget, n = report["gemms"], report["budget"], last - first
    calls = 2 * LAYERS * OF_EACH  # per step, rank and shape: forward and backward
    by_precision = {row["precision"]: row for row in gemms["by_precision"]}
    wanted = {name: [peak, RANKS * calls * 2 * m * n_ * k]
              for name, ((m, n_, k), peak) in SHAPES.items()}
    if not tf32:
        wanted["fp32"][1] += wanted.pop("tf32")[1]
    check.equal("precisions", sorted(by_precision), sorted(wanted))
    total, at_peak = 0, 0
    for precision, (peak, flops) in wanted.items():
        total, at_peak = total + flops, at_peak + flops / RANKS / peak
        row = by_precision.get(precision, {})
        check.exactly(f"{precision}: GFLOP", (row.get("flops") or 0) / 1e9, flops / 1e9)
        check.exactly(f"{precision}: peak", row.get("peak_tflops"), peak / 1e12)
    check.exactly("budget.gemm_flops, GFLOP", (budget["gemm_flops"] or 0) / 1e9, total / 1e9)
    check.share("budget.hfu x step / time at peak", (budget["hfu"] or 0) / at_peak
                * report["distributed"]["mean_step_wall_ms"] / 1e3, 1)
    check.exactly("its parts", sum(row["hfu"] for row in by_precision.values()), budget["hfu"])
    ms = []
    for rank in truth.ranks:
        begin, end = rank.steps[first][0], rank.steps[last - 1][1]
        ms.append(sum(op.end - op.start for op in rank.order
                      if op.kind == "kernel" and begin < op.end <= end and is_gemm(op)) / n)
    check.ms("gemms.ms", gemms["ms"], sum(ms) / len(ms))
    check.exactly("gemms.covered", gemms["covered"], 1)
    check.share("gemms.tflops", (gemms["tflops"] or 0) / 10, 1)
    return sum(ms) / len(ms)


def is_gemm(op):
    return op.name.startswith(("nvjet", "sm80_xmma_gemm"))


def compare_gemms_of_kernels(check, report, steady, gemm_ns):
    """All kernels were seen, so the GEMMs' share of them is known."""
    gemms = report["gemms"]
    check.equal("how", gemms["how"], "their kernels")
    check.equal("sampled", gemms["sampled"], False)
    check.equal("timed", gemms["timed"], gemms["calls"])
    check.share("budget.hfu_coverage", report["budget"]["hfu_coverage"],
                gemm_ns / steady["compute"])
    check.equal("GEMMs", coverage(report, "GEMMs")["share"], 1)


def compare_gemms_of_events(check, report, gemm_ns):
    """One GEMM in sixteen was timed. The standard error follows from the uniform variation of the times."""
    gemms, one_in = report["gemms"], 16
    error = 0
    for row in gemms["by_shape"]:
        calls, deviation = row["calls"], JITTER / 3 ** 0.5 * row["mean_us"] / 1e3
        timed = row["timed"] / RANKS  # per rank, in all steps
        error += calls ** 2 * (1 - 1 / one_in) * deviation ** 2 / timed / RANKS
    error **= 0.5
    check.line("gemms.ms_error", gemms["ms_error"], error, 0.3 * error,
               abs(gemms["ms_error"] - error) <= 0.3 * error)
    gaps = 1e-3 * sum(row["calls"] for row in gemms["by_shape"])  # a microsecond each
    allowed = 4 * error + gaps
    check.line("gemms.ms, by its error", gemms["ms"], gemm_ns / 1e6, allowed,
               abs(gemms["ms"] - gemm_ns / 1e6) <= allowed)
    check.equal("how", gemms["how"], "pairs of events around a sample")
    check.equal("sampled", gemms["sampled"], True)
    check.equal("one_in", gemms["one_in"], one_in)
    check.share("timed", gemms["timed"] * one_in / gemms["calls"], 1)
    check.equal("an error is given", gemms["ms_error"] is not None, True)
    check.equal("no share of computation", report["budget"]["hfu_coverage"], None)
    check.equal("gpu_timing", "and a sample of GEMMs" in report["quality"]["gpu_timing"], True)


def compare_clocks(check, clocks, env):
    """The traces' clocks are those that were changed: they are apart by what they were set to."""
    offsets = [int(offset) for offset in env["SKEW_OFFSET_NS"].split(",")]
    axis = next(one["ranks"][0] for one in clocks if one["error_us"] == 0)
    for one in clocks:
        rank = one["ranks"][0]
        truth, allowed = (offsets[axis] - offsets[rank]) / 1e6, 5  # ms; they also drift, from each process's start on
        check.line(f"clock of rank {rank}, ms", one["offset_ns"] / 1e6, truth, allowed,
                   abs(one["offset_ns"] / 1e6 - truth) < allowed)


def compare(report, truth, scenario):
    count, warmup = report["steps"]["count"], report["steps"]["warmup_excluded"]
    if not count or warmup is None or not warmup < count <= truth.n_steps:
        print(f"steps: {count}, of which warm-up: {warmup}; run: {truth.n_steps}")
        return 1
    steady = truth.steady(warmup, count)
    check = Comparison()
    check.line("steps.count", count, truth.n_steps, 0.03 * truth.n_steps,
               abs(count - truth.n_steps) <= 0.03 * truth.n_steps)
    check.equal("partial ranks", report["quality"]["partial_ranks"], [])
    check.equal("lost", report["quality"]["lost"], 0)
    compare_steps(check, report, truth, steady, warmup, count)
    compare_overlap(check, report["overlap"], steady)
    compare_compute(check, report["distributed"], steady)
    if not EMULATOR:  # emulated launches are so slow and uneven that they dominate the path
        compare_path(check, report["critical_path"], steady)
        compare_what_if(check, report["critical_path"], truth, warmup, count)
    if "family" in scenario:
        compare_family(check, report, steady, scenario["family"])
    if "--gemms" in scenario["options"]:
        gemm_ns = compare_gemms(check, report, truth, warmup, count,
                                      "NVIDIA_TF32_OVERRIDE" not in scenario["env"])
        compare_gemms_of_kernels(check, report, steady, gemm_ns)
    if "pipeline" in scenario:
        compare_pipeline(check, report["pipeline"], steady, *scenario["pipeline"], scenario.get("chunks", 1))
        compare_slow_stage(check, report, truth, scenario, warmup, count)
    wanted = [scenario["straggler"]] if "straggler" in scenario else []
    named = report["distributed"]["stragglers"]
    if wanted and not named:
        what_if = truth.what_if(warmup, count)
        wanted = wanted if worth_naming(what_if, what_if["ranks"][wanted[0]]) else []
    check.equal("stragglers", named, wanted)
    if wanted:
        by_rank = report["critical_path"]["by_rank"]
        check.share("straggler's share of the path",
                    by_rank.get(str(wanted[0]), 0) / report["critical_path"]["length_ms"],
                    steady["path"]["by_rank"][wanted[0]] / steady["path"]["step"])
    if scenario.get("hostile"):
        clock = report["quality"]["clock"]
        check.equal("clock.aligned", clock["aligned"], True)
        residual = clock["residual_us"]
        check.line("clock.residual_us", residual, 0, 100, residual is not None and residual < 100)
        compare_clocks(check, clock["clocks"], scenario["env"])
    return check.wrong


def compare_ahead(build, directory, whole_report, truth):
    """Each step, also the first and the last, has the work that was launched in it, although the host is
    ahead of the GPU. On a single GPU the end of the last step is not known, so it is not counted."""
    check = Comparison()
    steps = whole_report["steps"]
    n = steps["count"]
    check.equal("steps.count", n, truth.n_steps - (not truth.meetings))
    means, longest, most = truth.host_ahead(steps["warmup_excluded"], n)
    check.ms("steps.host_ahead_ms", steps["host_ahead_ms"], median(means))
    check.ms("steps.host_ahead_max_ms", steps["host_ahead_max_ms"], longest)
    check.equal("steps.host_ahead_max_steps", steps["host_ahead_max_steps"], most)
    check.equal("ends of steps", coverage(whole_report, "ends of steps on the GPU")["share"], 1)
    for rank in truth.ranks:
        rank.begin_at_mark()
    for step in (0, 1, n // 2, n - 2, n - 1):
        one, steady = report(build, directory, "--steps", f"{step}:{step}"), \
            truth.steady(step, step + 1)
        print(f"step {step}")
        check.ms("distributed.mean_step_wall_ms", one["distributed"]["mean_step_wall_ms"],
                 steady["step"])
        compare_overlap(check, one["overlap"], steady)
        compare_compute(check, one["distributed"], steady)
    return check.wrong


def coverage(report, name):
    return report["quality"]["coverage"].get(name, {"share": None, "note": None})


def compare_nulls(check, report):
    """Figures that are not known without the times of kernels."""
    for field in ("comm_ms", "exposed_ms", "exposed_wait_ms", "exposed_transfer_ms"):
        check.equal("overlap." + field, report["overlap"][field], None)
    check.equal("critical_path.length_ms", report["critical_path"]["length_ms"], None)
    check.equal("critical_path.what_if", report["critical_path"]["what_if"], [])
    check.equal("kernel times", coverage(report, "kernel times")["share"], 0)


def compare_events(report, truth, scenario):
    """The times of collectives and of a sample of GEMMs are right; all others are unknown."""
    check = Comparison()
    warmup, timing = report["steps"]["warmup_excluded"], report["quality"]["gpu_timing"]
    if "--gemms" in scenario["options"]:
        gemm_ns = compare_gemms(check, report, truth, warmup, report["steps"]["count"])
        compare_gemms_of_events(check, report, gemm_ns)
        timing = timing.replace(" and a sample of GEMMs", "")
    check.equal("how", timing.startswith("event pairs around collectives, no other kernels"), True)
    compare_nulls(check, report)
    check.equal("collective times", coverage(report, "collective times")["share"], 1)
    check.equal("lost", report["quality"]["lost"], 0)
    begin = min(rank.steps[warmup][0] for rank in truth.ranks)
    for entry in report["collectives"]:
        met = [meeting for meeting in truth.meetings
               if meeting.last_arrival > begin
               and meeting.members[0][1]["call"] not in ("send", "recv")
               and meeting.members[0][1]["bytes"] == entry["bytes"]]
        if not met or entry["op"] in ("send", "recv"):
            continue
        waits = [sum(meeting.last_arrival - call["arrival"] for _, call in meeting.members)
                 / len(meeting.members) for meeting in met]
        name = f"{entry['op']} of {entry['bytes']}"
        check.ms(name + ": wait", entry["wait_ms"], median(waits))
        check.ms(name + ": transfer", entry["transfer_ms"],
                 median(meeting.transfer for meeting in met))
    return check.wrong


def compare_host(report):
    """Nothing is known about the GPU, and the report says so in capital letters."""
    check = Comparison()
    compare_nulls(check, report)
    times = coverage(report, "collective times")
    check.equal("collective times", times["share"], 0)
    check.equal("their note", (times["note"] or "").startswith("NO COLLECTIVE TIMES"), True)
    check.equal("how", report["quality"]["gpu_timing"].startswith("host only ("), True)
    for entry in report["collectives"]:
        check.equal(entry["op"] + ": wait", entry["wait_ms"], None)
        check.equal(entry["op"] + ": transfer", entry["transfer_ms"], None)
    return check.wrong


def compare_duty(report, truth):
    """The GPU was timed in half of the steps: figures that do not vary between steps are right, and the
    coverage gives the share."""
    check = Comparison()
    steady = truth.steady(report["steps"]["warmup_excluded"], report["steps"]["count"])
    taken = coverage(report, "steps whose GPU time was taken")
    check.line("steps whose GPU time was taken", taken["share"], 0.4, 0.2,
               taken["share"] is not None and 0.2 <= taken["share"] <= 0.5)
    check.equal("why", "TSCOPE_GPU_STEPS" in (taken["note"] or ""), True)
    check.ms("distributed.mean_step_wall_ms", report["distributed"]["mean_step_wall_ms"],
             steady["step"])
    check.ms("overlap.exposed_transfer_ms", report["overlap"]["exposed_transfer_ms"],
             steady["exposed_transfer"])
    compare_compute(check, report["distributed"], steady)
    return check.wrong


def compare_refusal(report):
    clock = report["quality"]["clock"]
    print("clock:", json.dumps(clock))
    wrong = clock["aligned"] is not False
    wrong |= report["overlap"]["exposed_wait_ms"] is not None and clock["aligned"]
    print("not aligned" if not wrong else "aligned ranks that never met  <-- wrong")
    return wrong


def check(name, build, directory):
    scenario = SCENARIOS[name]
    made, truth = run(scenario, build, directory)
    if scenario.get("refused"):
        wrong = compare_refusal(made)
    elif scenario.get("timing") == "events":
        wrong = compare_events(made, truth, scenario)
    elif scenario.get("timing") == "host":
        wrong = compare_host(made)
    elif scenario.get("timing") == "duty":
        wrong = compare_duty(made, truth)
    else:
        wrong = compare(made, truth, scenario)
    wrong += broken_promises(build, directory, made)
    if scenario.get("ahead"):
        wrong += compare_ahead(build, directory, made, truth)
    expect(not wrong, f"{wrong} figure(s) wrong")


if __name__ == "__main__":
    main(SCENARIOS, check)
