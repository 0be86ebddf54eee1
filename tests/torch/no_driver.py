#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's CUDA build where there is no driver: no_driver.py LIBTSCOPE.

The job tries CUDA, is refused, and goes on on the CPU, as without the preload. tscope must not call CUPTI there: that of
CUDA 13.2 then calls itself until the stack is full.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402
from outcomes import SKIPPED, Skip, expect  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

PROGRAM = """
import ctypes, time, torch
if not torch.version.cuda:
    raise SystemExit(77)
try:
    cudart = ctypes.CDLL("libcudart.so.13")
except OSError:
    raise SystemExit(77)
made, weights = ctypes.c_void_p(), torch.ones(3, requires_grad=True)
print(torch.cuda.is_available(), cudart.cudaMalloc(ctypes.byref(made), 1024),
      cudart.cudaStreamCreate(ctypes.byref(made)), cudart.cudaDeviceSynchronize())
for step in range(100):
    (weights * 2).sum().backward()
    time.sleep(0.01)
print(weights.grad.sum().item())
"""


def run(python, directory, library=None):
    environment = observed_environment(library, directory, OMP_NUM_THREADS="1")
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run([python, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    library = sys.argv[1]
    python = python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-no-driver-") as scratch:
        bare = run(python, scratch)
        if bare[0] == SKIPPED or bare[1].startswith("True"):
            raise Skip("this PyTorch is not built for CUDA 13, or there is a GPU")
        expect(bare[0] == 0, bare)
        seen = run(python, scratch, library)
        expect(seen == bare, f"{bare} without, {seen} with the shim")
        trace, = read_trace.read_all(scratch)
        reasons = [trace.strings[clock.reason] for clock in trace.records["GpuClock"]]
        expect(any("no driver" in reason for reason in reasons), f"it says why there is no CUPTI: {reasons}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
