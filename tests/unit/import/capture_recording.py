#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's profiler records how a server captures CUDA graphs: capture_recording.py TSCOPE-REPORT. Calls in a capture
put nothing on the GPU, so it is idle: no fault of the host's launching. The truth is the schedule that is written here."""
import functools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of, ids_of  # noqa: E402
from profiler_file import event, report_on_events  # noqa: E402

REPORT = sys.argv[1]
WORK, CAPTURE, GRAPHS = 20, 480, 4  # us; one graph after the other, each after some work of its own
LATE = 5  # from a launch to its kernel
INSTANTIATE = 60


def call(name, at, correlation, took=2, thread=1):
    return event("cuda_runtime", name, at, took, tid=thread, correlation=correlation)


def launch(at, correlation, took, thread=1):
    return [call("cudaLaunchKernel", at, correlation, thread=thread),
            event("kernel", "gemm", at + LATE, took, stream=7, correlation=correlation)]


def recording(prefix):
    """Work, capture, work, capture, ...: what is launched within a capture never runs."""
    events, at = [], 1000
    for i in range(GRAPHS):
        number = 100 * (i + 1)
        events += launch(at, number, WORK)
        at += LATE + WORK
        events.append(call(f"{prefix}StreamBeginCapture", at, number + 1))
        events += [call(f"{prefix}LaunchKernel", at + 10 + 4 * k, number + 2 + k) for k in range(40)]
        events.append(call(f"{prefix}StreamEndCapture", at + CAPTURE - 2, number + 90))
        events.append(call(f"{prefix}GraphInstantiateWithFlags", at + CAPTURE, number + 91, took=INSTANTIATE))
        at += CAPTURE + INSTANTIATE
    return events + launch(at, 9000, WORK)


report_of = functools.partial(report_on_events, REPORT)


class Capturing(unittest.TestCase):
    def test_it_is_told_as_such(self):
        for prefix in ("cuda", "hip"):
            report = report_of(recording(prefix))
            made = GRAPHS * (CAPTURE + INSTANTIATE) / 1e3
            budget = {line["name"]: line for line in report["budget"]["lines"]}
            self.assertAlmostEqual(1e3 * budget["capturing CUDA graphs"]["seconds"], made, places=3)
            self.assertIsNone(budget["capturing CUDA graphs"]["recoverable"])
            idle = report["gpu_timeline"]["idle_by_cause"]
            self.assertAlmostEqual(idle["capturing_ms"], made, places=3)
            self.assertAlmostEqual(idle["host_bound_ms"], GRAPHS * 0.002, places=3)  # the calls themselves
            self.assertEqual(report["launches"]["kernels"], GRAPHS + 1)

    def test_nothing_is_advised_for_it(self):
        report = report_of(recording("cuda"))
        self.assertEqual([one["id"] for one in report["findings"] if one["id"] in ("KERNEL.LAUNCH_BOUND", "EFFICIENCY.RECOVERABLE")],
                         [])
        self.assertIn("how busy the devices are", [one["what"] for one in report["undecided"]])
        gain = {row["change"]: row["saving_fraction"] for row in report["critical_path"]["what_if"]}
        self.assertLess(gain["no launch gaps"], 0.05)

    def test_without_a_capture_the_host_is_what_holds_it_up(self):
        events = [one for one in recording("cuda") if "Capture" not in one["name"] and "Instantiate" not in one["name"]]
        report = report_of(events)
        self.assertIn("EFFICIENCY.RECOVERABLE", ids_of(report))
        self.assertEqual(report["gpu_timeline"]["idle_by_cause"]["capturing_ms"], 0)

    def test_again_and_again_in_steps_is_told(self):
        """Each of 12 steps captures; or only the first two do, which is start-up."""
        for captures in (12, 2):
            events, at = [], 1000
            for step in range(12):
                begin, number = at, 100 * (step + 1)
                events += launch(at, number, 1000)
                at += LATE + 1000
                if step < captures:
                    events.append(call("cudaStreamBeginCapture", at, number + 1))
                    events.append(call("cudaStreamEndCapture", at + CAPTURE - 2, number + 90))
                    events.append(call("cudaGraphInstantiateWithFlags", at + CAPTURE, number + 91, took=INSTANTIATE))
                at += CAPTURE + INSTANTIATE + 10
                events.append(event("user_annotation", f"ProfilerStep#{step}", begin - 1, at - begin))
            told = findings_of(report_of(events), "KERNEL.RECAPTURE")
            self.assertEqual(len(told), captures == 12)
            if told:
                steps = int(told[0]["title"].split(" of ")[1].split()[0])
                self.assertAlmostEqual(told[0]["saving_s"] / steps, (CAPTURE + INSTANTIATE) / 1e6, delta=2e-5)

    def test_another_thread_launches_meanwhile(self):
        """In its relaxed mode only the thread that captures launches nothing."""
        events = recording("cuda")
        at = 1000 + LATE + WORK + 100
        report = report_of(events + launch(at, 50000, 50, thread=2))
        self.assertEqual(report["launches"]["kernels"], GRAPHS + 2)
        idle = report["gpu_timeline"]["idle_by_cause"]
        self.assertAlmostEqual(idle["capturing_ms"], (GRAPHS * (CAPTURE + INSTANTIATE) - 50 - LATE) / 1e3, delta=0.0021)

    def test_what_is_captured_last_is_no_work_that_was_lost(self):
        for lost in False, True:
            events = [one for one in recording("cuda")[:-2] if not lost or "Capture" not in one["name"]]
            notes = report_of(events)["quality"]["notes"]
            self.assertEqual([note for note in notes if "NO WORK OF DEVICES" in note] != [], lost, notes)

    def test_a_recording_that_begins_or_ends_in_a_capture(self):
        whole = recording("cuda")
        for name in ("cudaStreamBeginCapture", "cudaStreamEndCapture"):
            events = list(whole)
            places = [i for i, one in enumerate(events) if one["name"] == name]
            del events[places[0] if "Begin" in name else places[-1]]
            idle = report_of(events)["gpu_timeline"]["idle_by_cause"]
            self.assertGreater(idle["capturing_ms"], GRAPHS * CAPTURE / 1e3 - 0.01)


unittest.main(argv=sys.argv[:1], verbosity=1)
