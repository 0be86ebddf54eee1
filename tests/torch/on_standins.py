#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's stock CUDA wheel under the preload, on the stand-ins: no GPU, real call patterns.

    on_standins.py --build BUILD [CASE...]

The stand-in GPU counts what is launched on it (its op log); the trace must have all of that.
"""
import collections
import os
import shutil
import subprocess

from torch_job import CudaJob
from outcomes import Skip, expect
from read_trace import ENUMS, PENDING
from repeated import main
from torch_python import python_or_skip
from training import check_phases, steps_run

OPS = ENUMS["OPS"]
# NCCL implements the others with sends and receives.
ONE_KERNEL = {OPS[name] for name in ("ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER",
                                     "REDUCE_SCATTER")}


def check_spans(trace, operations):
    """Everything that ran on the GPU is in the trace under its name, and nothing else."""
    for kind, record in (("kernel", "GpuKernel"), ("collective", "CollectiveRun")):
        ran = collections.Counter(op["name"] for op in operations if op["kind"] == kind)
        seen = collections.Counter(trace.strings[span.name] for span in trace.records[record])
        expect(seen == ran,
               f"rank {trace.rank}: {kind} ran {ran - seen} unseen, {seen - ran} made up")
    for kind, record in (("copy", "GpuMemcpy"), ("fill", "GpuMemset")):
        ran = collections.Counter(op["bytes"] for op in operations if op["kind"] == kind)
        seen = collections.Counter(span.bytes for span in trace.records[record])
        expect(seen == ran, f"rank {trace.rank}: {kind} {ran - seen} unseen, {seen - ran} extra")


def check_launches(trace, operations):
    """Each kernel was launched by one call in the trace, through whichever API."""
    ran = collections.Counter(op["name"] for op in operations
                              if op["kind"] in ("kernel", "collective"))
    names = {shape.shape: trace.strings[shape.kernel] for shape in trace.records["Shape"]}
    seen = collections.Counter(names[call.shape] for call in trace.records["Launch"])
    expect(ran and seen == ran,
           f"rank {trace.rank}: launches {ran - seen} unseen, {seen - ran} twice")


def check_gpu(job, traces):
    for trace in traces:
        operations = job.operations(trace.rank)
        expect(any(op["kind"] == "collective" for op in operations), "collectives ran")
        check_spans(trace, operations)
        check_launches(trace, operations)


def check_communicators(traces, wanted):
    """`wanted` names the communicators with their members. All members made the same calls, in the
    same order."""
    members = collections.defaultdict(dict)
    calls = collections.defaultdict(dict)
    for trace in traces:
        for comm in trace.records["Comm"]:
            expect(comm.dur != PENDING, "it was made")
            members[comm.identity][trace.rank] = comm
            calls[comm.identity][trace.rank] = [
                (call.seq, call.tag, call.count, call.bytes, call.dtype, call.redop, call.peer)
                for call in trace.records["Collective"]
                if call.comm == comm.comm and call.tag < OPS["SEND"]]
        expect(all(call.dur != PENDING and call.result == 0
                   for call in trace.records["Collective"]), "every call returned, well")
        ended = {end.comm for end in trace.records["CommEnd"]}
        expect(ended == {comm.comm for comm in trace.records["Comm"]},
               f"rank {trace.rank}: ended were {ended}")
    by_rank = {trace.rank: trace for trace in traces}
    found = []
    for identity, comms in members.items():
        names = {by_rank[rank].strings[comm.name] for rank, comm in comms.items()}
        expect(len(names) == 1, f"one name for each: {names}")
        expect(all(comm.size == len(comms) for comm in comms.values()), f"size of {names}")
        expect(sorted(comm.rank for comm in comms.values()) == list(range(len(comms))), "ranks in it")
        one, *others = calls[identity].values()
        expect(one and all(other == one for other in others), f"{names}: members disagree")
        expect([call[0] for call in one] == list(range(len(one))), f"{names}: numbered in order")
        found.append((names.pop(), sorted(comms)))
    expect(sorted(found) == sorted(wanted), f"communicators {found}, not {wanted}")


def check_report(job, ranks, steps):
    """The report describes this run correctly, and says that it saw all of it."""
    found = job.report()
    expect(found["run"]["ranks_found"] == list(range(ranks)), f"{found['run']}")
    expect(found["steps"]["count"] == steps, f"steps: {found['steps']}")
    quality = found["quality"]
    expect(quality["gpu_timing"] == "CUPTI activity" and quality["lost"] == 0, f"{quality}")
    for name in ("ranks", "collective times", "kernel times", "matched collectives", "phases",
                 "steps with kernels", "launch calls", "collective calls", "GEMMs"):
        expect(quality["coverage"][name]["share"] == 1, f"{name}: {quality['coverage'][name]}")
    expect(found["overlap"]["comm_ms"] > 0, f"{found['overlap']}")
    expect(all(found["phases"][f"{phase}_ms"] > 0 for phase in ("data", "forward", "backward", "optimizer")),
           f"{found['phases']}")
    expect(any(row["comm"].startswith("default_pg") for row in found["collectives"]),
           f"{found['collectives']}")
    return found


def weights(width=128, blocks=2, vocabulary=512):
    """The number of weights of the model that train_nccl.py trains."""
    linear = lambda n, m: n * m + m
    block = (4 * width + linear(width, 3 * width) + linear(width, width) +
             linear(width, 4 * width) + linear(4 * width, width))
    return vocabulary * width + blocks * block + 2 * width + linear(width, vocabulary)


def gemm_flops(tokens, width=128, blocks=2, vocabulary=512):
    """The operations of the GEMMs of one forward and backward pass: 2 per weight of a linear layer and token, and twice
    that for its two gradients."""
    block = width * 3 * width + width * width + 2 * width * 4 * width
    return 3 * 2 * tokens * (blocks * block + width * vocabulary)


def data_parallel(build, folder):
    """DDP in several buckets, with gradient accumulation and data workers, on four ranks."""
    arguments = ["--steps", "8", "--grad-accum", "2", "--workers", "1"]
    bare, job = CudaJob(build, folder, "bare", bare=True), CudaJob(build, folder, "ddp")
    bare = bare.train(*arguments, ranks=4)
    out = job.train(*arguments, ranks=4)
    expect(out == bare and len(out) == 4, f"{bare} without, {out} with the shim")
    traces = job.traces(4) # one for each rank, none for a data worker
    check_gpu(job, traces)
    check_communicators(traces, [("default_pg", [0, 1, 2, 3]), ("first-pair", [0, 1])])
    for trace in traces:
        check_phases(trace, 8, 16)
        # Gradients are reduced only in every other backward pass, in more than one bucket.
        sums = [call for call in trace.records["Collective"]
                if call.tag == OPS["ALLREDUCE"] and call.dtype == ENUMS["DTYPES"]["F32"]
                and call.count > 1]  # a barrier sums one number
        expect(sum(call.bytes for call in sums) == 8 * 4 * weights(), "each gradient once a step")
        expect(len(sums) > 8 * 2, f"{len(sums)} sums of gradients")
    found = check_report(job, 4, 8)
    passes = 4 * 2 # ranks times accumulation
    expect(found["budget"]["gemm_flops"] == passes * gemm_flops(tokens=4 * 64),
           f"{found['budget']}")
    gemms = found["gemms"]  # PyTorch does not allow TF32 by default
    expect([row["precision"] for row in gemms["by_precision"]] == ["fp32"], f"{gemms}")
    expect(gemms["how"] == "their kernels" and gemms["timed"] == gemms["calls"] > 0,
           f"{gemms}")


def sharded(build, folder):
    """FSDP, and ZeRO with only the optimizer sharded; also NCCL's own records."""
    for strategy, wanted in (("fsdp", ("ALLGATHER", "REDUCE_SCATTER")),
                             ("zero", ("ALLREDUCE", "BROADCAST"))):
        job = CudaJob(build, folder, strategy)
        job.environment["TSCOPE_NCCL_PROFILER"] = "times"
        out = job.train("--strategy", strategy, "--steps", "6", ranks=2)
        expect(all(steps_run(line) == 6 for line in out) and len(out) == 2, f"{out}")
        traces = job.traces(2)
        check_gpu(job, traces)
        check_communicators(traces, [("default_pg", [0, 1]), ("first-pair", [0, 1])])
        for trace in traces:
            ops = collections.Counter(call.tag for call in trace.records["Collective"])
            inside = collections.Counter(call.tag for call in trace.records["CollectiveInside"])
            expect(all(inside[op] == ops[op] for op in ONE_KERNEL),
                   f"{strategy}: {ops}, of which NCCL told {inside}")
            expect(all(ops[OPS[name]] >= 6 for name in wanted), f"{strategy}: {ops}")
            check_phases(trace, 6, 6)
        check_report(job, 2, 6)


def compiled(build, folder):
    """Triton's launches, which go to the driver, and torch.compile, whose worker processes do not train."""
    headers = subprocess.run([python_or_skip(), "-c", "import sysconfig as s; print(s.get_path('include'))"],
                             capture_output=True, text=True, check=True).stdout.strip()
    if not shutil.which("cc") or not os.path.exists(os.path.join(headers, "Python.h")):
        raise Skip(f"Triton needs a C compiler and Python's headers ({headers})")
    job = CudaJob(build, folder, "compiled")
    job.environment.update(
        RANK="0", TRITON_CACHE_DIR=os.path.join(folder, "triton"),
        TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"),
        TRITON_LIBCUDA_PATH=os.path.join(folder, "site", "nvidia", "cu13", "lib"))
    expect(job.run(script="compiled.py", ranks=0) == "done\n", "its output")
    trace, = job.traces(1)
    operations = job.operations(0)
    check_launches(trace, operations)
    check_spans(trace, operations)
    ran = collections.Counter(op["name"] for op in operations if op["kind"] == "kernel")
    expect(ran["doubled"] == 5, f"{ran}")
    expect(any(name.startswith("triton_poi_fused") for name in ran), f"{ran}")
    return 0


def expandable(build, folder):
    """Expandable segments get physical memory from the driver and map it. The mapped memory must equal what the
    allocator says it holds, after it grew and after it released memory."""
    job = CudaJob(build, folder, "expandable")
    job.environment.update(RANK="0", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    grown, left = map(int, job.run(script="expandable.py", ranks=0).split())
    trace, = job.traces(1)
    kinds, memories = ENUMS["MAPPINGS"], ENUMS["MEMORIES"]
    mapped = peak = 0
    for record in trace.records["Mapping"]:
        expect(record.result == 0, f"{record}")
        mapped += {kinds["MAP"]: 1, kinds["UNMAP"]: -1}.get(record.tag, 0) * record.bytes
        peak = max(peak, mapped)
    expect(0 < left < grown and (peak, mapped) == (grown, left),
           f"{peak} and {mapped} mapped, the allocator says {grown} and {left}")
    held = {}
    for record in sorted(trace.records["Alloc"] + trace.records["Free"] + trace.records["Mapping"],
                         key=lambda record: record.time):
        if hasattr(record, "memory"):
            expect(record.tag != kinds["MAP"] or held.get(record.memory) == record.bytes,
                   f"what is mapped was created: {record}")
        elif record.tag == memories["PHYSICAL"]:
            if hasattr(record, "bytes"):
                held[record.address] = record.bytes
            else:
                del held[record.address]
    expect(sum(held.values()) == left, f"created and not released: {held}")
    segments = job.report()["memory"]["segments"]
    expect(segments["obtained_bytes"] - segments["returned_bytes"] == left, f"{segments}")


def sampled(build, folder):
    """Without CUPTI: the number and arithmetic of GEMMs, and a sample of their times. On a host as slow as this one
    these are above the true times, and the report says so."""
    arguments = ["--steps", "8"]
    bare = CudaJob(build, folder, "bare", bare=True).train(*arguments, ranks=2)
    job = CudaJob(build, folder, "sampled")
    job.environment.update(TSCOPE_GPU="events", TSCOPE_GPU_GEMMS="4")
    out = job.train(*arguments, ranks=2)
    expect(out == bare and len(out) == 2, f"{bare} without, {out} with the shim")
    found = job.report()
    gemms, timing = found["gemms"], found["quality"]["gpu_timing"]
    expect(timing.startswith("event pairs around collectives and a sample of GEMMs"), timing)
    expect(found["budget"]["gemm_flops"] == 2 * gemm_flops(tokens=4 * 64),
           f"{found['budget']}")
    expect(gemms["sampled"] and gemms["one_in"] == 4, f"{gemms}")
    expect(abs(gemms["timed"] * 4 / gemms["calls"] - 1) < 0.2, f"{gemms}")
    ran = [op["end"] - op["start"] for rank in range(2) for op in job.operations(rank)
           if op["kind"] == "kernel" and "gemm" in op["name"]]
    truth_ms = gemms["covered"] * sum(ran) / len(ran) * gemms["calls"] / 1e6
    steps = found["steps"]["count"] - found["steps"]["warmup_excluded"]
    reported_ms = gemms["ms"] * steps * 2
    expect(reported_ms > 0.8 * truth_ms and (gemms["bounded"] > 0 or reported_ms < 1.2 * truth_ms),
           f"{reported_ms} ms, in truth {truth_ms}: {gemms}")
    expect(found["overlap"]["exposed_ms"] is None and found["budget"]["hfu_coverage"] is None,
           "a sample of GEMMs is no account of the GPU")


def graphed(build, folder):
    """A step that is one CUDA graph with collectives in it, and callables that are graphed."""
    bare = CudaJob(build, folder, "bare", bare=True)
    job = CudaJob(build, folder, "graphed")
    out, without = (sorted(one.run(script="graphed.py", ranks=2).splitlines())
                    for one in (job, bare))
    expect(out == without and len(out) == 2, f"{without} without, {out} with the shim")
    # Each of 3 steps and 6 replays doubles the count on two ranks; capturing does not.
    expect(all(line.endswith(f"count={2 ** 9}") for line in out), f"{out}")
    for trace in job.traces(2):
        operations = job.operations(trace.rank)
        check_spans(trace, operations)
        graphs = {graph.graph: graph for graph in trace.records["Graph"]}
        replays = collections.Counter(call.graph for call in trace.records["GraphLaunch"])
        expect(sorted(replays.values()) == [6, 6, 6], f"replays of {replays}: step, forward, backward")
        whole, = (graph for graph in graphs.values() if graph.collectives)
        expect(whole.collectives == 2 and replays[whole.graph] == 6, f"{whole}")
        expect([replay.graph for replay in trace.records["GraphReplay"]] == 6 * [whole.graph],
               "its collectives have numbers")
        # Two of the step's kernels are NCCL's, and captured calls are not launches.
        ran = sum(kernel.graph != 0 for kernel in trace.records["GpuKernel"]) + 2 * 6
        held = sum(graphs[graph].kernels * times for graph, times in replays.items())
        expect(ran == held, f"rank {trace.rank}: {ran} kernels ran in graphs that hold {held}")
        counted = len([op for op in operations if op["kind"] in ("kernel", "collective")])
        expect(len(trace.records["Launch"]) + held == counted,
               f"rank {trace.rank}: {len(trace.records['Launch'])} launches and {held} in graphs "
               f"of {counted} kernels")
    quality = job.report()["quality"]
    expect(quality["lost"] == 0, f"{quality}")
    for name in ("collective times", "kernel times", "collective calls", "graph replays",
                 "matched collectives"):
        expect(quality["coverage"][name]["share"] == 1, f"{name}: {quality['coverage'][name]}")
    expect("collectives in graphs found by their nodes" not in quality["coverage"], "all are")


CASES = {case.__name__.replace("_", "-"): case
         for case in (data_parallel, sharded, compiled, expandable, sampled, graphed)}


if __name__ == "__main__":
    main(CASES, lambda name, build, folder: CASES[name](build, folder))
