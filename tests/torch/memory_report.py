#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares reports of memory with the allocator's own counts: memory_report.py LIBTSCOPE ONE_GPU REPORT.

PyTorch's CUDA caching allocator works on a GPU without memory, which gives only addresses (one_gpu.c). tscope's records
of it and PyTorch's own snapshot must both agree with memory_stats().
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import json_of, observed_environment, run  # noqa: E402
from outcomes import SKIPPED, Skip, expect  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

# Sizes that the allocator does not round up: its counts are of blocks, its history has the requested sizes.
PROGRAM = """
import json, random, sys, torch
from torch.cuda import caching_allocator_alloc as obtain, caching_allocator_delete as give_back
if not torch.version.cuda:
    raise SystemExit(77)
torch.cuda.init()
random.seed(7)
kept = [obtain(512 << i, 0, 0) for i in range(12)]
torch.cuda.memory._record_memory_history()
live = []
def forward():
    live.append(obtain(random.choice([512, 4096, 2 << 20, 4 << 20, 20 << 20]), 0, 0))
for turn in range(400):
    forward()
    while len(live) > random.randrange(5, 30):
        give_back(live.pop(random.randrange(len(live))))
    if turn == 200:
        give_back(kept.pop())
        torch.cuda.empty_cache()
try:
    obtain(2 << 30, 0, 0)
    raise SystemExit("2 GiB of 1 GiB")
except torch.OutOfMemoryError:
    pass
torch.cuda.memory._dump_snapshot(sys.argv[1])
print(json.dumps(torch.cuda.memory_stats()))
"""


def check(memory, stats, what):
    for name, wanted in (
            ("peak_allocated_bytes", stats["allocated_bytes.all.peak"]),
            ("peak_reserved_bytes", stats["reserved_bytes.all.peak"]),
            ("allocated_bytes", stats["allocated_bytes.all.current"]),
            ("reserved_bytes", stats["reserved_bytes.all.current"]),
            ("out_of_memory", stats["num_ooms"])):
        expect(memory[name] == wanted, f"{what}: {name} {memory[name]}, the allocator says {wanted}")
    expect(memory["inactive_bytes"] + memory["allocated_bytes"] == memory["reserved_bytes"], what)
    expect(sum(row["bytes"] for row in memory["live_at_peak"]) == memory["peak_allocated_bytes"],
           f"{what}: what was live adds up to the peak: {memory['live_at_peak']}")
    expect(memory["oom_risk"] == "happened" and memory["notes"] is not None, what)


def main():
    library, one_gpu, program = sys.argv[1:4]
    python = python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-memory-") as scratch:
        snapshot, traces = os.path.join(scratch, "snapshot.pickle"), os.path.join(scratch, "traces")
        done = run(python, "-c", PROGRAM, snapshot, ok=(0, SKIPPED), env=observed_environment(f"{library} {one_gpu}", traces))
        if done.returncode == SKIPPED:
            raise Skip("this PyTorch is not built for CUDA")
        stats = json.loads(done.stdout)
        recorded, dumped = (json_of(program, path)["memory"] for path in (traces, snapshot))
        check(recorded, stats, "records")
        check(dumped, stats, "snapshot")
        expect(dumped["slack_bytes"] == 0 and dumped["before_recording_bytes"] == (512 << 12) - 512,
               f"before recording: {dumped['before_recording_bytes']}")
        expect(recorded["capacity_bytes"] == 1 << 30, "the device's memory")
        expect(recorded["churn_allocations"] == stats["allocation.all.allocated"], "allocations")
        expect(dumped["churn_allocations"] == 400, "allocations in the history")
        expect(any("(forward)" in (row["source"] or "") for row in dumped["churn"]), "the source")
        return 0


if __name__ == "__main__":
    sys.exit(main())
