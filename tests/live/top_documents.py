#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The output of tscope-top for programs: JSON compared with its documentation and the report, and OpenMetrics read by
prometheus_client: top_documents.py BUILD SOURCE [TEST...]."""
import math
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import at_once  # noqa: E402
from built import built  # noqa: E402
from observed import clean_environment, json_of, json_so_far, run  # noqa: E402
from outcomes import wait_until  # noqa: E402
from standin_job import RANKS, STANDING, Watching  # noqa: E402

BUILD, SOURCE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
TOP = built(BUILD, "tscope-top")
REPORT = built(BUILD, "tscope-report")
TRACEGEN = built(BUILD, "tracegen")


def top(*arguments):
    return run(TOP, "--once", *arguments)


def look(folder):
    return json_of(TOP, "--once", folder)


def families(path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    with open(path, encoding="utf-8") as file:
        return {family.name: family for family in text_string_to_metric_families(file.read())}


def documented():
    """The names in the tables of docs/outputs/top.md: metrics, and fields of the JSON document."""
    with open(os.path.join(SOURCE, "docs", "outputs", "top.md"), encoding="utf-8") as file:
        names = set(re.findall(r"^\| `(\w+)` \|", file.read(), re.M))
    return ({name for name in names if name.startswith("tscope_")},
            {name for name in names if not name.startswith("tscope_")})


class Documents(Watching):
    BUILD = BUILD

    def generate(self, *options):
        traces = os.path.join(self.folder, "generated")
        run(TRACEGEN, *options, traces)
        return traces

    def late_in_metrics(self, traces):
        path = os.path.join(self.folder, "late.prom")
        top("--prometheus", path, traces)
        with open(path, encoding="utf-8") as file:
            return re.findall(r'^tscope_rank_late_seconds{.*rank="(\d+)"', file.read(), re.M)

    def until(self, traces, test, what):
        def seen():
            document = json_so_far(TOP, "--once", traces)
            return document if document and test(document) else None
        return wait_until(what, seen)

    def test_json_is_documented(self):
        document = look(self.generate("--ranks", "4", "--ranks-per-host", "2"))
        fields = set(document)
        for name in ("ranks", "hosts"):
            fields |= {field for item in document[name] for field in item}
        job = self.job("--steps", "100000", "--fault", "1", "--fault-step", "30")
        hang = self.until(job.traces, lambda one: one["waits"], "a wait")
        fields |= {field for item in hang["waits"] for field in item}
        names = documented()[1]
        self.assertEqual(fields - names, set())
        self.assertEqual(names - fields, {"detail", # of calls that do not match
                                          "depth", "place", "function", "file", "line", "own", "n_ranks"}) # of stacks

    def test_json_agrees_with_the_report(self):
        job = self.job("--steps", "150", "--slow-rank", "2", "--marks", "1")
        job.wait()
        document = look(job.traces)
        report = json_of(REPORT, job.traces)
        self.assertEqual(document["step_method"], report["steps"]["method"])
        self.assertAlmostEqual(document["step_s"] * 1e3, report["steps"]["median_ms"],
                               delta=0.05 * report["steps"]["median_ms"])
        self.assertEqual([rank["state"] for rank in document["ranks"]], ["ended"] * RANKS)
        late = [rank["late_s"] for rank in document["ranks"]]
        self.assertEqual(max(range(RANKS), key=lambda rank: late[rank]), 2)
        gpu = [rank["gpu_share"] for rank in document["ranks"]]
        self.assertEqual(max(range(RANKS), key=lambda rank: gpu[rank]), 2)

    def test_late_rank_of_a_running_job(self):
        """The GPU times arrive some tenths of a second after the calls, of which there are 140 per second."""
        job = self.job("--steps", "100000", "--slow-rank", "2", "--marks", "1")
        late = lambda one: [rank["late_s"] for rank in one["ranks"]]
        document = self.until(job.traces, lambda one: (one["ranks"][0]["step"] or 0) > 60 and None not in late(one), "how late ranks are")
        self.assertEqual({rank["late_by"] for rank in document["ranks"]}, {"run"})
        self.assertEqual(max(range(RANKS), key=late(document).__getitem__), 2)
        # A look in which the times of the last calls have not come yet says of no rank how late it is.
        self.until(job.traces, lambda one: sorted(self.late_in_metrics(job.traces)) == list("0123"), "how late ranks are, in the metrics")
        job.end()
        dead = self.until(job.traces, lambda one: one["in_trouble"] == RANKS, "that all are gone")
        self.assertNotIn(None, late(dead))
        self.assertEqual(self.late_in_metrics(job.traces), []) # an alert about the last values would never end

    def test_rank_that_others_wait_for(self):
        job = self.job("--steps", "100000", "--fault", "1", "--fault-rank", "1", "--fault-step", "50")
        hang = self.until(job.traces, lambda one: one["waits"] and one["waits"][0]["since_s"] > 2, "a wait")["waits"][0]
        self.assertEqual((hang["absent"], hang["waiting"]), ([1], [0, 2, 3]))
        self.assertEqual(hang["op"], "all_reduce")
        job.end()
        dead = self.until(job.traces, lambda one: one["in_trouble"] == RANKS, "that all are gone")
        self.assertEqual({rank["state"] for rank in dead["ranks"]}, {"gone"})
        self.assertEqual(dead["waits"][0]["absent"], [1])
        first = dead["waits"][0]["since_s"]
        time.sleep(1) # the time of a hang must not increase after all ranks have died
        self.assertAlmostEqual(look(job.traces)["waits"][0]["since_s"], first, places=3)

    def test_stall(self):
        job = self.job("--steps", "100000", "--fault", "1", "--fault-rank", "1", "--fault-step", "50", TSCOPE_STALL="2")
        hang = self.until(job.traces, lambda one: one["waits"] and one["ranks"][1]["stalled_in"], "a stall")
        self.assertRegex(hang["ranks"][1]["stalled_in"], r"nanosleep|pause") # fault 1: it sleeps for ever
        self.assertGreaterEqual(hang["ranks"][1]["stalled_s"], 2)
        self.assertIn(hang["ranks"][1]["stalled_in"].split(":")[0], " ".join(top(job.traces).stdout.split()))

    def test_stacks_of_all_ranks_are_one_tree(self):
        job = self.job(TSCOPE_STALL="2", command=STANDING)
        wanted = {"save", "wait_for_others", "reader_13"} # each rank records them one after the other

        def all_recorded(one):
            ranks = {(node["function"] or "").rpartition(".")[2]: node["ranks"] for node in one["stacks"]}
            return one["stalled"] == 4 and wanted <= set(ranks) and ranks.get("train") == ranks["reader_13"] == "0-3"
        document = self.until(job.traces, all_recorded, "stalls of all ranks")
        ranks = {(node["function"] or "").rpartition(".")[2]: node["ranks"] for node in document["stacks"]}
        self.assertEqual((ranks["train"], ranks["save"], ranks["reader_7"]), ("0-3", "1", "0-3"))
        self.assertEqual(ranks["wait_for_others"], "0, 2, 3")
        fields = {field for node in document["stacks"] for field in node}
        self.assertEqual(fields - documented()[1], set())
        page = top("--width", "100", job.traces).stdout
        self.assertRegex(" ".join(page.split()), r"4 ranks stall: their Python stacks .* rank 1 \S*standing_rank\.py:\d+ save")
        self.assertLessEqual(max(map(len, page.splitlines())), 100)
        job.send(signal.SIGKILL)  # the stacks must still be shown
        self.until(job.traces, lambda one: one["running"] == 0 and one["stacks"], "the stacks of a dead job")

    def test_a_healthy_job_has_no_waits(self):
        job = self.job("--steps", "100000")
        self.until(job.traces, lambda one: one["step_s"], "steps")
        for _ in range(10):
            document = look(job.traces)
            self.assertEqual((document["waits"], document["mismatches"], document["in_trouble"]), ([], [], 0))

    def test_unknown_is_null(self):
        document = look(self.generate("--no-gpu-spans", "--steps", "1", "--buckets", "1"))
        for rank in document["ranks"]:
            for field in ("gpu_share", "memory_bytes", "step_s", "phase", "waits_s"):
                self.assertIsNone(rank[field], field)
        page = top(self.generate("--no-gpu-spans", "--steps", "1", "--buckets", "1")).stdout
        self.assertNotRegex(page, r"\b0 %|\b0 B\b|nan|unknown")

    def test_metrics_are_openmetrics(self):
        try:
            import prometheus_client # pylint: disable=import-outside-toplevel,unused-import
        except ImportError as why:
            self.skipTest(f"the package prometheus_client is not installed ({why}): scripts/setup test")
        traces, path = self.generate("--ranks", "6", "--slow-rank", "3"), os.path.join(self.folder, "tscope.prom")
        top("--prometheus", path, traces)
        got = families(path)
        names = {sample.name for family in got.values() for sample in family.samples}
        wanted = documented()[0]
        self.assertEqual(names - wanted, set())
        self.assertEqual({name.removesuffix("_total") for name in wanted}, set(got))
        ranks = [family for name, family in got.items() if name.startswith("tscope_rank")]
        self.assertLess(len(ranks), 25)
        for family in ranks:
            self.assertTrue(family.documentation)
            self.assertLessEqual(len(family.samples), 6)
            for sample in family.samples:
                self.assertEqual(sample.labels["run"], "synthetic")
                self.assertLessEqual(set(sample.labels), {"run", "rank", "host"})
                self.assertFalse(math.isnan(sample.value))
        self.assertEqual(got["tscope_rank_memory_bytes"].samples, []) # an unknown value has no series
        self.assertEqual(got["tscope_rank_late_seconds"].samples, []) # no rank runs any more

    def test_metrics_are_replaced_as_a_whole(self):
        traces, path = self.generate("--ranks", "32"), os.path.join(self.folder, "tscope.prom")
        writer = subprocess.Popen([TOP, "--prometheus", path, "--interval", "0.1", traces])
        self.addCleanup(writer.wait)
        self.addCleanup(writer.terminate)
        wait_until("the first file", lambda: os.path.exists(path))
        inodes = set()

        def eight_were_whole():
            with open(path, encoding="utf-8") as file:
                text = file.read()
                inodes.add(os.fstat(file.fileno()).st_ctime_ns)
            self.assertTrue(text.endswith("# EOF\n"))
            self.assertEqual(text.count("tscope_rank_up{"), 0 if "tscope_rank_up" not in text else 32)
            return len(inodes) >= 8
        wait_until("eight files", eight_were_whole, each=0)
        writer.terminate()
        self.assertEqual(writer.wait(), -signal.SIGTERM)
        self.assertEqual(sorted(os.listdir(self.folder)), ["generated", "tscope.prom"])

    def test_without_a_terminal_the_output_is_one_page_of_plain_text(self):
        traces = self.generate("--ranks", "4")
        done = run(TOP, traces, env=clean_environment(LC_ALL="C.UTF-8", TERM="xterm-256color"))
        self.assertNotIn("\033", done.stdout)
        self.assertEqual(done.stdout.count("tscope top"), 1)
        narrow = top("--width", "60", "--ascii", traces).stdout
        self.assertTrue(narrow.isascii())
        self.assertLessEqual(max(map(len, narrow.splitlines())), 60)

    def test_missing_traces_are_an_error(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        for folder, message in (("empty", "no traces"), ("absent", "No such file")):
            done = run(TOP, "--once", os.path.join(self.folder, folder), ok=(2,))
            self.assertEqual(done.stdout, "")
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    at_once.main(3)
