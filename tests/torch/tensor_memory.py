#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's allocators under the preload: tensor_memory.py CASE LIBTSCOPE ONE_GPU.

The trace must agree with what the allocator itself tells the program about tensor memory. The CUDA caching allocator
works on a GPU without memory, which gives only addresses; see one_gpu.c.
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import observed  # noqa: E402
import read_trace  # noqa: E402
from outcomes import SKIPPED, Skip, expect  # noqa: E402
from read_trace import ENUMS  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

CUDA_0 = 1  # c10::Device: type CUDA in the low byte, index 0 in the high one
UNKNOWN = (1 << 64) - 1
CUDA_PROGRAM = """
import json, torch
from torch.cuda import caching_allocator_alloc as obtain, caching_allocator_delete as give_back
if not torch.version.cuda:
    raise SystemExit(77)
torch.cuda.init()
states, open_blocks = [], {}
def note(sign, address):
    stats = torch.cuda.memory_stats()
    states.append([sign, address, stats["allocated_bytes.all.current"],
                   stats["reserved_bytes.all.current"]])
for turn in range(200):
    address = obtain([1000, 512, 3 << 20, 30 << 20][turn % 4], 0, 0)
    open_blocks[turn] = address
    note(+1, address)
    if turn % 3 == 2:
        address = open_blocks.pop(turn - 2)
        give_back(address)
        note(-1, address)
    if len(open_blocks) > 30:
        for key in sorted(open_blocks)[:20]:
            address = open_blocks.pop(key)
            give_back(address)
            note(-1, address)
try:
    obtain(2 << 30, 0, 0)
    raise SystemExit("2 GiB of 1 GiB")
except torch.OutOfMemoryError:
    pass
print(json.dumps([states, torch.cuda.memory_stats()]))
"""

CPU_PROGRAM = """
import json, torch
torch.ones(1, requires_grad=True).sum().backward()
def work():
    return [tensor.data_ptr() for tensor in [torch.empty(size) for size in range(1000, 1100)]]
addresses = work()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True):
    addresses += work()
print(json.dumps(addresses))
"""


def run(python, program, directory, *preload):
    result = observed.run(python, "-c", program, ok=(0, SKIPPED), env=observed.observed_environment(" ".join(preload), directory))
    if result.returncode == SKIPPED:
        raise Skip("this PyTorch is not built for CUDA")
    return json.loads(result.stdout)


def check(trace, states, stats):
    events = trace.records["TensorTotals"]
    expect(all(event.tag == CUDA_0 for event in events), "the device")
    seen = [[1 if event.bytes > 0 else -1, event.address, event.allocated, event.reserved]
            for event in events]
    expect(seen == states, "each block, with the totals that the allocator told the program")
    obtained = [event.bytes for event in events if event.bytes > 0]
    expect(len(obtained) == stats["allocation.all.allocated"], "as many as the allocator counted")
    expect(sum(obtained) == stats["allocated_bytes.all.allocated"], "and as many bytes")

    totals = trace.records["Memory"]
    expect(totals and totals[-1].allocated == stats["allocated_bytes.all.current"],
           "among the retained records: allocated at the end")
    expect(max(total.peak_allocated for total in totals) == stats["allocated_bytes.all.peak"],
           "peak of allocated")
    expect(max(total.peak_reserved for total in totals) == stats["reserved_bytes.all.peak"],
           "peak of reserved")
    expect(totals[-1].obtained == len(obtained) and
           totals[-1].obtained + totals[-1].given_back == len(events), "events counted")

    # The allocator reserves what it got from the runtime and did not free.
    held = {record.address: record.bytes for record in trace.records["Alloc"] if not record.result}
    for record in trace.records["Free"]:
        held.pop(record.address)
    expect(sum(held.values()) == stats["reserved_bytes.all.current"], "reserved is what CUDA gave")

    refused = trace.records["OutOfMemory"]
    said = [record.tag for record in refused]
    refusals = ENUMS["REFUSALS"]
    expect(said[-1] == refusals["ALLOCATOR"] and said.count(refusals["ALLOCATOR"]) == 1 and
           refusals["API"] in said, f"refused by CUDA, then by the allocator: {refused}")
    last = refused[-1]
    expect(last.bytes == 2 << 30 and last.device == CUDA_0 and
           last.allocated == stats["allocated_bytes.all.current"] and
           last.reserved == stats["reserved_bytes.all.current"], f"what was asked for: {last}")
    expect(last.device_free == UNKNOWN, "what is not known is not 0")


def cuda(python, library, one_gpu, scratch):
    bare = run(python, CUDA_PROGRAM, scratch, one_gpu)
    states, stats = run(python, CUDA_PROGRAM, scratch, library, one_gpu)
    expect([states, stats] == bare, "the allocator does the same without and with the shim")
    traces = read_trace.read_all(scratch)
    expect(len(traces) == 1, f"{len(traces)} traces")
    expect(not any(traces[0].lost), f"lost: {traces[0].lost}")
    check(traces[0], states, stats)


def cpu(python, library, one_gpu, scratch):
    """A block counts once, also if a profiler listens too."""
    addresses = run(python, CPU_PROGRAM, scratch, library)
    trace, = read_trace.read_all(scratch)
    for kind, name in ((1, "obtained"), (-1, "given back")):
        seen = [event.address for event in trace.records["Tensor"]
                if (event.bytes > 0) == (kind > 0)]
        for address in set(addresses):
            expect(seen.count(address) >= addresses.count(address), f"each {name}")
    balance = {}
    for event in trace.records["Tensor"]:
        balance[event.address] = balance.get(event.address, 0) + (1 if event.bytes > 0 else -1)
    expect(max(balance.values()) <= 1, "nothing is obtained twice")
    doubled = [event.tag for event in trace.records["TensorTotals"]]
    expect(not doubled, f"the same block again: {doubled}")


def main():
    case, library, one_gpu = sys.argv[1:4]
    python = python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-memory-") as scratch:
        {"cuda": cuda, "cpu": cpu}[case](python, library, one_gpu, scratch)


if __name__ == "__main__":
    main()
