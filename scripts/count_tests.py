#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums meson test logs: count_tests.py BROKEN-BUILDS TESTLOG.json...

Names what was skipped, with the reason that the test printed, and what failed; the last line is
`N passed, N failed[, N skipped]`. Status 1 when anything failed or nothing ran.
"""
import json
import os
import sys


def reason(result):
    lines = (result.get("stdout", "") + "\n" + result.get("stderr", "")).split("\n")
    said = [line.strip() for line in lines if "skip" in line.lower()]
    return said[-1] if said else "no reason given"


def main():
    failed = int(sys.argv[1])
    passed = skipped = 0
    for path in sys.argv[2:]:
        build = os.path.basename(os.path.dirname(os.path.dirname(path)))
        if not os.path.exists(path):
            print(f"no test results in {build}")
            failed += 1
            continue
        for result in map(json.loads, open(path, encoding="utf-8")):
            if result["result"] in ("OK", "EXPECTEDFAIL"):
                passed += 1
            elif result["result"] == "SKIP":
                skipped += 1
                print(f"skipped: {build}: {result['name']}: {reason(result)}")
            else:
                failed += 1
                print(f"failed: {build}: {result['name']}: {result['result']}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
