#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job that loads NCCL, the CUDA runtime and cuBLAS by name with ctypes: its trace compared with what
the stand-ins ran: check_pynccl.py BUILD NCCL. Each collective, copy, fill, GEMM and kernel
is in the trace once. Calls of a second copy of NCCL are not, and the report says so.
"""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import read_trace  # noqa: E402
from built import built  # noqa: E402
from observed import json_of  # noqa: E402
from outcomes import expect  # noqa: E402
from standin_job import StandinJob  # noqa: E402
from truth import Truth  # noqa: E402

BUILD, NCCL = sys.argv[1:]
OPS = read_trace.ENUMS["OPS"]
RANKS, STEPS, GEMMS = 2, 5, 10
NAMES = {"all_reduce": "ALLREDUCE", "broadcast": "BROADCAST", "send": "SEND", "recv": "RECV"}


def run(directory, *arguments, **more):
    """The output of each rank, and the truth of the run."""
    log = os.path.join(directory, "log")
    os.makedirs(log)
    job = StandinJob(BUILD, directory, *arguments, command=[sys.executable, os.path.join(HERE, "pynccl.py"), directory], run="pynccl",
              ranks=RANKS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, STANDIN_LOG=log, **more)
    printed = [rank.communicate(timeout=60) for rank in job.ranks]
    expect(all(rank.returncode == 0 for rank in job.ranks), printed)
    return printed, Truth(log).ranks


def check_rank(trace, rank):
    records = trace.records
    kinds = {value: name for name, value in OPS.items()}
    made = collections.Counter(NAMES[call["call"]] for op in rank.order for call in op.calls)
    expect(made, "the truth has collectives")
    recorded = collections.Counter(kinds[call.tag] for call in records["Collective"])
    expect(recorded == made, f"recorded {recorded}, made {made}")
    for kind, name in (("copy", "Memcpy"), ("fill", "Memset")):
        ran = [op.bytes for op in rank.order if op.kind == kind]
        expect(ran and [one.bytes for one in records[name]] == ran, f"{name}: {records[name]}, {ran}")
    kernels = [op for op in rank.order if op.kind in ("kernel", "collective")]
    expect(len(records["Launch"]) == len(kernels), f"{len(records['Launch'])} of {len(kernels)}")
    expect(len(records["Gemm"]) == GEMMS, f"{len(records['Gemm'])} GEMMs")
    expect(all((one.m, one.n, one.k, one.flops) == (10, 20, 30, 12000) for one in records["Gemm"]),
           records["Gemm"])
    expect(len(records["Alloc"]) == len(records["Free"]) == 1, records["Alloc"])
    comm, = records["Comm"]
    expect((comm.rank, comm.size) == (rank.number, RANKS), comm)
    expect(not sum(trace.lost), trace.lost)
    looked_up = [trace.strings[info.value] for info in records["Info"]
                 if info.tag == read_trace.ENUMS["INFOS"]["LOOKED_UP"]]
    expect(len(looked_up) >= 14 and set(looked_up) == {"seen"}, looked_up)
    return comm.identity


def look_up_coverage(directory):
    """The report's entry about functions found by name."""
    return json_of(built(BUILD, "tscope-report"),
                   os.path.join(directory, "traces", "pynccl"))["quality"]["coverage"]["functions found by name"]


def main():
    with tempfile.TemporaryDirectory(prefix="standin-pynccl-") as directory:
        bare, _ = run(os.path.join(directory, "bare"), LD_PRELOAD="")
        printed, ranks = run(os.path.join(directory, "shimmed"))
        expect(printed == bare, f"the job is the same: {printed}, {bare}")
        traces = read_trace.read_all(os.path.join(directory, "shimmed", "traces"))
        expect(len(traces) == RANKS, traces)
        identities = {check_rank(trace, rank) for trace, rank in zip(traces, ranks)}
        expect(len(identities) == 1, "all ranks name the communicator alike")
        expect(look_up_coverage(os.path.join(directory, "shimmed"))["share"] == 1, "all are seen")
        printed, _ = run(os.path.join(directory, "off"), TSCOPE_LOOKUPS="off")
        expect(printed == bare, f"the job is the same: {printed}")
        other = shutil.copy(NCCL, os.path.join(directory, "libnccl-other.so.2"))
        printed, _ = run(os.path.join(directory, "two"), other)
        expect(printed == bare, f"the job is the same: {printed}")
        found = look_up_coverage(os.path.join(directory, "two"))
        seen = round(found["share"] / (1 - found["share"]))
        expect(seen >= 14 and found["note"].endswith(f"NOT SEEN, such as ncclAllReduce of {other}"),
               found)
    print(f"{RANKS} ranks, {STEPS} steps: all work is in the trace once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
