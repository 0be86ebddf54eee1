#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The series of the JSON report: series.py TRACEGEN TSCOPE-REPORT. The expected values are those that tracegen
wrote."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from observed import json_of, run  # noqa: E402

TRACEGEN, REPORT = sys.argv[1:3]


def report_of(*options):
    with tempfile.TemporaryDirectory(prefix="tscope-series-") as folder:
        run(TRACEGEN, *options, folder)
        with open(f"{folder}/synthetic.truth.json", encoding="utf-8") as file:
            return json_of(REPORT, folder), json.load(file)


def mean(values):
    return sum(values) / len(values)


class Series(unittest.TestCase):
    def parts_add_up(self, arrays):
        for wall, *parts in zip(arrays["wall_ms"], arrays["compute_ms"], arrays["exposed_ms"],
                                arrays["exposed_copy_ms"], arrays["idle_ms"]):
            if parts[0] is not None:  # five digits each
                self.assertAlmostEqual(sum(parts), wall, delta=wall * 1e-4)
        for exposed, *parts in zip(arrays["exposed_ms"], arrays["exposed_wait_ms"],
                                   arrays["exposed_transfer_ms"]):
            if exposed is not None:
                self.assertAlmostEqual(sum(parts), exposed, delta=exposed * 1e-4)

    def test_every_step_and_rank_of_a_small_run(self):
        report, truth = report_of("--ranks", "4", "--steps", "40", "--slow-rank", "2")
        steps, table = report["series"]["steps"], report["series"]["by_rank"]
        self.assertEqual((steps["steps_per_point"], table["steps_per_column"]), (1, 1))
        self.assertEqual(steps["step"], list(range(40)))
        warmup = report["steps"]["warmup_excluded"]
        self.assertEqual(table["step"], list(range(warmup, 40)))
        self.assertEqual(steps["compute_ms"][:warmup], [None] * warmup)  # left out, not zero
        self.assertEqual([row["rank"] for row in table["rows"]], [0, 1, 2, 3])
        self.assertEqual(table["ranks_joined"], 0)
        self.parts_add_up(steps)
        for row, known in zip(table["rows"], report["overlap"]["by_rank"]):
            self.parts_add_up(row)
            self.assertAlmostEqual(mean(row["exposed_ms"]) / known["exposed_ms"], 1, delta=1e-4)
            self.assertEqual(row["memory_bytes"], [])  # not recorded
        self.assertAlmostEqual(mean(steps["exposed_wait_ms"][warmup:]) /
                               report["overlap"]["exposed_wait_ms"], 1, delta=1e-4)
        late = [mean(row["late_ms"]) for row in table["rows"]]
        self.assertEqual(late.index(max(late)), 2)
        for row, wrote in zip(table["rows"], truth["per_rank"]):  # the true means include warm-up
            self.assertAlmostEqual(mean(row["compute_ms"]) / wrote["compute_ms"], 1, delta=0.002)

    def test_phases_of_every_step_and_rank(self):
        """tracegen writes a forward pass of 0.1 ms and a backward pass of 0.132 ms into each step."""
        report, _ = report_of("--ranks", "4", "--steps", "40", "--phases", "--slow-rank", "2")
        for row in report["series"]["by_rank"]["rows"]:
            for key in ("forward_ms", "backward_ms", "optimizer_ms"):
                self.assertEqual(len(row[key]), len(row["wall_ms"]))
                self.assertAlmostEqual(mean(row[key]) / report["phases"][key], 1, delta=0.01)
            self.assertAlmostEqual(mean(row["forward_ms"]), 0.1, delta=1e-3)
            self.assertAlmostEqual(mean(row["backward_ms"]), 0.132, delta=1e-3)

    def test_the_worst_of_many_ranks_has_its_own_row(self):
        report, _ = report_of("--ranks", "130", "--steps", "12", "--slow-rank", "77", "--buckets", "1",
                              "--kernels", "1")
        table = report["series"]["by_rank"]
        rows = table["rows"]
        self.assertLessEqual(len(rows), 100)
        self.assertEqual(sum(row["ranks"] for row in rows), 130)
        self.assertEqual(table["ranks_joined"], 105)
        reached = 0
        for row in rows:  # in order, none missing, no duplicates
            self.assertEqual(row["rank"], reached)
            self.assertEqual(row["last_rank"], row["rank"] + row["ranks"] - 1)
            reached = row["last_rank"] + 1
        self.assertEqual([row["ranks"] for row in rows if row["rank"] == 77], [1])

    def test_the_slowest_of_many_steps_are_kept(self):
        report, _ = report_of("--ranks", "2", "--steps", "4500", "--buckets", "1", "--kernels", "1")
        steps, table = report["series"]["steps"], report["series"]["by_rank"]
        self.assertEqual((steps["steps_per_point"], table["steps_per_column"]), (3, 3))
        self.assertEqual(len(steps["step"]), 1500)
        for i, step in enumerate(steps["step"]):
            self.assertIn(step, range(3 * i, 3 * i + 3))
        self.assertEqual(report["steps"]["count"], 4500)

    def test_without_steps_there_is_none(self):
        report, _ = report_of("--ranks", "2", "--steps", "1", "--no-gpu-spans", "--buckets", "1")
        steps = report["series"]["steps"]
        if report["steps"]["count"] == 0:
            self.assertIsNone(steps["steps_per_point"])
        self.assertEqual(len(steps["step"]), report["steps"]["count"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
