#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads logs of training values with tscope-report: convergence_logs.py TSCOPE-REPORT.

A formula makes the loss of each run below; the seed is fixed.
"""
import csv
import io
import json
import math
import os
import random
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of, ids_of  # noqa: E402
from in_folder import InFolder  # noqa: E402
from observed import json_of  # noqa: E402

REPORT = sys.argv[1]


def falling(n=400, noise=0.01, seed=1):
    rng = random.Random(seed)
    return [2 + 8 * math.exp(-i / 120) + rng.gauss(0, noise) for i in range(n)]


def norms(n=400, seed=2):
    rng = random.Random(seed)
    return [1 + rng.gauss(0, 0.05) for _ in range(n)]


def spiked(values, steps, factor):
    return [value * (factor if i in steps else 1) for i, value in enumerate(values)]


class Logs(InFolder):
    def write(self, text, name):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def report(self, *arguments):
        return json_of(REPORT, *arguments)

    def lines(self, **columns):
        rows = zip(*columns.values())
        return "".join(json.dumps({"step": i, **dict(zip(columns, row))}) + "\n" for i, row in enumerate(rows))

    def of(self, **columns):
        return self.report(self.write(self.lines(**columns), "metrics.jsonl"))

    def test_a_loss_beside_the_main_one_that_breaks_is_a_warning(self):
        even, nan = falling(60), float("nan")
        broken = even[:30] + [nan] * 30
        printed = "".join(f"step {i} loss {value:.4f} box_loss {part}\n" for i, (value, part) in enumerate(zip(even, broken)))
        parted = printed.replace("box_loss", "loss_box").replace(" loss ", " total loss ")
        for text, name, beside in ((self.lines(loss=even, val_loss=broken), "m.jsonl", "val_loss"), (printed, "a.log", "box_loss"),
                                   (parted, "b.log", "loss_box")):
            document = self.report(self.write(text, name))
            found = findings_of(document, "CONVERGENCE.DIVERGED")
            self.assertEqual([f["severity"] for f in found], ["warning"], text[-60:])
            self.assertIn(f'"{beside}" is not a number from step 30 on', found[0]["title"])
            self.assertEqual(document["convergence"]["verdict"], "falling")

    def test_a_log_that_is_named_and_in_a_folder_that_is_named_counts_once(self):
        path = self.write(self.lines(loss=falling(60)), "metrics.jsonl")
        self.assertEqual([entry["files"] for entry in self.report(self.folder, path)["run"]["inputs"]], [1])

    def test_a_place_for_a_loss_that_is_not_known_yet_is_no_finding(self):
        even, nan = falling(60), float("nan")
        rare = [value if i % 10 == 9 else nan for i, value in enumerate(even)]
        for values in ([nan] * 60, [nan] * 20 + even[20:], rare):
            self.assertNotIn("CONVERGENCE.DIVERGED", ids_of(self.of(loss=even, val_loss=values)))

    # The same run in each format that logs have.

    LOSS, NORM, RATE = [3.5, 3.0, 2.5], [1.0, 2.0, 0.5], [1e-4, 2e-4, 3e-4]

    def check(self, text, name, steps=(10, 20, 30), norm=True, rate=True, given=False):
        path = self.write(text, name)
        c = self.report(path if given else self.folder)["convergence"]
        os.remove(path)
        rows = {row["role"]: row for row in c["series"]}
        self.assertEqual([rows["loss"][k] for k in ("values", "first", "last", "best")], [3, 3.5, 2.5, 2.5], name)
        self.assertEqual([rows["loss"]["first_step"], rows["loss"]["last_step"]], [steps[0], steps[-1]], name)
        self.assertEqual("gradient norm" in rows, norm, name)
        if norm:
            self.assertEqual([rows["gradient norm"]["first"], rows["gradient norm"]["last"]], [1.0, 0.5], name)
        self.assertEqual("learning rate" in rows, rate, name)
        if rate:
            self.assertAlmostEqual(rows["learning rate"]["last"], 3e-4)
        return c

    def rows(self):
        return zip((10, 20, 30), self.LOSS, self.NORM, self.RATE)

    def test_shapes_of_logs(self):
        rows = list(self.rows())
        self.check("".join(json.dumps({"step": s, "loss": l, "grad_norm": g, "lr": r}) + "\n" for s, l, g, r in rows),
                   "a.jsonl")
        self.check("".join(json.dumps({"_step": s, "train": {"loss": l, "grad_norm": g, "lr": r}}) + "\n"
                           for s, l, g, r in rows), "b.jsonl")
        named = [{"name": n, "value": v, "step": s} for s, l, g, r in rows
                 for n, v in (("train/loss", l), ("grad_norm", g), ("lr", r))]
        self.check("".join(json.dumps(one) + "\n" for one in named), "c.jsonl")
        for delimiter, name in ((",", "d.csv"), ("\t", "e.tsv"), (";", "f.csv")):
            out = io.StringIO()
            table = csv.writer(out, delimiter=delimiter)
            table.writerow(["epoch", "step", "train_loss", "grad_norm", "learning_rate"])
            for s, l, g, r in rows:
                table.writerow([0, s, l, "", ""])
                table.writerow([0, s, "", g, r])
            self.check(out.getvalue(), name)
        self.check('"Step","run - train/loss"\n' + "".join(f'"{s}","{l}"\n' for s, l, _, _ in rows), "g.csv",
                   norm=False, rate=False)
        state = {"best_metric": None, "epoch": 1.0, "global_step": 30, "log_history":
                 [{"epoch": 0.1, "loss": l, "grad_norm": g, "learning_rate": r, "step": s} for s, l, g, r in rows] +
                 [{"eval_loss": 2.75, "eval_runtime": 3.0, "step": 30}]}
        c = self.check(json.dumps(state, indent=2), "trainer_state.json")
        self.assertEqual([row["last"] for row in c["series"] if row["role"] == "evaluation loss"], [2.75])

    def test_lines_for_people(self):
        rows = list(self.rows())
        self.check("".join(f" iteration {s:8d}/  500 | elapsed time per iteration (ms): 12.5 | learning rate: {r:.3E} | "
                           f"lm loss: {l:.6E} | loss scale: 1.0 | grad norm: {g:.3f} |\n" for s, l, g, r in rows), "a.log")
        self.check("".join(f"step {s}: loss {l:.4f}, grad norm {g}, lr {r:.1e}, 12.5ms\n" for s, l, g, r in rows), "b.txt")
        self.check("".join(f"\033[31mstep: {s}  \033[32mloss: {l}  \033[33mgrad_norm: {g}  lr: {r}\033[39m\n"
                           for s, l, g, r in rows), "c.out")
        self.check("".join(str({"loss": l, "grad_norm": g, "learning_rate": r, "epoch": 0.1}) + "\n"
                           for s, l, g, r in rows), "d.log", steps=(0, 1, 2))
        self.check("".join(str({"loss": str(l), "grad_norm": str(g), "learning_rate": str(r)}) + "\n"
                           for s, l, g, r in rows), "e.log", steps=(0, 1, 2))
        bar = "".join(f"\rEpoch 0:  {s}%|#   | {s}/100 [00:01<00:09,  9.50it/s, v_num=0, train_loss={l}]" for s, l, _, _ in rows)
        self.check(bar + "\n", "f.log", norm=False, rate=False)
        self.check("starting\n" + "".join(f"loss={l}\n" for _, l, _, _ in rows), "anything", steps=(0, 1, 2),
                   norm=False, rate=False, given=True)

    def test_a_folder_of_pytscope(self):
        """As RunStore of pytscope 0.2 writes it: rank<k>/run.json and steps.jsonl."""
        losses = falling(60)
        losses[40:] = [math.nan] * 20
        for rank in range(2):
            folder = os.path.join(self.folder, f"rank{rank}")
            os.makedirs(folder)
            with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as file:
                json.dump({"name": "test", "distributed": True}, file, indent=2)
            with open(os.path.join(folder, "steps.jsonl"), "w", encoding="utf-8") as file:
                for i, loss in enumerate(losses):
                    record = {"step": i, "timestamp": 1.7e9 + i / 4 + rank / 100 * i,
                              "phases": {"data": 0.01, "forward": 0.1, "comm": 0.05},
                              "scalars": {"loss": loss, "grad_norm": 1.0}, "memory": {"peak": 1e9}}
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")
        document = self.report(self.folder)
        rows = {row["role"]: row for row in document["convergence"]["series"]}
        self.assertEqual((rows["loss"]["name"], rows["loss"]["values"]), ("loss", 60))
        self.assertEqual(rows["loss"]["not_finite"], 20)
        self.assertIn("gradient norm", rows)
        self.assertIn("CONVERGENCE.DIVERGED", ids_of(document))
        self.assertEqual(document["verdict"], "critical")
        # a step every 250 ms on rank 0, every 260 ms on rank 1
        self.assertEqual(document["run"]["ranks_found"], [0, 1])
        self.assertEqual(document["steps"]["count"], 60)
        self.assertAlmostEqual(document["steps"]["median_ms"], 255, 2)
        phases = document["phases"]
        self.assertAlmostEqual(phases["data_ms"], 10, 2)
        self.assertAlmostEqual(phases["forward_ms"], 100, 2)
        self.assertAlmostEqual(phases["other_ms"], 145, 2)
        for unknown in (phases["backward_ms"], phases["optimizer_ms"], phases["comm_ms"],
                        document["overlap"]["comm_ms"], document["critical_path"]["length_ms"]):
            self.assertIsNone(unknown)
        self.assertEqual(document["distributed"]["stragglers"], [])

    def test_a_file_of_pytscope_with_two_runs(self):
        """Two runs in one file: 5 steps, then 20, of which the last record is cut off. There is no run.json."""
        records = [json.dumps({"step": i, "timestamp": 1.7e9 + at, "phases": {"forward": 0.05}})
                   for at, i in [(i, i) for i in range(5)] + [(100 + i / 10, i) for i in range(20)]]
        path = self.write("\n".join(records)[:-20], "steps.jsonl")
        document = self.report(path)
        self.assertEqual(document["steps"]["count"], 19)
        self.assertAlmostEqual(document["steps"]["median_ms"], 100, 2)
        notes = " ".join(document["quality"]["notes"])
        for said in ("5 steps are left out", "1 line of another form", "no readable run.json"):
            self.assertIn(said, notes)

    def test_a_run_of_pytscope_itself(self):
        """If pytscope is installed: compares its records with this report."""
        try:
            from pytscope import Profiler  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("pytscope is not installed")
        profiler = Profiler(os.path.join(self.folder, "run")).start()
        for _ in range(30):
            with profiler.step():
                sum(range(20000))
                profiler.mark("forward")
                sum(range(40000))
                profiler.mark("backward")
        profiler.finish()
        with open(os.path.join(self.folder, "run", "steps.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        document = self.report(self.folder)
        first = document["steps"]["warmup_excluded"]
        for phase in ("forward", "backward"):
            recorded = sum(record["phases"][phase] for record in records[first:]) / len(records[first:])
            self.assertAlmostEqual(document["phases"][f"{phase}_ms"], 1e3 * recorded, 4)
        self.assertEqual(document["steps"]["count"], 30)

    def test_a_loss_that_does_not_fall(self):
        rng = random.Random(3)
        rises = [2 * (1 + 0.22 * i / 299) + rng.gauss(0, 0.02) for i in range(300)]
        document = self.of(loss=rises)
        self.assertEqual(ids_of(document), ["CONVERGENCE.NOT_FALLING"])
        self.assertIn("rises: +19 %", document["findings"][0]["title"])
        stands = [2.3026 + rng.gauss(0, 0.002) for _ in range(300)]
        document = self.of(loss=stands)
        self.assertEqual(ids_of(document), ["CONVERGENCE.NOT_FALLING"])
        self.assertIn("has not moved", document["findings"][0]["title"])
        self.assertEqual(document["verdict"], "warning")
        # a rise at the beginning that ends, scatter without a trend, too few values, a slow fall
        hump = [2 + (0.5 * i / 50 if i < 50 else 0.5 - 0.3 * (i - 50) / 250) for i in range(300)]
        scatter = [2 + rng.gauss(0, 0.3) for _ in range(40)]
        for loss in (hump, scatter, rises[:15], [3 - i / 1000 for i in range(300)]):
            self.assertNotIn("CONVERGENCE.NOT_FALLING", ids_of(self.of(loss=loss)))

    def test_a_log_without_values_is_undecided(self):
        for text, name in (("step 1 of 10\nstep 2 of 10\n", "a.log"),
                           (json.dumps({"step": 1, "note": "nothing"}) + "\n", "b.jsonl")):
            path = self.write(text, name)
            done = subprocess.run([REPORT, "--format", "json", "--fail-on", "warning", path],
                                  capture_output=True, text=True)
            if done.returncode == 2:  # not recognised as a log at all: also a correct answer
                self.assertIn(name, done.stderr)
                continue
            document = json.loads(done.stdout)
            self.assertEqual((done.returncode, document["verdict"]), (1, "warning"))
            self.assertEqual(ids_of(document), ["DATA.UNDECIDED"])

    def test_a_program_is_no_log(self):
        lines = "".join(f'print("step {step} loss: {3 - step / 10}")\n' for step in range(20))
        for name in ("train.py", "notes.md", "run.sh"):
            done = subprocess.run([REPORT, self.write(lines, name)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(name, done.stderr)

    def test_other_losses_are_not_the_loss(self):
        text = "step 1 aux loss: 0.1 balance_loss: 9 val loss: 5 loss: 2\n"
        c = self.report(self.write(text, "a.log"))["convergence"]
        self.assertEqual({row["role"]: row["last"] for row in c["series"]}, {"loss": 2, "evaluation loss": 5})

    def test_losses_with_names_of_their_own(self):
        nan = [float(step) if step < 20 else math.nan for step in range(30)]
        for text, name in (("loss_cls: 1 loss_bbox: {:.3f} iter: {}", "loss_bbox"),
                           ("d_loss: 1 g_loss: {:.3f} iter: {}", "g_loss"), ("[bceLoss={:.3f}] step={}", "bceLoss"),
                           ("loss_cls: 1 total_loss: {:.3f} iter: {}", "total_loss"),
                           ("weight_loss_coef: 1 critic.loss2 {:.3f} step {}", "critic.loss2")):
            lines = "".join(text.format(value, step) + "\n" for step, value in enumerate(nan))
            document = self.report(self.write(lines, "a.log"))
            self.assertEqual(ids_of(document), ["CONVERGENCE.DIVERGED"], text)
            row = next(row for row in document["convergence"]["series"] if row["role"] == "loss")
            self.assertEqual((row["name"], row["first_not_finite_step"]), (name, 20))
        events = "".join(json.dumps({"step": step, "Loss/generator": value}) + "\n" for step, value in enumerate(nan))
        self.assertEqual(ids_of(self.report(self.write(events, "a.jsonl"))), ["CONVERGENCE.DIVERGED"])

    def test_values_without_steps_are_called_values(self):
        lines = "".join(f"[{10 * i:4d}] loss: {2 - i / 10 if i < 6 else math.nan}\n" for i in range(10))
        document = self.report(self.write(lines, "a.log"))
        finding, = document["findings"]
        self.assertEqual(finding["title"], "The loss is not a number from value 6 on")
        self.assertNotIn("at step", finding["evidence"])
        self.assertEqual(document["convergence"]["series"][0]["counts"], "value")
        text = subprocess.run([REPORT, self.write(lines, "a.log")], capture_output=True, text=True).stdout
        self.assertIn("10 values, without a step", text)

    def test_names_with_loss_in_them_that_are_no_loss(self):
        for name in ("loss_weight", "loss_fn", "num_loss", "box_loss_1", "glossary", "lossless", "best_loss_so_far"):
            lines = "".join(f"step {step} {name}: nan loss: 2\n" for step in range(30))
            row, = self.report(self.write(lines, "a.log"))["convergence"]["series"]
            self.assertEqual((row["name"], row["last"]), ("loss", 2), name)
            done = self.report(self.write("step 1 loss 2\n" + lines.replace(" loss: 2", ""), "a.log"))["convergence"]
            self.assertEqual([row["values"] for row in done["series"]], [1], name)
        lines = "".join(f"step {step} {12 + step} ms loss: 2\n" for step in range(30))
        row, = self.report(self.write(lines, "a.log"))["convergence"]["series"]
        self.assertEqual(row["values"], 30)

    def test_steps_that_restart_in_each_epoch(self):
        text = "".join(json.dumps({"step": s, "loss": 5 - epoch - s / 10}) + "\n" for epoch in range(3) for s in range(5))
        row, = self.report(self.write(text, "a.jsonl"))["convergence"]["series"]
        self.assertEqual((row["values"], row["first_step"], row["last_step"]), (15, 0, 14))

    def test_a_run_that_continued_from_a_checkpoint(self):
        recorded = [(s, 5 - s / 10) for s in range(20)] + [(s, 2 - s / 100) for s in range(10, 30)]
        text = "".join(json.dumps({"step": s, "loss": loss}) + "\n" for s, loss in recorded)
        row, = self.report(self.write(text, "a.jsonl"))["convergence"]["series"]
        self.assertEqual((row["values"], row["first_step"], row["last_step"]), (30, 0, 29))
        self.assertAlmostEqual(row["best"], 2 - 29 / 100)

    # What the loss does.

    def test_a_good_run_has_no_finding(self):
        document = self.of(loss=falling(), grad_norm=norms())
        self.assertEqual(document["findings"], [])
        self.assertEqual(document["convergence"]["verdict"], "falling")

    def test_not_a_number(self):
        loss = falling()
        loss[250:] = [math.nan] * 150
        document = self.of(loss=loss)
        c = document["convergence"]
        self.assertEqual(ids_of(document), ["CONVERGENCE.DIVERGED"])
        self.assertEqual((c["verdict"], c["diverged_step"], c["diverged_by"]), ("diverged", 250, "not finite"))
        self.assertEqual(c["series"][0]["not_finite"], 150)
        c = self.of(loss=spiked(falling(), [9], math.inf))["convergence"]
        self.assertEqual(c["diverged_step"], 9)

    def test_growth_for_good(self):
        loss = falling()
        loss = [value + max(0, i - 300) * 0.2 for i, value in enumerate(loss)]
        document = self.of(loss=loss)
        self.assertIn("CONVERGENCE.DIVERGED", ids_of(document))
        self.assertLess(abs(document["convergence"]["diverged_step"] - 305), 10)

    def test_growth_that_comes_back(self):
        loss = [value + (20 if 200 <= i < 230 else 0) for i, value in enumerate(falling())]
        self.assertNotIn("CONVERGENCE.DIVERGED", ids_of(self.of(loss=loss)))

    def test_spikes(self):
        document = self.of(loss=spiked(falling(), {100, 200, 300}, 1.5))
        self.assertEqual(ids_of(document), ["CONVERGENCE.SPIKES"])
        spikes = document["convergence"]["spikes"]
        self.assertEqual([(s["signal"], s["step"]) for s in spikes], [("loss", 100), ("loss", 200), ("loss", 300)])

    def test_one_spike_and_noise_are_no_finding(self):
        self.assertEqual(self.of(loss=spiked(falling(), {200}, 1.5))["findings"], [])
        self.assertEqual(self.of(loss=falling(noise=0.3))["convergence"]["spikes"], [])

    def test_another_level_is_no_spike(self):
        loss = [value + (3 if i >= 200 else 0) for i, value in enumerate(falling())]
        self.assertEqual(self.of(loss=loss)["convergence"]["spikes"], [])

    def test_plateau(self):
        document = self.of(loss=[2 + 8 * math.exp(-i / 30) for i in range(400)])
        self.assertEqual(ids_of(document), ["CONVERGENCE.PLATEAU"])
        self.assertEqual(document["convergence"]["verdict"], "flat")
        still = self.of(loss=[2 + 8 * math.exp(-i / 30) - i / 10000 for i in range(400)])  # 1 % in the last half
        self.assertEqual(still["findings"], [])
        self.assertIs(still["convergence"]["plateau"], False)

    def test_instability_of_several_signals(self):
        both = self.of(loss=spiked(falling(), {100, 200, 300}, 1.5), grad_norm=spiked(norms(), {99, 200, 301}, 8))
        self.assertIn("CROSS.CORRELATED_INSTABILITY", ids_of(both))
        clusters = both["convergence"]["instability"]
        self.assertEqual([(c["first_step"], c["last_step"], c["signals"]) for c in clusters],
                         [(99, 100, "loss, gradient norm"), (200, 200, "loss, gradient norm"),
                          (300, 301, "loss, gradient norm")])
        apart = self.of(loss=spiked(falling(), {100, 200, 300}, 1.5), grad_norm=spiked(norms(), {50, 150, 250}, 8))
        self.assertNotIn("CROSS.CORRELATED_INSTABILITY", ids_of(apart))
        once = self.of(loss=spiked(falling(), {100, 200, 300}, 1.5), grad_norm=spiked(norms(), {50, 150, 300}, 8))
        self.assertNotIn("CROSS.CORRELATED_INSTABILITY", ids_of(once))

    def test_few_values_give_no_finding(self):
        c = self.of(loss=[3, 2, 1])["convergence"]
        self.assertIsNone(c["verdict"])
        self.assertIsNone(c["plateau"])

    # What cannot be read.

    def test_odd_lines_are_reported(self):
        text = self.lines(loss=falling(30)) + '{"step": 30, "loss": \n[1, 2\n{"loss": 1.0, "step": 31}\n'
        document = self.report(self.write(text, "a.jsonl"))
        self.assertEqual(document["convergence"]["series"][0]["values"], 31)
        self.assertTrue(any("1 line of another form" in note for note in document["quality"]["notes"]))

    def test_names_beyond_the_table_are_told(self):
        losses = {f"task{i}/loss": falling(30) for i in range(70)}
        notes = self.report(self.write(self.lines(**losses), "a.jsonl"))["quality"]["notes"]
        self.assertTrue(any("a.jsonl has values of more names" in note for note in notes), notes)

    def test_other_files_are_not_taken_for_logs(self):
        for text, name in (("hello world 5\n", "a.txt"), ("a,b\n1,2\n", "b.csv"), ("{}\n", "c.jsonl"), ("", "d.csv")):
            done = subprocess.run([REPORT, self.write(text, name)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, name)
            self.assertEqual(done.stderr.count("\n"), 1, name)

    def test_text(self):
        path = self.write(self.lines(loss=spiked(falling(), {100, 200}, 1.5), grad_norm=norms()), "a.jsonl")
        text = subprocess.run([REPORT, path], capture_output=True, text=True).stdout
        for words in ("Convergence", "the loss is falling", "2 spikes", "CONVERGENCE.SPIKES"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
