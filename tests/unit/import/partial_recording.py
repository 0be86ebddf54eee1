#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of which parts are missing: partial_recording.py TSCOPE-REPORT. Of files that are cut short, of profilers that
pause, of ranks and devices that were not recorded. The truth is that of the whole job, see training_recording.py."""
import bisect
import json
import os
import sys
import tempfile
import unittest

from training_recording import (STREAM, Expecting, as_fast, gather_layers, job, pass_around, pass_stages, report_of,
                                report_on, run, write)
from findings import findings_of, ids_of


def step_of(j):
    """In which step of its rank an event is."""
    begins = [[event["ts"] for event in rank.events if event["name"].startswith("ProfilerStep")] for rank in run(j)[0]]
    return lambda event: bisect.bisect_right(begins[event["pid"] % 1000], event["ts"]) - 1


class Partial(Expecting):
    def report_of_cut(self, j, rank, part):
        with tempfile.TemporaryDirectory(prefix="tscope-training-") as folder:
            step = write(j, folder)
            file = os.path.join(folder, f"rank{rank}.pt.trace.json")
            os.truncate(file, int(os.path.getsize(file) * part))
            return step, report_on(folder)

    def test_a_recording_that_ends_early_takes_nothing_from_others_nor_from_its_rank(self):
        slow = {1: 1.2}
        j = job(steps=16, slow=slow)
        for cut in 0, 1:
            step, report = self.report_of_cut(j, cut, 0.5)
            found = report["findings"][0]
            self.assertEqual((found["id"], found["ranks"]), ("DIST.STRAGGLER", [1]))
            for saved in [row["saving_fraction"] for row in report["critical_path"]["what_if"] if "as fast as" in row["change"]]:
                self.assertAlmostEqual(saved, 1 - run(j, as_fast(slow))[1] / step, delta=0.01)

    def test_where_few_steps_are_left_of_a_rank_they_tell(self):
        """But not two of them, nor is what the others then wait for it any transfer."""
        slow = {3: 1.25}
        j = job(steps=16, ranks=8, slow=slow)
        for part in 0.3, 0.4:
            step, report = self.report_of_cut(j, 3, part)
            found = report["findings"][0]
            self.assertEqual((found["id"], found["ranks"]), ("DIST.STRAGGLER", [3]))
            self.assertRegex(found["title"], ": slow compute$")
            saved, = [row["saving_fraction"] for row in report["critical_path"]["what_if"] if row["change"].startswith("rank 3")]
            for one in saved, found["saving_s"] * 1e6 / report["steps"]["training"] / step:
                self.assertAlmostEqual(one, 1 - run(j, as_fast(slow))[1] / step, delta=0.01)
        _, report = self.report_of_cut(j, 3, 0.15)
        other, = [one for one in report["findings"] if one["id"] != "DATA.PARTIAL"]
        self.assertIn("waits for ranks without a record of it included", other["title"])
        self.assertIsNone(other["saving_s"])
        self.assertEqual([row for row in report["critical_path"]["what_if"] if row["change"].startswith("rank 3")], [])

    def test_stages_of_which_one_recording_ends_early(self):
        """That of the slow stage, or of its neighbour: what others wait for is not known in the other steps."""
        slow = {1: 1.5}
        j = job(schedule=pass_stages, layers=2, transfer=100, slow=slow, steps=16)
        for cut in 1, 2:
            for part in 0.3, 0.5, 0.7:
                step, report = self.report_of_cut(j, cut, part)
                found = report["findings"][0]
                self.assertEqual((found["id"], found["ranks"]), ("DIST.PIPELINE_BUBBLE", [1]))
                self.assertAlmostEqual(found["saving_s"] * 1e6 / report["steps"]["training"] / step, 1 - run(j, as_fast(slow))[1] / step,
                                       delta=0.01)

    def test_a_rank_whose_device_is_not_recorded_to_the_end(self):
        """As of a file that is cut short: exporters write the devices' work last. What the host does then tells nothing."""
        slow = {1: 1.3}
        for more, finding in (({}, "DIST.STRAGGLER"), ({"schedule": gather_layers, "transfer": 200}, "DIST.STRAGGLER"),
                              ({"schedule": pass_stages, "layers": 2, "transfer": 100}, "DIST.PIPELINE_BUBBLE"),
                              ({"marks": False, "steps": 24}, "DIST.STRAGGLER")):
            for cut in 1, 2:
                j = job(**{"steps": 16, "slow": slow, **more})
                half = max(event["ts"] for event in run(j)[0][cut].events) / 2
                j.lost = lambda event, cut=cut, half=half: event["pid"] == cut and event["ts"] > half
                step, report = report_of(j)
                found = report["findings"][0]
                self.assertEqual((found["id"], found["ranks"]), (finding, [1]), report["findings"])
                self.assertAlmostEqual(found["saving_s"] * 1e6 / report["steps"]["training"] / step, 1 - run(j, as_fast(slow))[1] / step,
                                       delta=0.01)
                self.assertTrue([note for note in report["quality"]["notes"] if "NO WORK OF DEVICES" in note])

    def test_a_file_that_is_cut_short_where_its_calls_and_its_devices_work_come_last(self):
        """As PyTorch writes it: operators and steps, all of them, then what is left of calls and kernels, in order of time."""
        slow = {1: 1.3}
        j = job(steps=16, slow=slow)
        truth = 1 - run(j, as_fast(slow))[1] / run(j)[1]
        for cut in 1, 2:
            for left in 0.5, 0.8:
                with tempfile.TemporaryDirectory(prefix="tscope-partial-") as folder:
                    step = write(j, folder)
                    path = os.path.join(folder, f"rank{cut}.pt.trace.json")
                    with open(path, encoding="utf-8") as file:
                        document = json.load(file)
                    host, others = [], []
                    for event in sorted(document["traceEvents"], key=lambda event: event["ts"]):
                        (host if event["cat"] in ("cpu_op", "user_annotation") else others).append(event)
                    document["traceEvents"] = host + others[:int(len(others) * left)]
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(json.dumps(document)[:-2])
                    report = report_on(folder)
                found = report["findings"][0]
                self.assertEqual((found["id"], found["ranks"]), ("DIST.STRAGGLER", [1]), report["findings"])
                self.assertAlmostEqual(found["saving_s"] * 1e6 / report["steps"]["training"] / step, truth, delta=0.01)
                self.assertTrue([note for note in report["quality"]["notes"] if "NO WORK OF DEVICES" in note])

    def test_work_that_is_lost_in_the_middle(self):
        """Of the slow rank, once or twice, and what was under way at the end; or of all ranks. The rest tells what it is worth."""
        slow = {2: 1.3}
        for ranks, lost, last, known in (((), (), (), 39), ([2], range(12, 28), (), 23), ([2], [*range(3, 14), *range(18, 38)], (), None),
                                         ([2], range(12, 28), (39,), 23), (range(4), range(10, 20), (), None)):
            j = job(steps=40, layers=8, buckets=4, forward=400, backward=500, transfer=200, optimizer=150, slow=slow)
            step = step_of(j)
            j.lost = lambda event, ranks=ranks, lost=lost, last=last, step=step: event["args"].get("stream") == STREAM and (
                event["pid"] in ranks and step(event) in lost or step(event) in last and "AdamW" in event["name"])
            report = self.expect(j, "DIST.STRAGGLER", as_fast(slow), [2])
            self.assertRegex(report["findings"][0]["title"], "slow compute")
            self.assertNotIn("KERNEL.LATE_START", ids_of(report))
            if known:
                self.assertEqual(report["critical_path"]["steps"], known)

    def test_work_before_the_first_step_is_of_none(self):
        """As an evaluation before training."""
        slow = {2: 1.3}
        report = self.expect(job(steps=40, slow=slow, before={2: 64}), "DIST.STRAGGLER", as_fast(slow), [2])
        self.assertIn("as often as its peers", report["findings"][0]["evidence"])

    def test_messages_of_which_the_sides_are_not_recorded(self):
        """As in older versions of PyTorch: no saving is promised."""
        j = job(schedule=pass_around, layers=3, transfer=100, slow={2: 1.3}, lost=lambda event: event["name"] == "record_param_comms")
        _, report = report_of(j)
        self.assertIn("between which ranks", report["critical_path"]["what_if_reason"])

    def test_what_is_waited_for_without_a_recording_is_no_transfer(self):
        with tempfile.TemporaryDirectory(prefix="tscope-training-") as folder:
            write(job(ranks=24, layers=4, slow={5: 1.25}), folder)
            for rank in set(range(24)) - {0, 8, 16}:
                os.unlink(os.path.join(folder, f"rank{rank}.pt.trace.json"))
            found, = findings_of(report_on(folder), "DIST.EXPOSED_COMM")
        self.assertIn("waits for ranks without a record of it included", found["title"])
        self.assertIsNone(found["saving_s"])

    def test_what_is_waited_for_without_the_device_is_no_transfer(self):
        """Of the slow rank only operators are left."""
        _, report = report_of(job(slow={1: 1.3}, lost=lambda event: event["pid"] == 1 or event["pid"] == 1001 and event["cat"] == "cuda_runtime"))
        found, = [one for one in report["findings"] if one["id"] != "DATA.PARTIAL"]
        self.assertIn("waits for ranks without a record of it included", found["title"])
        self.assertIn(f"({found['title'].split(' of each step')[0]} of the step)", found["evidence"])
        self.assertIsNone(found["saving_s"])

    def test_a_recording_that_pauses(self):
        """What was not recorded is no step, and nobody's time outside the phases."""
        slow = {1: 1.2}
        j = job(steps=14, slow=slow)
        _, step = run(j)
        j.lost = lambda event: 5 * step < event["ts"] < 7.01 * step
        report = self.expect(j, "DIST.STRAGGLER", as_fast(slow), [1])
        self.assertEqual(report["steps"]["count"], 6)
        self.assertTrue([note for note in report["quality"]["notes"] if "the recording pauses between steps" in note])

    def test_of_a_recording_that_pauses_all_ranks_have_the_same_part(self):
        """One rank's ends early in the longer part: all have the shorter one, whoever is slow."""
        slow = {1: 1.2}
        j = job(steps=14, slow=slow)
        step = step_of(j)
        for ends_early in 0, 1:
            j.lost = lambda event, early=ends_early: step(event) in (5, 6) or (step(event) > 9 and event["pid"] % 1000 == early)
            report = self.expect(j, "DIST.STRAGGLER", as_fast(slow), [1])
            self.assertEqual(report["steps"]["count"], 5)

    def test_a_part_that_claims_numbers_beyond_all_takes_no_steps_from_others(self):
        """Nor does a rank without marks."""
        j = job(steps=14)
        _, step = run(j)
        j.lost = lambda event: 5 * step < event["ts"] < 7.01 * step
        others = {0: {18: "ProfilerStep#-1"}, 1: dict.fromkeys(range(10, 15), "work"), 3: dict.fromkeys(range(10, 24), "work")}
        with tempfile.TemporaryDirectory(prefix="tscope-partial-") as folder:
            write(j, folder)
            for rank, names in others.items():
                path = os.path.join(folder, f"rank{rank}.pt.trace.json")
                with open(path, encoding="utf-8") as file:
                    document = json.load(file)
                for event in document["traceEvents"]:
                    if event["name"].startswith("ProfilerStep#"):
                        event["name"] = names.get(int(event["name"].split("#")[1]), event["name"])
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(document, file)
            steps = report_on(folder)["steps"]
        self.assertEqual((steps["count"], steps["method"]), (6, "ProfilerStep annotations"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
