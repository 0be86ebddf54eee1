#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stock PyTorch on the CPU under the preload: training.py --build BUILD [CASE...]"""
import ctypes
import os
import re
import signal
import subprocess

from torch_job import HERE, TorchJob
from built import built
import read_trace
from findings import ranks_of
from outcomes import expect, wait_until
from read_trace import ENUMS, PENDING, UNKNOWN
from repeated import main
from torch_python import python_or_skip

OPS = ENUMS["OPS"]
TRANSFER = 0x80000000  # TSCOPE_TRANSFER: the wait is for a send or a receive


def steps_run(out):
    return int(re.search(r"steps=(\d+)", out).group(1))


def check_phases(trace, steps, micro_steps):
    for name, wanted in (("OPTIMIZER", steps), ("ZERO_GRAD", steps), ("BACKWARD", micro_steps),
                         ("FORWARD", micro_steps)):
        phases = trace.phases(name)
        expect(len(phases) == wanted, f"rank {trace.rank}: {len(phases)} {name}, not {wanted}")
        expect(all(phase.dur != PENDING for phase in phases), f"{name} closed")
    # The first DATA phase gets the first batch; the last one finds the end of the data.
    data = len(trace.phases("DATA"))
    expect(data in (micro_steps, micro_steps + 1), f"rank {trace.rank}: {data} DATA")
    # No phase begins before the previous one has ended.
    outermost = trace.outermost_phases()
    for first, second in zip(outermost, outermost[1:]):
        expect(first.writer == second.writer and first.time + first.dur <= second.time,
               f"rank {trace.rank}: phases overlap: {first} {second}")


def check_collectives(traces):
    """Every member has the same sequence on the same communicator, each collective ran, and each wait names its
    collective."""
    seen = []
    for trace in traces:
        comms = {comm.comm: comm for comm in trace.records["Comm"]}
        expect(all(comm.rank == trace.rank and comm.size == len(traces)
                   for comm in comms.values()), "rank and size of the communicator")
        calls = [call for call in trace.records["Collective"] if call.tag < OPS["SEND"]]
        seen.append([(comms[call.comm].identity, call.seq, call.tag, call.count, call.bytes,
                      call.dtype, call.redop, call.peer) for call in calls])
        expect(all(call.dur != PENDING for call in calls), "every call returned")
        keys = [(call.comm, call.seq) for call in calls]
        expect(len(set(keys)) == len(keys), "a sequence number for each call")
        runs = {(run.comm, run.seq): run for run in trace.records["CollectiveRun"]}
        expect(sorted(runs) == sorted(keys), f"rank {trace.rank}: each call ran, once")
        began = {(call.comm, call.seq): call.time for call in calls}
        expect(all(run.time >= began[key] for key, run in runs.items()),
               "nothing runs before it is called")
        waits = [wait for wait in trace.records["CommWait"] if wait.seq != UNKNOWN]
        collectives = [wait for wait in waits if not wait.seq & TRANSFER]
        expect(waits and all((wait.comm, wait.seq) in runs for wait in collectives), "waits known")
        expect(all((wait.comm, wait.seq & ~TRANSFER) in began for wait in waits), "waits for what was called")
        for wait in collectives:
            expect(wait.time + wait.dur >= runs[wait.comm, wait.seq].time,
                   f"rank {trace.rank}: waited no longer for a collective that had not begun")
    for rank, calls in enumerate(seen):
        expect(calls == seen[0], f"rank {rank} and rank 0 disagree about their collectives")


def gradients_reduced(trace):
    """Bytes of 4-byte sums all-reduced over the run."""
    return sum(call.bytes for call in trace.records["Collective"]
               if call.tag == OPS["ALLREDUCE"] and call.dtype == ENUMS["DTYPES"]["F32"]
               and call.redop == ENUMS["REDOPS"]["SUM"])


def same_numbers(build, folder):
    """Training has bit for bit the same results with and without the shim, and the records are right."""
    bare, job = TorchJob(build, folder, "bare", bare=True), TorchJob(build, folder, "profiled")
    bare.launcher = job.launcher = TorchJob.torchrun
    bare = bare.run("--steps", "20", ranks=2)
    out = job.run("--steps", "20", ranks=2)
    expect(out == bare, f"{bare!r} without, {out!r} with the shim")
    traces = job.traces(2)
    for trace in traces:
        check_phases(trace, 20, 20)
        expect(trace.closed, "ended in order")
        expect(trace.world_size == 2, "world size")
        expect(len(trace.info("TORCH")) == 1 and trace.info("TORCH")[0].startswith("2."),
               f"version of PyTorch: {trace.info('TORCH')}")
        expect(trace.records["Tensor"], "tensor memory")
    check_collectives(traces)
    # The gradients of the model, 33,473 weights of 4 bytes, are reduced in each step, and the loss too.
    expect(gradients_reduced(traces[0]) == 4 * (20 * 33473 + 1),
           f"{gradients_reduced(traces[0])} bytes reduced")


def straggler_named(build, folder):
    job = TorchJob(build, folder, "slow")
    steps = steps_run(job.run("--straggler-rank", "2"))
    found = job.report()
    expect(found["steps"]["count"] == steps, f"steps: {found['steps']}, run were {steps}")
    expect(found["distributed"]["stragglers"] == [2], f"{found['distributed']}")
    expect(ranks_of(found, "DIST.STRAGGLER") == [[2]], f"findings: {found['findings']}")
    for phase in ("data_ms", "forward_ms", "backward_ms", "optimizer_ms"):
        expect(found["phases"][phase], f"phases: {found['phases']}")


def accumulation(build, folder):
    """Four micro-steps per step."""
    job = TorchJob(build, folder, "accumulation")
    out = job.run("--steps", "15", "--grad-accum", "4", "--base-ms", "2", ranks=2)
    expect(steps_run(out) == 15, out)
    traces = job.traces(2)
    for trace in traces:
        check_phases(trace, 15, 60)
    check_collectives(traces)
    found = job.report()
    expect(found["steps"]["count"] == 15, f"steps: {found['steps']}")


def recomputation(build, folder, way="reentrant"):
    """The forward pass runs again inside the backward pass."""
    arguments = ["--steps", "10", "--base-ms", "2", "--checkpoint", way]
    bare = TorchJob(build, folder, "bare", bare=True).run(*arguments, ranks=2)
    job = TorchJob(build, folder, way)
    expect(job.run(*arguments, ranks=2) == bare, "the same numbers")
    for trace in job.traces(2):
        check_phases(trace, 10, 10)


def recomputation_plain(*where):
    """In the other of PyTorch's ways."""
    recomputation(*where, way="plain")


def data_workers(build, folder):
    """Forked data workers leave no trace."""
    job = TorchJob(build, folder, "workers")
    job.run("--steps", "10", "--workers", "2", "--base-ms", "2", ranks=2)
    for trace in job.traces(2):
        check_phases(trace, 10, 10)


def killed(build, folder):
    """The records of a rank before kill -9 are in the trace, and show what it was doing."""
    job = TorchJob(build, folder, "killed")
    process = job.start("ddp_gloo.py", ["--steps", "100000"], 2)
    try:
        def trained():
            expect(process.poll() is None, "the job runs until it is killed")
            return [trace.pid for trace in read_trace.read_all(job.directory)
                    if trace.rank == 1 and len(trace.phases("OPTIMIZER")) >= 10]
        os.kill(wait_until("ten steps", trained)[0], signal.SIGKILL)
        process.communicate()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    victim = job.traces(2)[1]
    expect(not victim.closed, "no orderly end")
    expect(len(victim.phases("OPTIMIZER")) >= 10, "its steps are there")
    opened = [record for name in ("Phase", "Collective", "CollectiveRun", "CommWait")
              for record in victim.records[name] if record.dur == PENDING]
    expect(len(opened) <= 8, f"only the last spans are open: {opened}")


def survived_errors(build, folder):
    """Backward passes that fail with a caught error have their real length and hide nothing."""
    bare = TorchJob(build, folder, "bare", bare=True).run(script="failing_backward.py", ranks=0)
    job = TorchJob(build, folder, "failing")
    expect(job.run(script="failing_backward.py", ranks=0) == bare, "the same numbers")
    traces = read_trace.read_all(job.directory)
    expect(len(traces) == 1, f"{len(traces)} traces")
    backward = traces[0].phases("BACKWARD")
    expect(len(backward) == 6, f"{len(backward)} backward passes, not 6")
    expect(all(phase.dur != PENDING for phase in backward), "each ended")
    expect(all(later.time >= earlier.time + earlier.dur
               for earlier, later in zip(backward, backward[1:])), "one after the other")


def inside_backward(build, folder, jobs=((66, 20),)):
    """Optimizer steps inside the backward pass are seen. tscope listens to ranges there in the first 32 passes and in one
    of 16, and in all once it heard one: a job that begins with it in its pass 66 is seen from pass 80 on."""
    for first, seen in jobs:
        job = TorchJob(build, folder, f"from{first}")
        arguments = [str(first), "100"]
        bare = TorchJob(build, folder, "bare", bare=True).run(*arguments, script="steps_in_backward.py", ranks=0)
        expect(job.run(*arguments, script="steps_in_backward.py", ranks=0) == bare, "the same numbers")
        trace, = read_trace.read_all(job.directory)
        expect(len(trace.phases("BACKWARD")) == 100, "100 backward passes")
        took = sum(record.tag == read_trace.ENUMS["PHASES"]["OPTIMIZER"] for record in trace.records["Phase"])
        expect(took == 2 * seen, f"{took} optimizer steps of a job that takes them from pass {first}, not {2 * seen}")


def always_inside_backward(*where):
    """Jobs that do so from the beginning, or never."""
    inside_backward(*where, jobs=((0, 100), (100, 0)))


def collectives(build, folder):
    """Every operation that collectives.py calls: kind, size, type, reduction and peer."""
    job = TorchJob(build, folder, "collectives")
    job.run(script="collectives.py", ranks=2)
    traces = job.traces(2)
    for trace in traces:
        rank, peer = trace.rank, 1 - trace.rank
        wanted = [
            ("ALLREDUCE", 100, "F32", "SUM", -1), ("ALLREDUCE", 30, "I64", "MAX", -1),
            ("BROADCAST", 7, "F64", "NONE", 1), ("REDUCE", 11, "F32", "PROD", 1),
            ("ALLGATHER", 5, "F32", "NONE", -1), ("ALLGATHER", 6, "F32", "NONE", -1),
            ("GATHER", 8, "F32", "NONE", 0), ("SCATTER", 9, "F32", "NONE", 1),
            ("ALLTOALL", 4, "F32", "NONE", -1), ("BARRIER", 0, "UNKNOWN", "NONE", -1),
            ("ALLREDUCE", 3, "BF16", "SUM", -1), ("SEND", 12 + rank, "F32", "NONE", peer),
            ("RECV", 13 - rank, "F32", "NONE", peer),
        ]
        if rank == 1:  # it receives first
            wanted[-2:] = reversed(wanted[-2:])
        names = {kind: {value: name for name, value in ENUMS[kind].items()}
                 for kind in ("OPS", "DTYPES", "REDOPS")}
        seen = [(names["OPS"][call.tag], call.count, names["DTYPES"][call.dtype],
                 names["REDOPS"][call.redop], call.peer) for call in trace.records["Collective"]]
        expect(seen == wanted, f"rank {rank}: {seen}")
        expect(len({comm.identity for comm in trace.records["Comm"]}) == 2, "two communicators")
        waits = [(wait.comm, wait.seq) for wait in trace.records["CommWait"]]
        expect(len(waits) == len(wanted), f"rank {rank}: not a wait for each: {waits}")
        expect(len(trace.records["CommEnd"]) == 2, "both communicators ended")
    check_collectives(traces)


def names(build, folder):
    """libtscope.so exports each hook, and this PyTorch has the hooked function if torch_hooks.def says so."""
    with open(os.path.join(HERE, "..", "..", "preload", "torch", "torch_hooks.def"),
              encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    hooks = [(name, int(since), int(until)) for name, since, until in
             re.findall(r"(?:VALUE|VOID|CLASS)\((_Z\w+),\s+(\d+), (\d+),", text)]
    expect(len(hooks) > 40, f"{len(hooks)} hooks")
    shim = ctypes.CDLL(built(build, "libtscope.so"))
    absent = [name for name, _, _ in hooks if not hasattr(shim, name)]
    expect(not absent, f"not exported: {absent}")
    code = ("import ctypes, os, sys, torch; here = torch.__path__[0] + '/lib/lib'; "
            "libraries = [ctypes.CDLL(here + name) "
            "for name in ('torch_cpu.so', 'c10.so', 'torch_cuda.so') "
            "if os.path.exists(here + name)]; "
            "print(torch.__version__, len(libraries), *(name for name in sys.argv[1:] "
            "if any(hasattr(library, name) for library in libraries)))")
    result = subprocess.run([python_or_skip(), "-c", code] + [name for name, _, _ in hooks],
                            capture_output=True, text=True, check=True)
    version, libraries, *present = result.stdout.split()
    major, minor = version.split(".")[:2]
    with open(os.path.join(HERE, "..", "..", "docs", "recording", "pytorch.md"), encoding="utf-8") as file:
        page = file.read()
    with open(os.path.join(HERE, "..", "..", "format", "range_names.def"), encoding="utf-8") as file:
        ranges = re.findall(r'(?m)^  N\("([\w.()# ]+)\$?", (\w+)\)', file.read())
    expect({phase for _, phase in ranges} >= {"DATA", "FORWARD", "OPTIMIZER"}, f"{ranges}")
    for name, phase in ranges:
        expect(name in page and phase.lower() in page, f"docs/recording/pytorch.md does not tell of {name}")
    for name, since, until in hooks:
        if "NCCL" in name and libraries == "2":
            continue # a PyTorch for CPUs only
        if since <= int(major) * 100 + int(minor) <= until:
            expect(name in present, f"PyTorch {version} lacks {name}")


def dormant(build, folder):
    """Importing PyTorch and inference on the CPU leave no trace."""
    job = TorchJob(build, folder, "dormant")
    code = "import torch; print(torch.nn.Linear(3, 2)(torch.ones(3)).shape)"
    result = subprocess.run([job.python, "-c", code], env=job.environment, capture_output=True,
                            text=True)
    expect((result.returncode, result.stdout, result.stderr) == (0, "torch.Size([2])\n", ""),
           f"{result}")
    expect(not read_trace.paths_under(job.directory), "a trace")


def two_models(build, folder):
    """Each model's gradients are waited for in turn, and until all ranks have them."""
    job, steps = TorchJob(build, folder, "two"), 12
    job.run(str(steps), script="two_models.py", ranks=2)
    traces = job.traces(2)
    began = {}
    for trace in traces:
        for run in trace.records["CollectiveRun"]:
            began[run.seq] = max(began.get(run.seq, 0), run.time)
    for trace in traces:
        waits = {}
        for wait in trace.records["CommWait"]:
            waits.setdefault(wait.seq, []).append(wait)
        gradients = sorted(call.seq for call in trace.records["Collective"] if call.tag == OPS["ALLREDUCE"])[-2 * steps:]
        for seq in gradients:
            expect(len(waits.get(seq, [])) == 1, f"rank {trace.rank}: {waits.get(seq)} for {seq}")
            expect(waits[seq][0].time + waits[seq][0].dur >= began[seq], f"rank {trace.rank} waits until all are at {seq}")
    document = job.report()
    expect(document["critical_path"]["what_if_reason"] is None, document["critical_path"])


CASES = {case.__name__.replace("_", "-"): case
         for case in (same_numbers, straggler_named, accumulation, recomputation, recomputation_plain, data_workers,
                      killed, survived_errors, two_models, inside_backward, always_inside_backward, collectives, names, dormant)}


if __name__ == "__main__":
    main(CASES, lambda name, build, folder: CASES[name](build, folder))
