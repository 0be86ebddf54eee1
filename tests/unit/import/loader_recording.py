#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's profiler records a job whose loader has workers: loader_recording.py TSCOPE-REPORT. The truth is the queue
of PyTorch's loader, run again with other times: workers make batches in turn, and each is asked for two ahead. The
recording says nothing of the workers, not even how many there are."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

REPORT = sys.argv[1]
STEPS, AHEAD = 60, 2
COMPUTE, TAKES, LATE = 10000, 20, 5  # us; to take a batch that is ready; from a launch to its kernel


def event(category, name, at, took, correlation=0):
    device = category == "kernel"
    return {"ph": "X", "cat": category, "name": name, "pid": 0 if device else 1, "tid": 7 if device else 1,
            "ts": at, "dur": took, "args": {"correlation": correlation, **({"device": 0, "stream": 7} if device else {})}}


def run(workers, load):
    """When the program asks for each batch, gets it, and is done with it; load(i): a worker's time for batch i."""
    asked, got, done, ready = [], [], [], []
    at = 1000
    for i in range(STEPS):
        begin = [1000]
        if i >= workers:
            begin.append(ready[i - workers])
        if i >= AHEAD * workers:
            begin.append(got[i - AHEAD * workers])
        ready.append(max(begin) + load(i))
        asked.append(at)
        got.append(max(at, ready[i]) + TAKES)
        at = got[i] + COMPUTE
        done.append(at)
    return asked, got, done


def recording(workers, load):
    events = []
    for i, (asked, got, done) in enumerate(zip(*run(workers, load))):
        number = 10 * (i + 1)
        events += [event("user_annotation", f"ProfilerStep#{i}", asked, done - asked),
                   event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", asked, got - asked),
                   event("cuda_runtime", "cudaLaunchKernel", got, LATE, number),
                   event("kernel", "gemm", got + LATE, done - got - LATE, number),
                   event("cuda_runtime", "cudaDeviceSynchronize", got + LATE, done - got - LATE, number + 1)]
    return events


def report_of(events):
    with tempfile.TemporaryDirectory(prefix="tscope-loader-") as folder:
        path = os.path.join(folder, "rank0.trace.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)
        made = subprocess.run([REPORT, "--format", "json", path], check=True, capture_output=True, text=True).stdout
        return json.loads(made)


class Loaders(unittest.TestCase):
    def check(self, workers, load, allowed):
        """What pays if loading took 90, 50 and 0 % of its time. `allowed`: of the step."""
        pays = {row["name"]: row for row in report_of(recording(workers, load))["critical_path"]["pays"]}["input"]
        whole = run(workers, load)[2][-1] - 1000
        for left in (90, 50, 0):
            end = run(workers, lambda i, left=left: load(i) * left // 100)[2][-1] - 1000
            self.assertAlmostEqual(pays[f"saves_at_{left}"], 1 - end / whole, delta=allowed, msg=left)

    def test_one_worker(self):
        self.check(1, lambda i: 30000, 0.002)

    def test_workers_that_are_equally_fast(self):
        """The first step is left out as warm-up, in which all wait."""
        self.check(2, lambda i: 30000, 1.2 / STEPS)
        self.check(3, lambda i: 42000 + 3000 * (i % 2), 2 / STEPS)

    def test_one_of_four_is_slow(self):
        self.check(4, lambda i: 30000 + 20000 * (i % 4 == 1), 2.5 / STEPS)

    def test_a_batch_that_takes_long_at_times(self):
        self.check(2, lambda i: 200000 if i % 10 == 5 else 15000, 2.5 / STEPS)

    def test_workers_that_are_ahead(self):
        report = report_of(recording(2, lambda i: 15000))
        self.assertNotIn("TIMING.DATALOADER_BOUND", [one["id"] for one in report["findings"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
