#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.profiler of the stock CUDA wheel together with the shim, on the stand-ins: it gets the same kernels with and
without the shim, and the report says what tscope did not watch meanwhile.

    profiler_beside.py BUILD
"""
import os
import re
import sys
import tempfile

from torch_job import cuda_site
from built import built
from observed import json_of, observed_environment, run
from outcomes import expect
from torch_python import python_or_skip

SESSIONS, INSIDE, OUTSIDE = 2, 10, 7
PROGRAM = f"""
import time, torch
from torch.profiler import profile, ProfilerActivity
x = torch.ones(1024, device="cuda")
def work(n):
    y = x
    for _ in range(n):
        y = y + 1
    torch.cuda.synchronize()
work({OUTSIDE})
for session in range({SESSIONS}):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        work({INSIDE})
    on_gpu = [e for e in p.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA]
    print("session", session, sorted((e.key, e.count) for e in on_gpu))
    time.sleep(0.5)  # the shim looks ten times a second whether it may go on
    work({OUTSIDE})
"""


def main():
    build, python = os.path.realpath(sys.argv[1]), python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-profiler-") as scratch:
        site = cuda_site(build, scratch)
        traces = os.path.join(scratch, "traces")
        bare, beside = (run(python, "-c", PROGRAM, env=observed_environment(preload, traces, PYTHONPATH=site)).stdout
                        for preload in (None, built(build, "libtscope.so")))
        quality = json_of(built(build, "tscope-report"), traces)["quality"]
    print(bare, beside, quality["gpu_timing"], quality["coverage"]["kernel times"], sep="\n")
    expect(bare.count(f", {INSIDE})") == SESSIONS, "the profiler alone sees its kernels")
    expect(bare == beside, "the profiler sees the same kernels beside the shim")
    changes = re.search(r"changed (\d+) times", quality["gpu_timing"])
    expect(changes and int(changes[1]) == 2 * SESSIONS, "the shim stepped aside and came back")
    # everything except the launches in the sessions; a fill was launched outside as well
    seen = quality["coverage"]["kernel times"]["share"]
    launches = OUTSIDE + SESSIONS * (INSIDE + OUTSIDE)
    outside = OUTSIDE * (1 + SESSIONS)
    expect(outside / launches - 0.02 <= seen <= (outside + 2) / (launches + 1),
           f"the report says what was not watched: {seen}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
