#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of the shim for a PyTorch job on the CPU: paired runs, alternately without and with it.

    overhead.py BUILD [PAIRS [--watched]]

With --watched both runs of a pair have the shim, and the second one is watched ten times a second. Prints, for each
job, the median over the pairs of time with / time without, and the spread of the pairs. Time is the CPU time of the
whole process, including tscope's own threads, because on a busy machine wall time depends on other processes.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

from torch_job import TorchJob
from built import built

# Training on two ranks that compute all the time; and the worst case: allocations one after the other with no work
# between them.
TRAINING = ["--steps", "150", "--base-ms", "0", "--width", "128", "--blocks", "4"]
ALLOCATIONS = """
import time, torch
torch.ones(1, requires_grad=True).sum().backward()
def timed():
    start = time.process_time()
    for _ in range(200000):
        torch.empty(64)
    return (time.process_time() - start) / 200000 * 1e9
print("ns_per_tensor=%.1f" % min(timed() for _ in range(5)))
"""


def train(job):
    process = job.start("ddp_gloo.py", TRAINING, 2)
    _, err = process.communicate()
    return float(re.search(r"cpu_step_ms=([\d.]+)", err).group(1))


def watched(job):
    with subprocess.Popen([built(job.build, "tscope-top"), "--format", "json", "--interval", "0.1",
                           job.directory], stdout=subprocess.DEVNULL) as watcher:
        try:
            return train(job)
        finally:
            watcher.terminate()


def compare(name, unit, pairs, first, second):
    before, after = [], []
    for pair in range(pairs):
        before.append(first(pair))
        after.append(second(pair))
    ratios = sorted(late / early for early, late in zip(before, after))
    quarter = len(ratios) // 4
    print(f"{name}: {statistics.median(before):.3f} {unit} without, {statistics.median(after):.3f} {unit} with; "
          f"ratio {statistics.median(ratios):.3f}, middle half of {pairs} pairs "
          f"{ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}", flush=True)


def allocate(job):
    result = subprocess.run([job.python, "-c", ALLOCATIONS], env=job.environment,
                            capture_output=True, text=True, check=True)
    return float(re.search(r"ns_per_tensor=([\d.]+)", result.stdout).group(1))


def main():
    build = os.path.realpath(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory(prefix="tscope-overhead-") as scratch:
        if len(sys.argv) > 3:
            compare("watched training step", "ms", pairs,
                    lambda pair: train(TorchJob(build, scratch, f"alone {pair}")),
                    lambda pair: watched(TorchJob(build, scratch, f"watched {pair}")))
            return
        for name, unit, measure in (("training step", "ms", train), ("small tensor", "ns", allocate)):
            compare(name, unit, pairs, lambda pair: measure(TorchJob(build, scratch, "bare", bare=True)),
                    lambda pair: measure(TorchJob(build, scratch, f"{name} {pair}")))


if __name__ == "__main__":
    main()
