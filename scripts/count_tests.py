#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums meson test logs: count_tests.py BROKEN-BUILDS TESTLOG.json...

Names what was skipped, with the reason that the test printed, what failed, and what passed only
when it was run again (again.json beside a log); the last line is `N passed, N failed[, N skipped]`.
Status 1 when anything failed or nothing ran. With --failed TESTLOG.json it prints the names of the
tests that failed.
"""
import json
import os
import sys


def reason(result):
    lines = (result.get("stdout", "") + "\n" + result.get("stderr", "")).split("\n")
    said = [line.strip() for line in lines if "skip" in line.lower()]
    return said[-1] if said else "no reason given"


GOOD = ("OK", "EXPECTEDFAIL")


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
    passed = skipped = 0
    for path in sys.argv[2:]:
        build = os.path.basename(os.path.dirname(os.path.dirname(path)))
        results = results_in(path)
        again = {result["name"]: result["result"]
                 for result in results_in(os.path.join(os.path.dirname(path), "again.json"))}
        if not results:
            print(f"no test results in {build}")
            failed += 1
        for result in results:
            if result["result"] in GOOD:
                passed += 1
            elif result["result"] == "SKIP":
                skipped += 1
                print(f"skipped: {build}: {result['name']}: {reason(result)}")
            elif again.get(result["name"]) in GOOD:
                passed += 1
                print(f"passed at the second try, alone: {build}: {result['name']}")
            else:
                failed += 1
                print(f"failed: {build}: {result['name']}: {result['result']}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
