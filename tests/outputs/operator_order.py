#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The order in which an operator's calls launch kernels: operator_order.py TSCOPE-REPORT SHARED.

The expected result is read from the traces here, independently of the analyzer: a call's kernels are those whose launch
is in it, on its thread, in order of their begin. SHARED may contain recordings of PyTorch's profiler.
"""
import bisect
import collections
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import json_of  # noqa: E402
from profiler_file import event, report_on_events  # noqa: E402
from shared_recordings import document_of, profiles, spans_of  # noqa: E402

REPORT, SHARED = sys.argv[1:3]
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


def truth(path):
    """{(operator, kernels in order): [calls, microseconds]}"""
    works, launches, calls = collections.defaultdict(list), collections.defaultdict(list), []
    for event in spans_of(document_of(path)):
        category, link = event.get("cat"), event.get("args", {}).get("correlation")
        if category in KERNELS:
            works[link].append(event)
        elif category in ("cuda_runtime", "cuda_driver") and link is not None:
            launches[event["tid"]].append((event["ts"], link))
        elif category == "cpu_op":
            calls.append(event)
    found = collections.defaultdict(lambda: [0, 0.0])
    for of_thread in launches.values():
        of_thread.sort()
    for call in calls:
        begin, end = call["ts"], call["ts"] + call["dur"]
        inside = launches[call["tid"]]
        inside = inside[bisect.bisect_left(inside, (begin,)):bisect.bisect_left(inside, (end,))]
        kernels = [work for _, link in inside for work in works[link]]
        if len(kernels) > 1:
            kernels.sort(key=lambda work: work["ts"])
            one = found[call["name"], tuple(work["name"] for work in kernels)]
            one[0] += 1
            one[1] += sum(work["dur"] for work in kernels)
    return found


def add(sums, calls, ms):
    sums[0] += calls
    sums[1] += ms


def report(path):
    return json_of(REPORT, path)


class Order(unittest.TestCase):
    def test_calls_that_differ_in_order_alone(self):
        events, link = [], 0
        for call, kernels in enumerate(["aab", "aab", "aba", "a", "aaab"]):
            begin = 1000.0 * call
            events.append(event("cpu_op", "outer", begin, 900))
            for i, name in enumerate(kernels):
                link, at = link + 1, begin + 10 + 50 * i
                events += [event("cpu_op", "inner", at, 20),
                           event("cuda_runtime", "cudaLaunchKernel", at + 5, 5, correlation=link),
                           event("kernel", name, at + 30, 10, correlation=link, stream=7)]
        rows = report_on_events(REPORT, events)["kernels"]["operator_sequences"]
        self.assertEqual(sorted((row["operator"], row["kernels"], row["launched"], row["count"]) for row in rows),
                         [("outer", "a ×2 → b", 3, 2), ("outer", "a ×3 → b", 4, 1), ("outer", "a → b → a", 3, 1)])
        self.assertEqual({row["kernels"]: round(row["sum_ms"], 6) for row in rows},
                         {"a ×2 → b": 0.06, "a ×3 → b": 0.04, "a → b → a": 0.03})

    def test_recordings(self):
        with tempfile.TemporaryDirectory(prefix="tscope-order-") as folder:
            paths = [paths[0] for paths in profiles(os.path.join(SHARED, "testdata"), folder).values() if len(paths) == 1]
            paths = [path for path in paths if any(truth(path))]
            if not paths:
                self.skipTest("no recordings with operators here")
            for path in paths:
                with self.subTest(path):
                    wanted, shown = (collections.defaultdict(lambda: [0, 0.0]) for _ in range(2))
                    for (name, kernels), (calls, us) in truth(path).items():
                        add(wanted[name, len(kernels)], calls, us / 1e3)
                    rows = report(path)["kernels"]["operator_sequences"]
                    self.assertTrue(rows)
                    self.assertEqual(len({(row["operator"], row["kernels"]) for row in rows}), len(rows))
                    for row in rows:
                        add(shown[row["operator"], row["launched"]], row["count"], row["sum_ms"])
                    if len(rows) < 200:
                        self.assertEqual(shown.keys(), wanted.keys())
                    for key, (calls, ms) in shown.items():  # different kernels may have the same short names
                        whole = wanted[key]
                        self.assertTrue(calls <= whole[0] and ms <= whole[1] + 1e-6, key)
                        if len(rows) < 200:
                            self.assertEqual(calls, whole[0], key)
                            self.assertAlmostEqual(ms, whole[1], 6, key)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
