#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One process on a CPU, as PyTorch's profiler records it with stacks: cpu_recording.py TSCOPE-REPORT. It makes no call
that waits, launches or communicates, and marks neither its forward nor its backward passes. The truth is the schedule
that is written here."""
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of  # noqa: E402
from observed import json_of  # noqa: E402
import profiler_file  # noqa: E402

REPORT = sys.argv[1]
STEPS, LOAD, FORWARD, BACKWARD, OPTIMIZER = 14, 12, 50, 110, 28  # ms
STEP = LOAD + FORWARD + BACKWARD + OPTIMIZER
PID = 4000


def event(category, name, start, ms, **args):
    return profiler_file.event(category, name, 1e9 + 1e3 * start, 1e3 * ms, PID, PID, **args)


def function(name, start, ms):
    return event("python_function", name, start, ms)


def recording(loads=("train.py(5): load",), within=None):
    """`loads` share the time before the forward pass, called by `within`, or else by the loop itself."""
    events = [function("train.py(20): <module>", 0, STEPS * STEP)]
    for i in range(STEPS):
        at = i * STEP
        events += [function(within, at, LOAD)] if within else []
        for name in loads:
            events.append(function(name, at, LOAD / len(loads)))
            at += LOAD / len(loads)
        events += [function("train.py(9): step", at, FORWARD + BACKWARD + OPTIMIZER),
                   function("torch/nn/modules/module.py(1783): _call_impl", at, FORWARD),
                   function("nn.Module: Linear_0", at, FORWARD),
                   event("cpu_op", "aten::addmm", at, FORWARD, **{"Sequence number": i, "Fwd thread id": 0})]
        at += FORWARD
        events += [function("torch/_tensor.py(600): backward", at, BACKWARD),
                   event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", at, BACKWARD,
                         **{"Sequence number": i, "Fwd thread id": 1})]
        at += BACKWARD
        events.append(event("user_annotation", "Optimizer.step#SGD.step", at, OPTIMIZER))
    return events


PARTS = ("data.py(30): read", "data.py(40): decode", "data.py(50): augment")


class WorkOfSeveralFunctions(unittest.TestCase):
    def outside(self, within):
        with tempfile.TemporaryDirectory(prefix="tscope-cpu-") as folder:
            report = json_of(REPORT, profiler_file.write(os.path.join(folder, "cpu.json"), recording(PARTS, within)))
        found, = findings_of(report, "TIMING.OUTSIDE_PHASES")
        return found

    def test_the_function_that_calls_them_is_named(self):
        found = self.outside("data.py(10): batch")
        self.assertIn("mostly in batch() (data.py:10)", found["title"])
        self.assertIn("in batch() (data.py:10), with all that it calls, for 100 %", found["evidence"])
        self.assertRegex(found["evidence"], r"in 3\d % at data.py:[345]0")
        self.assertIn("Look at data.py:10 first", found["action"])

    def test_the_loop_that_also_trains_is_not(self):
        found = self.outside(None)
        self.assertRegex(found["title"], "longest at data.py:[345]0")


class CpuRecording(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory(prefix="tscope-cpu-") as folder:
            path = profiler_file.write(os.path.join(folder, "cpu.json"), recording())
            self.report = json_of(REPORT, path)
            database = os.path.join(folder, "run.db")
            subprocess.run([REPORT, "--format", "sqlite", "--output", database, path], check=True)
            with contextlib.closing(sqlite3.connect(database)) as tables:
                self.operators = tables.execute("SELECT DISTINCT name, source_line FROM calls WHERE kind = 'operator'").fetchall()

    def test_lines_by_samples_alone(self):
        lines = {(line["place"], line["function"]): line["host_ms"] for line in self.report["lines"]["lines"]}
        self.assertAlmostEqual(lines["train.py:5", "load"], LOAD, delta=0.2)
        self.assertAlmostEqual(lines["train.py:9", "step"], STEP - LOAD, delta=0.2)

    def test_each_operator_has_the_line_of_its_function(self):
        lines = dict(self.operators)
        self.assertEqual(lines["aten::addmm"], "train.py:9")
        self.assertEqual(set(lines.values()), {"train.py:9"}, lines)

    def test_forward_and_backward_are_not_outside_the_phases(self):
        found, = findings_of(self.report, "TIMING.OUTSIDE_PHASES")
        self.assertIn("mostly at train.py:5", found["title"])
        per_step = 1e3 * found["saving_s"] / self.report["steps"]["training"]
        self.assertAlmostEqual(per_step, LOAD, delta=0.2)

    def test_an_operator_within_a_phase_pays(self):
        pays = {row["name"]: row for row in self.report["critical_path"]["pays"] if row["kind"] == "operator"}
        for name, ms in (("aten::addmm", FORWARD), ("autograd::engine::evaluate_function: AddmmBackward0", BACKWARD)):
            self.assertAlmostEqual(pays[name]["saves_at_0"], ms / STEP, delta=0.002, msg=name)
            self.assertAlmostEqual(pays[name]["path_ms"], ms, delta=0.2, msg=name)


del sys.argv[1:]
unittest.main()
