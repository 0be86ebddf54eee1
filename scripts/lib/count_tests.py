#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums meson test logs: count_tests.py BROKEN-BUILDS TESTLOG.json...

Names the tests that were skipped, with the reason that the test printed (a test without one has failed), those that
failed, and those that passed only at the second attempt (again.json next to a log). Says how long each suite took. The
last line is `N passed, N failed[, N skipped]`. Status 1 if anything failed, if nothing ran, or if more than
FLAKY_ALLOWED tests passed only at the second attempt. With --failed TESTLOG.json it prints the names of the tests that
failed.
"""
import json
import os
import sys


def reason(result):
    lines = (result.get("stdout", "") + "\n" + result.get("stderr", "")).split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return ([line for line in said if "skip" in line.lower()] or said or [None])[-1]


GOOD = ("OK", "EXPECTEDFAIL")
# On a busy machine one or two tests may fail; more than that is a defect of the tests or of tscope.
FLAKY_ALLOWED = 2


def suite_of(result):
    """Meson names a test "suite - project:test", or "suite+suite - project:test"."""
    suites, dash, _ = result["name"].partition(" - ")
    return suites.split("+")[0] if dash else "no suite"


def print_times(build, results):
    seconds = {}
    for result in results:
        suite = suite_of(result)
        count, total = seconds.get(suite, (0, 0))
        seconds[suite] = (count + 1, total + result.get("duration", 0))
    for suite, (count, total) in sorted(seconds.items(), key=lambda item: -item[1][1]):
        print(f"time: {build}: {suite}: {count} tests, {total:.0f} s")


def results_in(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def print_failed(path):
    for result in results_in(path):
        if result["result"] not in GOOD + ("SKIP",):
            print(result["name"].rsplit(":", 1)[-1])


def main():
    if sys.argv[1] == "--failed":
        return print_failed(sys.argv[2])
    failed = int(sys.argv[1])
    passed = skipped = flaky = 0
    for path in sys.argv[2:]:
        build = os.path.basename(os.path.dirname(os.path.dirname(path)))
        results = results_in(path)
        again = {result["name"]: result["result"]
                 for result in results_in(os.path.join(os.path.dirname(path), "again.json"))}
        if not results:
            print(f"no test results in {build}")
            failed += 1
        print_times(build, results)
        for result in results:
            if result["result"] in GOOD:
                passed += 1
            elif result["result"] == "SKIP" and reason(result):
                skipped += 1
                print(f"skipped: {build}: {result['name']}: {reason(result)}")
            elif result["result"] == "SKIP":
                failed += 1
                print(f"failed: {build}: {result['name']}: skipped, and did not print why")
            elif again.get(result["name"]) in GOOD:
                passed += 1
                flaky += 1
                print(f"passed at the second try, alone: {build}: {result['name']}")
            else:
                failed += 1
                print(f"failed: {build}: {result['name']}: {result['result']}")
    if flaky > FLAKY_ALLOWED:
        print(f"failed: {flaky} tests passed only at the second try; {FLAKY_ALLOWED} may")
        failed += 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
