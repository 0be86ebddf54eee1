#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies that compute hides save nothing, also where no replay can be relied on: hidden_copies.py TSCOPE-REPORT. In this
recording work waits for something that is not recorded. The truth is the schedule that is written here."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of  # noqa: E402
from profiler_file import event, report_on_events  # noqa: E402

REPORT = sys.argv[1]
STEPS, COMPUTE, COPY, SHOWN, AWAY = 8, 400, 300, 40, 900  # us


def recording():
    """In each step a kernel, a copy beside it that ends SHOWN later than it begins alone, and a second kernel that begins
    long after it could, while the copy's stream does a little."""
    events, at, number = [], 1000, 0
    for step in range(STEPS):
        length = COMPUTE + SHOWN + AWAY + COMPUTE
        events.append(event("user_annotation", f"ProfilerStep#{step}", at, length))
        works = [("kernel", "gemm", 7, 10, COMPUTE), ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 8, 20, COPY),
                 ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 8, 10 + COMPUTE, SHOWN),
                 ("kernel", "small", 9, 10 + COMPUTE + SHOWN + AWAY // 2, 20),
                 ("kernel", "gemm", 7, 10 + COMPUTE + SHOWN + AWAY, COMPUTE - 20)]
        for k, (category, name, stream, begin, took) in enumerate(works):
            number += 1
            call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
            events += [event("cuda_runtime", call, at + 1 + k, 1, correlation=number),
                       event(category, name, at + begin, took, stream=stream, correlation=number,
                             **({"bytes": 4096} if "mem" in category else {}))]
        number += 1
        events.append(event("cuda_runtime", "cudaDeviceSynchronize", at + 8, length - 10, correlation=number))
        at += length
    return events


class HiddenCopies(unittest.TestCase):
    def test_only_what_is_exposed_is_worth_something(self):
        report = report_on_events(REPORT, recording())
        self.assertIsNotNone(report["critical_path"]["what_if_reason"])
        copies, = findings_of(report, "KERNEL.COPY")
        exposed = report["gpu_timeline"]["exposed_memcpy_ms"] / STEPS
        self.assertAlmostEqual(exposed, SHOWN / 1e3, delta=1e-6)
        steps = report["steps"]["training"]
        self.assertLessEqual(copies["saving_s"], 1.01e-3 * exposed * steps)
        self.assertGreater(copies["saving_s"], 0.9e-3 * exposed * steps)


unittest.main(argv=sys.argv[:1], verbosity=1)
