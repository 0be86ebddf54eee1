#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate for pipelines, as docs/gate.md describes it: gate.py TSCOPE-REPORT TRACEGEN DOCS."""
import os
import re
import statistics
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from in_folder import InOneFolder  # noqa: E402
from observed import json_of, run  # noqa: E402

REPORT, TRACEGEN, DOCS = sys.argv[1:4]


def report(*arguments):
    return run(REPORT, *arguments, ok=None)


class Gate(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slow = cls.write("slow", "--slow-rank", "2", "--slow-factor", "3", "--phases")
        cls.even = cls.write("even", "--data-ns", "1000")
        cls.found = cls.document(cls.slow)["findings"]

    @classmethod
    def path(cls, name, text=None):
        path = super().path(name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    @classmethod
    def write(cls, name, *options):
        path = cls.path(name)
        run(TRACEGEN, "--run", name, "--ranks", "4", "--steps", "40", *options, path)
        return path

    @classmethod
    def document(cls, run):
        return json_of(REPORT, run)

    def outcome(self, *rules, run=None):
        done = report("--output", os.devnull, *rules, run or self.slow)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, done.stderr

    def test_a_selection_is_of_severity_group_and_id(self):
        ranked = ["info", "warning", "critical"]
        self.assertIn("DIST.STRAGGLER", [f["id"] for f in self.found])
        groups = sorted({f["id"].split(".")[0] for f in self.found})
        for what in groups + [f["id"] for f in self.found] + ["MEMORY", "CONVERGENCE.SPIKES"]:
            for level, severity in enumerate(ranked):
                hit = any((f["id"] == what or f["id"].split(".")[0] == what) and ranked.index(f["severity"]) >= level
                          for f in self.found)
                self.assertEqual(self.outcome("--fail-on", f"{severity}:{what}")[0], hit, (severity, what))
            self.assertEqual(self.outcome("--fail-on", f"CROSS,{what}")[0],
                             any(what in (f["id"], f["id"].split(".")[0]) for f in self.found))

    def test_what_is_ignored_is_said(self):
        critical = sorted({f["id"] for f in self.found if f["severity"] == "critical"})
        status, said = self.outcome("--fail-on", "critical", "--ignore", ",".join(critical))
        self.assertEqual(status, 0, said)
        for name in critical:
            self.assertRegex(said, rf"(?m)^tscope-report: gate: ignored critical {name}: ")
        status, said = self.outcome("--fail-on", "critical", "--fail-on", "warning", "--ignore", "DIST")
        self.assertEqual(said.count("ignored critical DIST.STRAGGLER"), 1)

    def test_each_answer_has_its_reason(self):
        median = self.document(self.slow)["steps"]["median_ms"]
        rules = self.path("expectations", f"""# of this job
fail-on critical:MEMORY
fail-on critical:DIST   # a straggler
ignore KERNEL
expect steps.median_ms <= {median * 1.01}
\texpect steps.median_ms < {median * 0.9}
expect steps.median_ms within 5 % of {median * 1.04}
expect steps.median_ms within 5 % of {median * 1.06}
expect overlap.exposed_fraction >= 0.1 %
expect budget.mfu >= 40 %
expect distributed.ranks[2].rel_slowdown > 9
""")
        status, said = self.outcome("--expectations", rules)
        self.assertEqual(status, 1)
        answers = {int(line): answer for answer, line in re.findall(r"gate: (ok|FAILED) .*\(.*:(\d+)\)", said)}
        self.assertEqual(answers, {2: "ok", 3: "FAILED", 5: "ok", 6: "FAILED", 7: "ok", 8: "FAILED", 9: "ok",
                                   10: "FAILED", 11: "FAILED"}, said)
        self.assertIn("critical DIST.STRAGGLER: Rank 2", said)
        self.assertIn(f"steps.median_ms is {median:.6g}, wanted less than", said)
        self.assertIn("budget.mfu is not known", said)
        self.assertIn("gate: FAILED, 5 of 9 checks failed", said)

    def test_like_earlier_runs(self):
        median = self.document(self.slow)["steps"]["median_ms"]
        runs = [median * factor for factor in (0.95, 0.96, 0.94, 0.97, 0.95)]
        # the 99th percentile of Student's t with 4 degrees of freedom
        limit = statistics.mean(runs) + 3.746947 * statistics.stdev(runs) * (1 + 1 / 5) ** 0.5
        like = lambda runs: "steps.median_ms like " + " ".join(map(str, runs))
        status, said = self.outcome("--expect", like(runs))
        self.assertEqual(status, int(median > limit))
        self.assertAlmostEqual(float(re.search(r"at most ([\d.]+)", said)[1]), limit, delta=limit * 1e-5)
        self.assertEqual(self.outcome("--expect", like([run * 0.98 for run in runs]))[0], 1)

    def test_junit_and_github(self):
        rules = self.path("a:b,c", "fail-on critical\nfail-on critical:MEMORY\n")
        path = self.path("junit.xml")
        done = report("--expectations", rules, "--junit", path, "--github", "--output", os.devnull,
                      "--ignore", "EFFICIENCY,HOST,KERNEL,TIMING", self.slow)
        self.assertEqual(done.returncode, 1)
        annotations = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
        self.assertEqual(len(annotations), 1)
        self.assertIn("/a%3Ab%2Cc,line=1,title=tscope fail-on critical::critical DIST.STRAGGLER: Rank 2", annotations[0])
        suite = xml.parse(path).getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        cases = {case.get("name"): case for case in suite.findall("testcase")}
        self.assertIn("DIST.STRAGGLER", cases["fail-on critical"].find("failure").get("message"))
        self.assertIsNone(cases["fail-on critical:MEMORY"].find("failure"))
        self.assertEqual(cases["fail-on critical"].get("line"), "1")

    def test_a_file_to_begin_with_passes_its_run_and_fails_a_worse_one(self):
        path = self.path("begin")
        self.assertEqual(report("--write-expectations", path, self.even).returncode, 0)
        status, said = self.outcome("--expectations", path, run=self.even)
        self.assertEqual(status, 0, said)
        self.assertIn("steps.median_ms", said)
        status, said = self.outcome("--expectations", path)
        self.assertEqual(status, 1)
        self.assertRegex(said, "FAILED .*DIST.STRAGGLER")
        self.assertRegex(said, "FAILED .*steps.median_ms")

    def test_a_gate_without_checks_or_with_bad_rules_is_refused(self):
        for arguments, words in ((["--ignore", "DIST"], "nothing to check"), (["--junit", "x"], "nothing to check"),
                                 (["--expect", "steps.no_such < 1"], "no figure 'steps.no_such'"),
                                 (["--expect", "run.id < 1"], "no figure 'run.id'"),
                                 (["--expectations", self.path("none")], "cannot be read"),
                                 (["--expectations", self.path("bad", "\nforbid DIST\n")], "bad:2: 'forbid' is none of"),
                                 (["--expectations", self.path("worse", "expect a\n")], "worse:1: expect wants")):
            done = report("--output", os.devnull, *arguments, self.slow)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)

    def test_the_examples_of_the_document_are_accepted(self):
        with open(os.path.join(DOCS, "gate.md"), encoding="utf-8") as file:
            text = file.read()
        example = re.search(r"(?s)```\n(# tscope.expect.*?)```", text)[1]
        self.assertIn("expect", example)
        done = report("--expectations", self.path("example", example), "--output", os.devnull, self.slow)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("gate: ok", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
