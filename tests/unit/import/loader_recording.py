#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's profiler records a job whose loader has workers: loader_recording.py TSCOPE-REPORT. The truth is the queue
of PyTorch's loader, run again with other times: workers make batches in turn, and each is asked for two ahead, or
another number. The recording says nothing of the workers, not even how many there are; when the program waits may."""
import functools
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import profiler_file  # noqa: E402
from findings import findings_of, ids_of  # noqa: E402

REPORT = sys.argv[1]
STEPS, AHEAD = 60, 2
COMPUTE, TAKES, LATE, REDUCES = 10000, 20, 5, 100  # us; to take a batch that is ready; from a launch to its kernel


def event(category, name, at, took, correlation=0, **more):
    return profiler_file.event(category, name, at, took, correlation=correlation,
                               **({"stream": 7} if category == "kernel" else {}), **more)


class Loader:
    """When a program asks for each batch, and gets it."""

    def __init__(self, workers, load, takes=lambda i: TAKES, ahead=AHEAD):
        """load(i): a worker's time for batch i; takes(i): to take it when it is ready."""
        self.workers, self.load, self.takes, self.ahead = workers, load, takes, ahead
        self.asked, self.got, self.ready = [], [], []

    def get(self, at):
        begin, i = [1000], len(self.got)
        if i >= self.workers:
            begin.append(self.ready[i - self.workers])
        if i >= self.ahead * self.workers:
            begin.append(self.got[i - self.ahead * self.workers])
        self.ready.append(max(begin) + self.load(i))
        self.asked.append(at)
        self.got.append(max(at, self.ready[i]) + self.takes(i))
        return self.got[i]


def run(workers, load, ahead=AHEAD, compute=COMPUTE):
    """When the program asks for each batch, gets it, and is done with it."""
    loader, done = Loader(workers, load, ahead=ahead), [1000]
    for _ in range(STEPS):
        done.append(loader.get(done[-1]) + compute)
    return loader.asked, loader.got, done[1:]


def recording(workers, load, ahead=AHEAD):
    events = []
    for i, (asked, got, done) in enumerate(zip(*run(workers, load, ahead))):
        number = 10 * (i + 1)
        events += [event("user_annotation", f"ProfilerStep#{i}", asked, done - asked),
                   event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", asked, got - asked),
                   event("cuda_runtime", "cudaLaunchKernel", got, LATE, number),
                   event("kernel", "gemm", got + LATE, done - got - LATE, number),
                   event("cuda_runtime", "cudaDeviceSynchronize", got + LATE, done - got - LATE, number + 1)]
    return events


def run_together(loaders, outside=0):
    """When all ranks are done with each step: with the reduction that the last one begins."""
    done = [1000]
    for _ in range(STEPS):
        done.append(max([loader.get(done[-1]) for loader in loaders]) + outside + COMPUTE + REDUCES)
    return done[1:]


def recordings_together(loaders, outside=0):
    """One for each rank: work of the host, a kernel that computes, then one that waits for the other ranks and reduces."""
    members = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": len(loaders),
               "Process Group Ranks": str(list(range(len(loaders)))), "dtype": "Float", "In msg nelems": 1000,
               "Out msg nelems": 1000}
    ends = run_together(loaders, outside)
    for loader in loaders:
        events = []
        for i, (asked, got, done) in enumerate(zip(loader.asked, loader.got, ends)):
            events += [event("user_annotation", f"ProfilerStep#{i}", asked, done - asked),
                       event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", asked, got - asked),
                       event("cpu_op", "aten::nonzero_numpy", got, outside)]
            got += outside
            number, computed = 10 * (i + 1), got + COMPUTE
            events += [event("cuda_runtime", "cudaLaunchKernel", got, LATE, number),
                       event("kernel", "gemm", got + LATE, COMPUTE - LATE, number),
                       event("cuda_runtime", "cudaLaunchKernel", got + LATE, LATE, number + 1),
                       event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", computed, done - computed, number + 1,
                             **members),
                       event("cuda_runtime", "cudaDeviceSynchronize", got + 2 * LATE, done - got - 2 * LATE, number + 2)]
        yield events


report_of = functools.partial(profiler_file.report_on_events, REPORT)


class Loaders(unittest.TestCase):
    def check(self, workers, load, allowed, ahead=AHEAD, taken=""):
        """What pays if loading took 90, 50 and 0 % of its time. `allowed`: of the step."""
        report = report_of(recording(workers, load, ahead))
        pays = {row["name"]: row for row in report["critical_path"]["pays"]}
        whole = run(workers, load, ahead)[2][-1] - 1000
        for left in (90, 50, 0):
            end = run(workers, lambda i, left=left: load(i) * left // 100, ahead)[2][-1] - 1000
            self.assertAlmostEqual(pays["input"][f"saves_at_{left}"], 1 - end / whole, delta=allowed, msg=left)
        found = findings_of(report, "TIMING.DATALOADER_BOUND")
        said = " ".join(one["evidence"] for one in found)
        if taken is not None:
            self.assertIn(taken or "ranks above", said)
            self.assertEqual("assumed" in said, "assumed" in taken)
        return pays

    def test_one_worker(self):
        for ahead in (1, 2, 4, 8):
            self.check(1, lambda i: 30000, 0.002, ahead)

    def test_workers_that_are_equally_fast(self):
        """The first step is left out as warm-up, in which all wait."""
        self.check(2, lambda i: 30000, 1.2 / STEPS)
        for ahead in (1, 2, 4, 8):
            self.check(3, lambda i: 42000 + 3000 * (i % 2), 2 / STEPS, ahead, taken=None)
            pays = self.check(8, lambda i: 120000, 5 / STEPS, ahead, taken="8 workers of equal speed")
            whole, end = (run(8, lambda i: 120000, ahead, took)[2][-1] - 1000 for took in (COMPUTE, 0))
            self.assertAlmostEqual(pays["gemm"]["saves_at_0"], 1 - end / whole, delta=2 / STEPS)

    def test_one_of_four_is_slow(self):
        self.check(4, lambda i: 30000 + 20000 * (i % 4 == 1), 2.5 / STEPS)

    def test_a_batch_that_takes_long_at_times(self):
        """At no fixed distance: else as many workers would be as likely."""
        slow = {5, 13, 26, 32, 47, 56}
        self.check(2, lambda i: 200000 if i in slow else 15000, 3 / STEPS,
                   taken="1 is assumed. It is assumed to ask each worker for 2 batches ahead")

    def check_as_fast_as_peers(self, takes, allowed_ms, workers=1):
        """Rank 1's workers do not keep up; takes(rank, i): how long it takes to take a batch that is ready."""
        def loaders(*load):
            return [Loader(workers, lambda i, load=load: load * workers, functools.partial(takes, rank))
                    for rank, load in enumerate(load)]
        rows = report_of(*recordings_together(loaders(8000, 40000)))["critical_path"]["what_if"]
        said = {row["change"]: row["step_ms"] for row in rows}["rank 1 as fast as its peers"]
        ends = run_together(loaders(8000, 8000))
        self.assertAlmostEqual(said, (ends[-1] - ends[0]) / (STEPS - 1) / 1e3, delta=allowed_ms)

    def test_taking_a_batch_lasts_as_long_as_for_the_peers(self):
        """As on a busy machine. Only the batches of rank 0 tell how long that is: 4 ms, where they would take 5 on one
        rank or the other."""
        self.check_as_fast_as_peers(lambda rank, i: 3000 + 2000 * ((i + rank) % 2), 0.6)

    def test_who_waits_for_its_peers_does_not_wait_for_its_batches(self):
        """Rank 0 takes 1 to 7 ms to take a batch that is ready, and then waits some 20 ms for rank 1."""
        self.check_as_fast_as_peers(lambda rank, i: 1000 * random.Random(f"{rank} {i}").randint(1, 7), 1)

    def test_workers_that_are_done_together(self):
        """The program waits for one batch, and then has the others: the rank is late in every second step, or third."""
        for workers in (2, 3):
            self.check_as_fast_as_peers(lambda rank, i: TAKES, 1, workers)

    def test_what_is_done_while_a_loader_is_late_saves_nothing(self):
        """Nor is it told what it would save without the slow loader."""
        report = report_of(*recordings_together([Loader(1, lambda i: 8000), Loader(1, lambda i: 40000)], 6000))
        rows = {row["change"]: row["saving_fraction"] for row in report["critical_path"]["what_if"]}
        self.assertAlmostEqual(rows["nothing outside the phases"], 0, delta=0.01)
        self.assertAlmostEqual(rows["rank 1 as fast as its peers"], 1 - 16.1 / 40, delta=0.02)
        self.assertEqual(findings_of(report, "TIMING.OUTSIDE_PHASES"), [])

    def test_workers_that_are_ahead(self):
        report = report_of(recording(2, lambda i: 15000))
        self.assertNotIn("TIMING.DATALOADER_BOUND", ids_of(report))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
