#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tscope-top says what tscope-report says of the same files at the same moment: top_and_report.py BUILD [TEST...].

A running job is stopped by SIGSTOP while both look, so neither sees more than the other. What they say of the time
until now may differ by as much as lies between the two looks."""
import os
import signal
import statistics
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built  # noqa: E402
from observed import json_so_far, run  # noqa: E402
from outcomes import wait_until  # noqa: E402
from standin_job import Watching  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))
PROGRAMS = {name: built(BUILD, f"tscope-{name}") for name in ("top", "report")}
TRACEGEN = built(BUILD, "tracegen")
DIFFER = ("type mismatch", "root mismatch", "size mismatch", "dtype mismatch")
STEPS = 32 # top's step time is the median of so many


def look(traces):
    return json_so_far(PROGRAMS["top"], "--once", traces)


class Both:
    """What both say of a directory, and how much time lies between them."""

    def __init__(self, traces):
        begin = time.monotonic()
        self.top = look(traces)
        self.report = json_so_far(PROGRAMS["report"], traces)
        self.page = run(PROGRAMS["top"], "--once", traces, ok=None).stdout
        self.apart_s = time.monotonic() - begin

    def lateness(self):
        """By rank: what both say of how late it is, in seconds behind the median rank, over the last steps."""
        rows = {row["rank"]: row["late_ms"] for row in self.report["series"]["by_rank"]["rows"]}
        columns = list(zip(*(rows[rank] for rank in sorted(rows))))
        known = [column for column in columns if None not in column][-STEPS:]
        behind = [[(late - statistics.median(column)) / 1e3 for late in column] for column in known]
        report = [statistics.median(ranks) for ranks in zip(*behind)]
        return [rank["late_s"] for rank in self.top["ranks"]], report


class TopAndReport(Watching):
    BUILD = BUILD

    def generate(self, *options):
        run(TRACEGEN, *options, self.folder)
        return Both(self.folder)

    def frozen(self, job, test):
        """Both, of a job that is stopped once the test holds for what top says."""
        wait_until("what the test is about", lambda: (one := look(job.traces)) and test(one))
        job.send(signal.SIGSTOP)
        for rank in job.ranks:
            if rank.poll() is None:
                os.waitpid(rank.pid, os.WUNTRACED)
        both = Both(job.traces)
        job.send(signal.SIGCONT)
        return both

    def ended(self, job):
        job.wait()
        return Both(job.traces)

    def check_ranks(self, both):
        self.assertEqual([rank["rank"] for rank in both.top["ranks"]], both.report["run"]["ranks_found"])
        self.assertEqual(both.top["world_size"], both.report["run"]["world_size"])
        self.assertEqual(sorted({rank["host"] for rank in both.top["ranks"]}), sorted(both.report["run"]["hosts"]))

    def check_steps(self, both):
        """top times steps on the host, the report where they ended on the GPU: single steps differ by how far the
        host was ahead, so the medians of many may differ by the spread of both. Where a step has many calls, top keeps
        only the last few."""
        self.assertEqual(both.top["step_method"], both.report["steps"]["method"])
        top = [1e3 * length for length in both.top["step_lengths_s"][-STEPS:]]
        report = [wall for wall in both.report["series"]["steps"]["wall_ms"] if wall is not None][-len(top):]
        spread = sum(upper - lower for lower, _, upper in (statistics.quantiles(of, n=4) for of in (top, report)))
        self.assertAlmostEqual(both.top["step_s"] * 1e3, statistics.median(report), delta=spread + 1e-3)

    def check_late(self, both, late, error_s=0.0):
        top, report = both.lateness()
        self.assertEqual(max(range(len(top)), key=top.__getitem__), late)
        self.assertEqual(max(range(len(top)), key=report.__getitem__), late)
        self.assertEqual(both.report["distributed"]["stragglers"], [late])
        for mine, theirs in zip(top, report):
            self.assertAlmostEqual(mine, theirs, delta=error_s + 0.05 * max(report))

    def check_waits(self, both):
        top, report = both.top["waits"], both.report["collective_check"]["waits"]
        for mine, names in ((top, ("absent", "waiting")), (report, ("waits_for", "ranks"))):
            mine.sort(key=lambda one: (one["group"], one["seq"]))
            mine[:] = [{**one, "pair": [one[name] for name in names]} for one in mine]
        for field in ("group", "op", "seq", "pair"):
            self.assertEqual([one[field] for one in top], [one[field] for one in report])
        if top:
            self.assertAlmostEqual(max(one["since_s"] for one in top), both.report["collective_check"]["pending_s"],
                                   delta=1e-3) # the clocks of both are the trace's own

    def check_mismatches(self, both):
        """Those that began it; what ranks have finished or not called follows from them."""
        report, seen = both.report["collective_check"]["mismatches"], set()
        first = [one for one in report
                 if one["state"] in DIFFER and not (one["group"] in seen or seen.add(one["group"]))]
        fields = ("group", "op", "seq", "state", "detail")
        self.assertEqual([[one[field] for field in fields] for one in both.top["mismatches"]],
                         [[one[field] for field in fields] for one in first])

    def check_stalls(self, both):
        report = {one["rank"]: one for one in both.report["stalls"]["ranks"]}
        for rank in both.top["ranks"]:
            if rank["stalled_in"]:
                self.assertEqual(rank["stalled_in"], report[rank["rank"]]["words"])
                self.assertAlmostEqual(rank["stalled_s"], report[rank["rank"]]["for_s"], delta=both.apart_s + 0.2)
        self.assertEqual({rank["rank"] for rank in both.top["ranks"] if rank["stalled_in"]}, set(report))
        self.assertEqual(both.top["stacks"], both.report["stalls"]["tree"])

    def check_ends(self, both):
        """What the trace itself tells. Whether a process without a recorded end still runs, only the kernel knows."""
        report = {one["rank"]: one for one in both.report["run_end"]["ranks"]}
        for rank in both.top["ranks"]:
            status = report[rank["rank"]]["status"]
            how = report[rank["rank"]]["how"]
            expected = {"silent": ("running", "stopped", "gone", "silent"),
                        "exit": ("ended",) if status == 0 else ("failed",)}
            self.assertIn(rank["state"], expected.get(how, ("failed",) if status else ("killed",)), how)

    def check_all(self, both):
        for check in (self.check_ranks, self.check_steps, self.check_waits, self.check_mismatches, self.check_stalls,
                      self.check_ends):
            check(both)

    def test_running(self):
        both = self.frozen(self.job("--steps", "100000", "--slow-rank", "2", "--marks", "1"),
                           lambda one: (one["ranks"][0]["step"] or 0) > 60 and one["ranks"][0]["late_s"] is not None)
        self.check_all(both)
        self.check_late(both, 2)

    def test_running_without_marks(self):
        both = self.frozen(self.job("--steps", "100000", "--slow-rank", "1"),
                           lambda one: (one["ranks"][0]["step"] or 0) > 60 and one["ranks"][0]["late_s"] is not None)
        self.check_steps(both)
        self.check_late(both, 1)

    def test_hang(self):
        job = self.job("--steps", "100000", "--fault", "1", "--fault-rank", "1", "--fault-step", "50", TSCOPE_STALL="2")
        both = self.frozen(job, lambda one: one["waits"] and one["stalled"] == 4)
        self.check_all(both)

    def test_hang_in_one_of_several_groups(self):
        job = self.job("--steps", "100000", "--tensor", "2", "--fault", "1", "--fault-rank", "3", "--fault-step", "50",
                       TSCOPE_STALL="2")
        self.check_all(self.frozen(job, lambda one: one["waits"] and one["stalled"] == 4))

    def test_hang_of_many_ranks(self):
        both = self.generate("--flavour", "gloo", "--ranks", "100", "--hang-rank", "7", "--steps", "6")
        self.assertEqual(both.top["waits"][0]["absent"], [7])
        self.check_ranks(both)
        self.check_waits(both)

    def test_pipeline(self):
        job = self.job("--steps", "100000", "--pipeline", "2")
        self.check_all(self.frozen(job, lambda one: (one["ranks"][0]["step"] or 0) > 60))

    def test_hang_in_a_pipeline(self):
        """Ranks 0 and 2 are stage 0 of two replicas: who exchanges messages with rank 1 waits for it in these."""
        job = self.job("--steps", "100000", "--pipeline", "2", "--fault", "1", "--fault-rank", "1", "--fault-step", "50",
                       TSCOPE_STALL="2")
        both = self.frozen(job, lambda one: one["waits"] and one["stalled"] == 4)
        self.assertTrue([one for one in both.top["waits"] if one["op"] in ("send", "recv") and one["absent"] == [1]])
        words = " ".join(both.page.split())
        self.assertRegex(words, r"! rank 1 has not (sent what rank \d waits for: for .* in recv|received what rank \d sends: for .* in send)")
        self.check_all(both)

    def test_exchanges_of_experts(self):
        """The messages of an all-to-all are one collective: who comes last there is late."""
        job = self.job("--steps", "100000", "--tensor", "4", "--experts", "1", "--slow-rank", "2", "--slow-factor", "3",
                       "--marks", "1")
        both = self.frozen(job, lambda one: (one["ranks"][0]["step"] or 0) > 60 and one["ranks"][0]["late_s"] is not None)
        self.check_all(both)
        self.check_late(both, 2)

    def test_hang_in_an_exchange(self):
        job = self.job("--steps", "100000", "--tensor", "4", "--experts", "1", "--fault", "1", "--fault-rank", "3",
                       "--fault-step", "50", TSCOPE_STALL="2")
        both = self.frozen(job, lambda one: one["waits"] and one["stalled"] == 4)
        self.assertEqual([one["op"] for one in both.top["waits"]], ["all_to_all"])
        self.check_all(both)

    def test_sizes_that_differ(self):
        job = self.job("--steps", "100000", "--fault", "5", "--fault-rank", "1", "--fault-step", "40")
        both = self.frozen(job, lambda one: one["mismatches"])
        self.assertEqual(both.top["mismatches"][0]["state"], "size mismatch")
        self.check_all(both)

    def test_one_rank_failed(self):
        job = self.job("--steps", "100000", "--fault", "6", "--fault-rank", "2", "--fault-step", "40", TSCOPE_STALL="2")
        both = self.frozen(job, lambda one: job.ranks[2].poll() is not None and one["stalled"] == 3)
        self.assertEqual([rank["state"] for rank in both.top["ranks"]], ["running", "running", "failed", "running"])
        self.check_all(both)

    def test_one_rank_was_killed(self):
        job = self.job("--steps", "100000", TSCOPE_STALL="2")
        self.frozen(job, lambda one: (one["ranks"][0]["step"] or 0) > 30)
        job.send(signal.SIGKILL, 1)
        job.ranks[1].wait()
        both = self.frozen(job, lambda one: one["ranks"][1]["state"] == "gone" and one["stalled"] == 3)
        self.check_all(both)

    def test_ended(self):
        both = self.ended(self.job("--steps", "150", "--slow-rank", "2", "--marks", "1"))
        self.check_all(both)
        self.check_late(both, 2)

    def test_two_hosts(self):
        for flavour in ("nccl", "gloo"):
            both = self.generate("--run", flavour, "--flavour", flavour, "--ranks", "6", "--ranks-per-host", "3",
                                 "--steps", "60", "--skew-hosts", "--slow-rank", "4", "--slow-factor", "1.5",
                                 *(["--phases"] if flavour == "gloo" else []),
                                 "--realtime", "1700000000" + ("0" if flavour == "nccl" else "1") * 9)
            self.check_ranks(both)
            self.check_steps(both)
            self.check_late(both, 4, 30e-6)

    def test_attempts(self):
        self.ended(self.job("--steps", "60"))
        second = os.path.join(self.folder, "second")
        os.mkdir(second)
        both = self.ended(self.job("--steps", "90", "--marks", "1", "--slow-rank", "1", ranks=2, STANDIN_RENDEZVOUS=second))
        self.assertEqual(both.report["run"]["attempt"], 2)
        for check in (self.check_ranks, self.check_steps, self.check_ends):
            check(both)


if __name__ == "__main__":
    unittest.main(verbosity=2)
