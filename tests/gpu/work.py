#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Work for one GPU whose kernels and operations are known; scripts/gpu-check runs it.

    work.py train|graph|pace [--profiler] [--small]

Between the parts of the work there is a kernel that nothing else launches (`torch.cuda._sleep`), so that
every recording of the GPU's kernels can be cut into the same parts. Prints one JSON object; with --profiler
it also has torch.profiler's kernels of each part.
"""
import argparse
import contextlib
import fcntl
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "jobs"))

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from profiled import mark, print_result, profiled
from train_nccl import Transformer

# GEMMs of known shape: (batch, m, n, k, type). The first is in FP32 with cuBLAS, one is with cuBLASLt.
GEMMS = [(1, 256, 384, 512, torch.float32), (1, 512, 512, 1024, torch.bfloat16),
            (1, 128, 640, 256, torch.float16), (6, 64, 96, 128, torch.float32)]


def further_sessions(options, found):
    """Further sessions of the profiler with a few kernels each; stores how many it saw in each."""
    found["sessions"] = []
    for _ in range(2 if options.profiler else 0):
        time.sleep(0.5)  # the shim checks ten times a second whether it may use CUPTI again
        session = {}
        mark()
        with profiled(True, session):
            for _ in range(8):
                mark()
                torch.zeros(16, device="cuda").add_(1)
        found["sessions"].append(sum(sum(part.get("kernels", {"names": {}})["names"].values())
                                     for part in session["profiler"]))
        found["too_early"] += session["too_early"]


def warm_up_clocks():
    """Keeps the GPU busy for a while (half a second on an H100), until its clock frequencies are stable."""
    a = torch.ones(8192, 8192, dtype=torch.bfloat16, device="cuda")
    for _ in range(300):
        torch.mm(a, a)


class Training:
    def __init__(self, options):
        torch.manual_seed(7)
        if options.small:
            batch, length, width, blocks, vocabulary = 2, 32, 64, 2, 256
        else:
            batch, length, width, blocks, vocabulary = 8, 1024, 1024, 8, 8192
        self.model = Transformer(width, blocks, vocabulary).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, capturable=True,
                                           foreach=True)
        tokens = (torch.arange(batch * (length + 1)) * 7 % vocabulary).view(batch, -1)
        self.tokens = tokens.cuda()

    def step(self, attention=SDPBackend.MATH):
        with torch.autocast("cuda", dtype=torch.bfloat16), sdpa_kernel(attention):
            logits = self.model(self.tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        return loss.detach()


def gemms():
    """Runs GEMMS, and a copy in each direction; returns the GEMMs' floating-point operations."""
    operations = 0
    torch.ones(5000).cuda().clone().cpu()
    for batch, m, n, k, dtype in GEMMS:
        a = torch.full((batch, m, k), 0.5, dtype=dtype, device="cuda")
        b = torch.full((batch, k, n), 0.25, dtype=dtype, device="cuda")
        if batch > 1:
            torch.bmm(a, b)
        else:
            torch.mm(a[0], b[0])
            F.linear(a[0], b[0].t().contiguous(), torch.zeros(n, dtype=dtype, device="cuda"))
            operations += 2 * m * n * k
        operations += 2 * batch * m * n * k
    return operations


def train(options):
    """Part 0: training steps. Part 1: GEMMs of known shape."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    training, found, losses = Training(options), {}, []
    for _ in range(3):
        losses.append(training.step())
    if not options.small:
        warm_up_clocks()
    torch.cuda.synchronize()
    with profiled(options.profiler, found):
        mark()
        for step in range(options.steps):
            torch.cuda.nvtx.range_push(f"gpu-check step {step}")
            losses.append(training.step())
            torch.cuda.nvtx.range_pop()
        mark()
        found["flops"] = gemms()
        mark()
        torch.cuda.synchronize()
    further_sessions(options, found)
    if options.profiler:
        time.sleep(0.5)
    for _ in range(2):  # after the profiler's end, the shim must see kernels again
        losses.append(training.step())
    found["losses"] = [loss.item().hex() for loss in losses]
    found["peak_allocated"] = torch.cuda.max_memory_allocated()
    found["peak_reserved"] = torch.cuda.max_memory_reserved()
    free, total = torch.cuda.mem_get_info()
    found["device_used"] = total - free
    return found


def graph(options):
    """Part 0: replays of a training step that was captured into a graph."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    training, found = Training(options), {}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            training.step()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = training.step()
    torch.cuda.synchronize()
    with profiled(options.profiler, found):
        mark()
        for _ in range(options.steps):
            captured.replay()
        mark()
        torch.cuda.synchronize()
    found["losses"] = [loss.item().hex()]
    found["replays"] = options.steps
    return found


def median_time(work, times):
    taken = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def tiny_kernels(numbers, count):
    for _ in range(count):
        numbers.add_(1)


def wait_for_all(folder, what, processes):
    """Waits until so many processes have come here."""
    open(os.path.join(folder, f"{what}-{os.getpid()}"), "w", encoding="utf-8").close()
    ends = time.monotonic() + 120
    while sum(name.startswith(what) for name in os.listdir(folder)) < processes:
        if time.monotonic() > ends:
            raise TimeoutError(f"not all of {processes} processes are {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def own_turn():
    """Of several processes that start and end together, as most of their time is the start, only one measures at a
    time; none has work for the GPU while another does."""
    folder, processes = os.environ.get("GPU_CHECK_TURNS"), int(os.environ.get("GPU_CHECK_PROCESSES", "1"))
    if not folder:
        yield
        return
    torch.cuda.synchronize()
    wait_for_all(folder, "ready", processes)
    with open(os.path.join(folder, "turn"), "w", encoding="utf-8") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield
    wait_for_all(folder, "done", processes)


def pace(options):
    """Measures the time of a training step, and of a launch in a loop of very short kernels."""
    training = Training(options)
    numbers = torch.zeros(16, device="cuda")
    launches = 200 if options.small else 5000
    if options.profiler:
        both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        profiler = torch.profiler.profile(activities=both)
    else:
        profiler = contextlib.nullcontext()
    with own_turn():
        for _ in range(3):
            training.step()
            tiny_kernels(numbers, launches)
        torch.cuda.synchronize()
        with profiler:
            step = median_time(lambda: training.step(SDPBackend.FLASH_ATTENTION), options.steps)
            loop = median_time(lambda: tiny_kernels(numbers, launches), 3 if options.small else 7)
    return {"step_ms": 1e3 * step, "launch_us": 1e6 * loop / launches}


def main():
    works = {work.__name__: work for work in (train, graph, pace)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=works)
    parser.add_argument("--profiler", action="store_true", help="under torch.profiler")
    parser.add_argument("--small", action="store_true", help="small sizes for the stand-in GPU")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    found = works[options.work](options)
    print_result(found)


if __name__ == "__main__":
    main()
