#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tscope-report as users and scripts call it: cli.py TSCOPE-REPORT TRACEGEN."""
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from findings import ids_of  # noqa: E402
from in_folder import InOneFolder  # noqa: E402
from observed import clean_environment, json_of, run, without_progress  # noqa: E402

REPORT, TRACEGEN = sys.argv[1:3]
ENV = clean_environment(LC_ALL="C.UTF-8")


def report(*arguments, **env):
    done = run(REPORT, *arguments, ok=None, env={**ENV, **env})
    done.stderr = without_progress(done.stderr)
    return done


class Cli(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces = cls.write("traces", "--run", "slow", "--ranks", "4", "--steps", "40", "--phases",
                               "--slow-rank", "2", "--slow-factor", "1.5", "--skew",
                               "--realtime", "2000000000000000000")
        cls.write("traces", "--run", "even", "--ranks", "4", "--steps", "40",
                  "--data-ns", "1000", "--realtime", "1000000000000000000")

    @classmethod
    def write(cls, name, *options):
        run(TRACEGEN, *options, cls.path(name))
        return cls.path(name)

    def ok(self, *arguments, **env):
        done = report(*arguments, **env)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        return done.stdout

    def refused(self, *arguments):
        done = report(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Atscope-report: [^\n]+\n\Z")
        return done.stderr

    def test_newest_run_is_taken_and_others_by_name(self):
        listed = self.ok("--list", self.traces)
        self.assertEqual([line.split()[0] for line in listed.splitlines()], ["slow", "even"])
        self.assertIn("run slow", self.ok(self.traces).splitlines()[0])
        self.assertIn("run even", self.ok("--run", "even", self.traces).splitlines()[0])
        self.assertIn("tscope list", self.refused("--run", "other", self.traces))

    def test_runs_in_folders_are_found_and_listed_alike(self):
        for below, found in (("a/b", True), ("a/b/c", False)):
            folder = self.path("deep" + str(len(below)))
            os.makedirs(os.path.join(folder, below))
            shutil.copytree(os.path.join(self.traces, "even"), os.path.join(folder, below, "even"))
            for arguments in ((folder,), ("--list", folder)):
                with self.subTest(arguments=arguments):
                    said = self.ok(*arguments) if found else self.refused(*arguments)
                    self.assertIn("even" if found else "no traces", said)

    def test_json_names_the_slow_rank_and_counts_the_steps(self):
        slow = json_of(REPORT, self.traces)
        self.assertEqual(slow["schema"], "tscope.report/1")
        self.assertEqual(slow["distributed"]["stragglers"], [2])
        self.assertEqual(slow["steps"]["count"], 40)
        self.assertIsNone(slow["budget"]["mfu"])
        even = json_of(REPORT, "--run", "even", self.traces)
        self.assertEqual(even["distributed"]["stragglers"], [])

    def test_arithmetic_given_is_arithmetic_used(self):
        given = ["--params", "1M", "--tokens-per-step", "1k", "--peak-tflops", "10"]
        budget = json_of(REPORT, *given, self.traces)["budget"]
        self.assertAlmostEqual(budget["flops_per_step"], 6e9)
        self.assertAlmostEqual(budget["peak_flops"], 4 * 10e12)
        self.assertGreater(budget["mfu"], 0)
        self.assertIn("tokens/s", self.ok(*given, self.traces))

    def test_fail_on_is_a_gate(self):
        severities = [finding["severity"] for finding in
                      json_of(REPORT, self.traces)["findings"]]
        ranked = ["info", "warning", "critical"]
        worst = max(map(ranked.index, severities))
        for level, name in enumerate(ranked):
            done = report("--fail-on", name, self.traces)
            self.assertEqual(done.returncode, 1 if worst >= level else 0)
            self.assertIn("Verdict", done.stdout)

    def test_output_goes_to_a_file(self):
        path = self.path("report.txt")
        self.assertEqual(self.ok("--output", path, self.traces), "")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.ok(self.traces))
        self.assertIn("--output", self.refused("--output", self.path("no", "such"), self.traces))
        if os.path.exists("/dev/full"):
            done = report("--output", "/dev/full", self.traces)
            self.assertEqual(done.returncode, 2)
            self.assertIn("could not be written", done.stderr)

    def test_plain_text_is_the_same_every_time_and_under_colour(self):
        plain = self.ok(self.traces)
        self.assertEqual(plain, self.ok(self.traces, TERM="xterm"))
        self.assertEqual(plain, self.ok("--threads", "1", self.traces))
        self.assertEqual(plain, self.ok(self.traces, FORCE_COLOR="1", NO_COLOR="1"))
        self.assertNotIn("\033", plain)
        for coloured in (self.ok(self.traces, FORCE_COLOR="1"), self.ok("--color", "always", self.traces)):
            self.assertIn("\033", coloured)
            self.assertEqual(re.sub(r"\033\[[0-9;]*m", "", coloured), plain)

    def test_a_terminal_without_a_name_has_no_colours(self):
        for name, coloured in (("xterm", True), ("dumb", False), ("", False)):
            inner, outer = pty.openpty()
            job = subprocess.Popen([REPORT, self.traces], stdout=outer, env={**ENV, "TERM": name})
            os.close(outer)
            said = b""
            try:
                while part := os.read(inner, 65536):
                    said += part
            except OSError:  # the other end is closed
                pass
            os.close(inner)
            self.assertEqual(job.wait(), 0)
            self.assertEqual(b"\033[" in said, coloured, name)

    def test_locale_and_width(self):
        self.assertTrue(self.ok(self.traces, LC_ALL="C").isascii())
        self.assertTrue(self.ok("--ascii", self.traces).isascii())
        self.assertEqual(self.ok("--width", "100", self.traces), self.ok(self.traces, COLUMNS="100"))
        self.assertEqual(max(map(len, self.ok("--width", "60", self.traces).splitlines())), 60)

    def test_lists_have_the_requested_length(self):
        rows = lambda text: text.split("\n  kernel  ")[1].split("whole input")[0].count("\n") - 1
        self.assertEqual(rows(self.ok("--top", "1", self.traces)), 1)
        most = rows(self.ok("--top", "1000", self.traces))
        self.assertEqual(most, len(json_of(REPORT, self.traces)["kernels"]["top"]))

    def test_some_steps_only(self):
        some = json_of(REPORT, "--steps", "10:20", self.traces)
        self.assertEqual((some["steps"]["count"], some["steps"]["warmup_excluded"]), (11, 0))
        for one in ("10:10", "10"):
            alone = json_of(REPORT, "--steps", one, self.traces)
            self.assertEqual((alone["steps"]["count"], alone["series"]["steps"]["step"]), (1, [10]))
        for chosen, said in (("0:10", "0 to 10 only, of the run's 0 to 39: chosen by --steps"), ("39", "39 to 39 only,")):
            self.assertIn(said, self.ok("--steps", chosen, self.traces))
            self.assertIn(said, self.ok("--steps", chosen, "--format", "json", self.traces))
            self.assertIn(said, self.ok("--steps", chosen, "--format", "html", self.traces))
        # What a kernel takes in a step is as in the whole run: its sum is over the whole input.
        whole, part = (re.search(r"gemm_backward +GEMM.*", self.ok("--width", "120", *chosen, self.traces)).group()
                       for chosen in ((), ("--steps", "0:10")))
        self.assertEqual(whole, part)
        self.assertNotIn("chosen by", self.ok("--steps", "0:39", self.traces))
        self.assertIn("selects no step", self.refused("--steps", "500:600", self.traces))
        two = [os.path.join(self.traces, name) for name in ("even", "slow")]
        for kind in ("text", "json", "html"):
            compared = self.ok("diff", "--steps", "0:10", "--format", kind, *two)
            for side in ("before", "after"):
                self.assertIn(side + ": 0 to 10 only, of the run's 0 to 39: chosen by --steps", compared)
        self.assertNotIn("chosen by", self.ok("diff", "--steps", "0:39", *two))

    def test_the_demo_says_what_it_is_and_does_nothing_else(self):
        demo = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "demo")
        with tempfile.TemporaryDirectory() as folder:
            for arguments, status in ((["--help"], 0), (["-h"], 0), (["--nothing-such"], 2)):
                done = subprocess.run(["sh", demo, *arguments], capture_output=True, text=True, cwd=folder, timeout=30,
                                      env={"PATH": os.path.join(folder, "none") + ":/usr/bin:/bin"})
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertNotIn("building", done.stdout + done.stderr)
                self.assertIn("usage: scripts/demo" if status == 0 else "--help", done.stdout + done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_two_runs_are_compared(self):
        even = os.path.join(self.traces, "even")
        slow = os.path.join(self.traces, "slow")
        text = self.ok("diff", even, slow)
        self.assertEqual(text, self.ok("--width", "80", "diff", even, slow))
        self.assertIn("slower", text)
        self.assertIn("DIFF.SLOWER", text)
        gate = report("diff", "--fail-on", "warning", even, slow)
        self.assertEqual(gate.returncode, 2)
        self.assertIn("Step time", gate.stdout)
        self.assertIn("--fail-on needs 3 runs on each side, not 1 and 1", gate.stderr)
        same = json_of(REPORT, "diff", slow, slow)
        self.assertEqual(same["diff"]["verdict"], "no change beyond noise")
        self.assertEqual(same["diff"]["provenance"], [])
        self.assertEqual(same["distributed"]["stragglers"], [2])
        alone = json_of(REPORT, slow)
        self.assertIsNone(alone["diff"]["verdict"])
        self.assertIn("two runs", self.refused("diff", slow))

    def several(self, name, *options):
        """Three similar runs, whose kernels differ by up to 2 %."""
        return [self.write(f"{name}{i}", "--ranks", "4", "--steps", "12", "--phases", "--kernel-ns", str(ns),
                           "--run", f"{name}{i}", *options)
                for i, ns in enumerate((60000, 61000, 60500))]

    def test_several_runs_per_side(self):
        even, again = self.several("even"), self.several("again", "--jitter-ns", "21000")
        slow = self.several("slowed", "--slow-rank", "2", "--slow-factor", "1.5")
        gate = report("diff", "--fail-on", "warning", *even, "--", *slow)
        self.assertEqual(gate.returncode, 1, gate.stderr)
        self.assertRegex(gate.stdout, "3 runs against 3")
        self.assertRegex(gate.stdout, r"verdict +slower")
        self.assertIn("rank 2 became slower in its compute", gate.stdout)
        self.assertLess(gate.stdout.index("rank 2 became slower"), gate.stdout.index("optimizer"))
        self.assertEqual(report("diff", *even, "--", *again, "--fail-on", "warning").returncode, 0)
        document = json_of(REPORT, "diff", *even, "--", *slow)["diff"]
        self.assertEqual([run["path"] for run in document["runs"]], even + slow)
        self.assertEqual(document["cause"]["ranks"], [2])
        self.assertEqual(document["noise"], "between runs")
        self.assertIn("figures in all: --top shows more", gate.stdout)
        self.assertNotIn("figures in all", self.ok("diff", "--top", "1000", *even, "--", *slow))
        few = report("diff", *even, "--", *slow[:2], "--fail-on", "warning")
        self.assertEqual(few.returncode, 2)
        self.assertIn("not 3 and 2", few.stderr)
        link = os.path.join(os.path.dirname(even[0]), "baseline")
        os.symlink(even[0], link)
        noon = self.write("noon", "--ranks", "4", "--steps", "6", "--run", "even0")  # the copy of a run that went on
        for repeated in ([even[0]] * 3 + ["--"] + slow, [*even, "--", *slow[:2], link], [*even, "--", *slow[:2], noon]):
            self.assertIn("are the same run, and a run counts once", self.refused("diff", *repeated))

    def test_runs_are_assigned_to_sides(self):
        for wrong in (["a"], ["a", "b", "c"], ["--", "a", "b"], ["a", "b", "--"]):
            self.assertIn("-- between", self.refused("diff", *wrong))

    def test_logs_are_compared(self):
        def log(name, high):
            path = self.path(name + ".jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for step in range(40):
                    file.write(json.dumps({"step": step, "loss": 3 - step / 40 + high}) + "\n")
            return path
        text = self.ok("diff", log("low", 0), log("high", 0.5))
        self.assertNotIn("Step time", text)
        self.assertIn("loss differs by more than a thousandth from step 0 on", text)
        self.assertIn("not recorded in the input", text)

    def test_kinds_of_kernels_from_a_file(self):
        own = self.path("own.txt")
        with open(own, "w", encoding="utf-8") as file:
            file.write("# mine\nwarp drive: ^GEMM_back\n")
        kinds = lambda *options: {row["category"]: row["count"] for row in json_of(
            REPORT, *options, self.traces)["kernels"]["by_category"]}
        plain, mine = kinds(), kinds("--kernel-categories", own)
        self.assertGreater(mine["warp drive"], 0)
        self.assertEqual(mine["GEMM"] + mine["warp drive"], plain["GEMM"])
        with open(own, "a", encoding="utf-8") as file:
            file.write("no pattern here\n")
        self.assertIn("own.txt:3: ", self.refused("--kernel-categories", own, self.traces))
        self.assertIn("absent", self.refused("--kernel-categories", self.path("absent"), self.traces))

    def test_bad_input_says_what_to_do(self):
        os.makedirs(self.path("empty"), exist_ok=True)
        self.assertIn("Was the job run with tscope run", self.refused(self.path("empty")))
        self.assertIn("No such file", self.refused(self.path("missing")))
        self.assertIn("No such file", self.refused(self.path("mis\033[31msing")).replace("?", ""))
        with mock.patch.dict(ENV, TSCOPE_DIR=self.path("missing")):
            self.assertIn(self.path("missing"), self.refused())
        self.assertIn("--help", self.refused("--nonsense", self.traces))
        garbage = self.path("garbage.tscope")
        with open(garbage, "wb") as file:
            file.write(os.urandom(9000))
        self.assertIn("garbage.tscope", self.refused(garbage))

    def test_partial_input_is_reported_as_partial(self):
        damaged = self.write("damaged", "--ranks", "4", "--steps", "30", "--lost-ranks", "1",
                             "--cut", "1:40000")
        done = report("--format", "json", damaged)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        document = json.loads(done.stdout)
        self.assertEqual(document["run"]["ranks_found"], [0, 1, 2])
        self.assertEqual(document["run"]["world_size"], 4)
        self.assertEqual(document["quality"]["partial_ranks"], [1, 3])
        self.assertIn("DATA.PARTIAL", ids_of(document))
        text = self.ok(damaged)
        self.assertIn("3 of 4 found", text)
        self.assertIn("partial or missing: 1, 3", text)

    def test_help_and_version(self):
        self.assertIn("examples:", self.ok("--help"))
        self.assertRegex(self.ok("--version"), r"\Atscope-report \d+\.\d+\.\d+\n\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
