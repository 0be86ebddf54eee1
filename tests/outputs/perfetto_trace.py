#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--format perfetto, read with Perfetto's own protobuf classes: perfetto_trace.py TSCOPE-REPORT TRACEGEN TESTDATA. The
expected contents are what tracegen had to write, and the profiler's own JSON."""
import collections
import glob
import gzip
import os
import sys
import tempfile
import unittest

from perfetto_slices import Trace, perfetto
from in_folder import InOneFolder
import observed
import profiler_file
import shared_recordings  # perfetto_slices says where

REPORT, TRACEGEN, TESTDATA = sys.argv[1:4]

# What tracegen writes for a step of a rank: a copy, for each bucket five kernels forward, five backward and an
# all-reduce, and the optimizer's kernel.
BUCKETS, KERNELS = 4, 5
BYTES = [16_000_000, 16_000_000, 16_000_000, 4_000_000]
WORK = 1 + 2 * BUCKETS * KERNELS + 1 + BUCKETS


def run(*arguments):
    return observed.run(REPORT, *arguments, ok=None)


class Perfetto(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slow = cls.tracegen("slow", "--ranks", "4", "--steps", "30", "--phases", "--skew",
                                "--slow-rank", "2", "--slow-factor", "1.4")

    @classmethod
    def tracegen(cls, name, *options):
        observed.run(TRACEGEN, *options, cls.path(name))
        return cls.path(name)

    def trace(self, *arguments, name="trace"):
        done = run("--format", "perfetto", "--output", self.path(name), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(name), "rb") as file:
            data = file.read()
        return Trace(gzip.decompress(data) if name.endswith(".gz") else data)

    def test_a_step_has_all_that_ran_in_it(self):
        trace = self.trace("--steps", "10:10", self.slow)
        self.assertEqual(len(trace.processes()), 4)
        self.assertEqual(trace.root.process_ordering, perfetto.TrackDescriptor.PROCESS_ORDERING_EXPLICIT)
        for number, process in enumerate(sorted(trace.processes(), key=lambda one: one.sibling_order_rank)):
            self.assertEqual(process.process.process_name, "rank %d · node000 · NVIDIA H100 80GB HBM3" % number)
            self.assertTrue(process.process.pid)
            steps = trace.of_process(process, "1 ")
            self.assertEqual([step.name for step in steps], ["step 10"])
            work = trace.of_process(process, "4 ") + trace.of_process(process, "5 ")
            self.assertEqual(len(work), WORK)
            reduced = [slice for slice in work if slice.name == "all_reduce"]
            self.assertEqual(len(reduced), BUCKETS)
            self.assertEqual([slice.notes["bytes"] for slice in reduced], BYTES)
            for slice in reduced:
                self.assertEqual(slice.notes["ranks"], 4)
                self.assertEqual(slice.notes["element type"], "float32")
                self.assertEqual(slice.notes["waited for the last rank, ns"] + slice.notes["transfer, ns"],
                                 slice.end - slice.begin)
            for slice in work:
                self.assertEqual(slice.notes["step"], 10)
                self.assertTrue(steps[0].begin <= slice.begin and slice.end <= steps[0].end)
            self.assertEqual([slice.category for slice in trace.of_process(process, "2 ")],
                             ["data", "forward", "backward", "optimizer"])

    def test_flows_lead_from_each_call_to_its_work_and_join_the_members(self):
        trace = self.trace("--steps", "10:12", self.slow)
        begins, ends, members = {}, {}, collections.defaultdict(list)
        for process in trace.processes():
            for slice in trace.of_process(process, "3 "):
                for flow in slice.flows:
                    self.assertNotIn(flow, begins)
                    begins[flow] = slice
            for slice in trace.of_process(process, "4 ") + trace.of_process(process, "5 "):
                self.assertEqual(len(slice.flow_ends), 1)
                ends[slice.flow_ends[0]] = slice
                for flow in slice.flows:
                    members[flow].append(slice)
        self.assertEqual(len(ends), 3 * 4 * WORK)
        self.assertEqual(set(begins), set(ends))
        for flow, work in ends.items():
            self.assertLessEqual(begins[flow].begin, work.begin)
        self.assertEqual(len(members), 3 * BUCKETS)
        for slices in members.values():
            self.assertEqual([slice.name for slice in slices], ["all_reduce"] * 4)
            # On one time axis no member ends before all have begun.
            self.assertLess(max(slice.begin for slice in slices), min(slice.end for slice in slices))

    def test_the_critical_path_and_findings_are_at_the_top(self):
        trace = self.trace("--steps", "10:10", self.slow)
        path = trace.top("critical path")
        for before, after in zip(path, path[1:]):
            self.assertEqual(before.end, after.begin)
        on_slow_rank = sum(slice.end - slice.begin for slice in path if slice.notes["rank"] == 2)
        self.assertGreater(on_slow_rank, 0.9 * (path[-1].end - path[0].begin))
        report = observed.json_of(REPORT, "--steps", "10:10", self.slow)
        self.assertEqual([slice.name for slice in trace.top("findings")],
                         [finding["title"] for finding in report["findings"]])
        for slice, finding in zip(trace.top("findings"), report["findings"]):
            self.assertEqual(slice.notes["evidence"], finding["evidence"])
            self.assertEqual(slice.notes["what to do"], finding["action"])

    def test_a_queue_is_what_was_launched_and_has_not_begun(self):
        ahead = self.tracegen("ahead", "--ranks", "1", "--steps", "12", "--ahead", "2")
        trace = self.trace("--steps", "0:11", ahead)
        (process,) = trace.processes()
        begun = {slice.flow_ends[0]: slice.begin for slice in trace.of_process(process, "4 ")}
        depth, changes = 0, collections.Counter()
        for call in trace.of_process(process, "3 "):
            if call.category == "launch":  # its work may begin after everything that is shown
                changes[call.begin] += 1
                for flow in call.flows:
                    changes[begun[flow]] -= 1
        expected = []
        for time in sorted(changes):
            depth += changes[time]
            expected.append((time, depth))
        depths = trace.counters(process)["7 queue of stream 0"]
        at = lambda values, time: ([value for when, value in values if when <= time] or [0])[-1]
        self.assertGreater(max(value for _, value in depths), WORK)
        for time, depth in expected:
            if depths[0][0] <= time <= depths[-1][0]:
                self.assertEqual(at(depths, time), depth, time)

    def test_bandwidth_of_copies_is_their_bytes_over_their_time(self):
        trace = self.trace("--steps", "10:12", self.slow)
        for process in trace.processes():
            copies = [slice for slice in trace.of_process(process, "4 ") if slice.name.startswith("copy")]
            self.assertEqual(len(copies), 3)
            rates = trace.counters(process)["7 copying, host to device"]
            for slice in copies:
                self.assertIn((slice.begin, round(slice.notes["bytes"] / (slice.end - slice.begin) * 1e9)), rates)
                self.assertIn((slice.end, 0), rates)

    def test_all_steps_if_they_are_small(self):
        trace = self.trace(self.slow)
        for process in trace.processes():
            self.assertEqual({slice.name for slice in trace.of_process(process, "1 ")},
                             {f"step {number}" for number in range(30)})

    def test_default_of_a_large_run_is_few_steps_and_says_so(self):
        trace = self.trace("--limit", "300k", self.slow)
        steps = {slice.name for process in trace.processes() for slice in trace.of_process(process, "1 ")}
        self.assertTrue(1 <= len(steps) <= 3, steps)
        self.assertTrue(any("--steps selects others" in slice.name for slice in trace.top("about this file")))

    def test_ranks_are_chosen(self):
        trace = self.trace("--ranks", "1,3", "--steps", "5:5", self.slow)
        self.assertEqual(sorted(process.process.process_name[:6] for process in trace.processes()),
                         ["rank 1", "rank 3"])
        # The path is still over all ranks.
        self.assertIn(2, {slice.notes["rank"] for slice in trace.top("critical path")})

    def test_limit_holds_and_the_slow_rank_stays(self):
        many = self.tracegen("many", "--ranks", "12", "--steps", "20", "--slow-rank", "7")
        trace = self.trace("--limit", "60k", many)
        self.assertLessEqual(os.path.getsize(self.path("trace")), 60_000)
        names = [process.process.process_name[:7] for process in trace.processes()]
        self.assertLess(len(names), 12)
        self.assertIn("rank 07", names)
        self.assertTrue(any("are shown" in slice.name for slice in trace.top("about this file")))

    def test_gzip_by_its_name(self):
        plain = self.trace("--steps", "3:4", self.slow)
        packed = self.trace("--steps", "3:4", self.slow, name="trace.gz")
        self.assertEqual(set(plain.tracks), set(packed.tracks))
        with open(self.path("trace"), "rb") as one, gzip.open(self.path("trace.gz")) as other:
            self.assertEqual(one.read(), other.read())

    def test_diff_has_both_runs(self):
        even = self.tracegen("even", "--ranks", "2", "--steps", "30")
        done = run("diff", "--format", "perfetto", "--output", self.path("diff"), even, self.slow)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("diff"), "rb") as file:
            trace = Trace(file.read())
        names = collections.Counter(process.process.process_name.split(" · ")[0] for process in trace.processes())
        self.assertEqual(names, {"1 before": 2, "2 after": 4})
        flows = collections.defaultdict(set)
        for process in trace.processes():
            for slice in trace.of_process(process, ""):
                for flow in slice.flows + slice.flow_ends:
                    flows[flow].add(process.process.process_name.split(" · ")[0])
        self.assertTrue(all(len(runs) == 1 for runs in flows.values()))

    def test_nothing_is_left_half_written(self):
        done = run("--format", "perfetto", "--output", self.path("nowhere/trace"), self.slow)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Atscope-report: [^\n]+\n\Z")
        self.assertEqual(glob.glob(self.path("trace.*")) + glob.glob(self.path("nowhere*")),
                         glob.glob(self.path("trace.gz")))

    def test_hostile_names(self):
        """Names that are not text, very long, or look like something else."""
        names = ["a" * 1_000_000, "\u202ebad \udcff\udcfe bytes", "</script>", "nul\\u0000", "\"quoted\"", "µ" * 300]
        events = [profiler_file.event("kernel", name, 1000 + 10 * index, 5, stream=7, correlation=index + 1)
                  for index, name in enumerate(names)]
        events += [profiler_file.event("cuda_runtime", "cudaLaunchKernel", 900 + 10 * index, 2, correlation=index + 1)
                   for index in range(len(names))]
        profiler_file.write(self.path("hostile.json"), events, rank=0, escaped=False)
        trace = self.trace(self.path("hostile.json"))
        (process,) = trace.processes()
        work = trace.of_process(process, "4 ")
        self.assertEqual(len(work), len(names))
        for slice in work:
            self.assertLessEqual(len(slice.name.encode()), 256)
            self.assertLessEqual(len(slice.notes.get("whole name", "").encode()), 65536)
        self.assertTrue(any("\ufffd" in slice.name for slice in work))


class Kineto(unittest.TestCase):
    """Traces of a profiler on eight ranks, on one time axis."""

    def test_every_rank_has_what_its_file_has(self):
        with tempfile.TemporaryDirectory() as folder:
            files = shared_recordings.ranks_of_a_job(TESTDATA, folder)
            if not files:
                self.skipTest(f"no recordings in {TESTDATA}")
            output = os.path.join(folder, "trace")
            done = run("--format", "perfetto", "--limit", "2G", "--include-warmup", "--steps", "0:", "--output",
                       output, *files)
            if done.returncode == 2 and "no step" in done.stderr:
                done = run("--format", "perfetto", "--limit", "2G", "--output", output, *files)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(output, "rb") as file:
                trace = Trace(file.read())
            self.assertEqual(len(trace.processes()), len(files))
            recorded = dict(map(shared_recordings.device_work, files))
            for process in trace.processes():
                rank = int(process.process.process_name.split()[1])
                work = trace.of_process(process, "4 ") + trace.of_process(process, "5 ")
                self.assertGreater(len(work), 0.5 * sum(recorded[rank].values()))
                shown = collections.Counter(slice.end - slice.begin for slice in work)
                self.assertFalse(shown - recorded[rank], "work that is not in the recording")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
