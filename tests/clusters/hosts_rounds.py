#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs cases of hosts.py again and again: hosts_rounds.py BUILD ROUNDS [CASE...]. After each round a table: how often the
report was right and wrong, how often the job itself did not do what the case is about, and over all runs how far a clock was off, how far that
was stated at most, and the closest that a clock came to what was stated. Traces and output of runs that were wrong stay in
/tmp/tscope-hosts-wrong."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, ROUNDS = os.path.realpath(sys.argv[1]), int(sys.argv[2])
PROGRAMS = ("scripts/tscope-run", "analyzer/tscope-report", "analyzer/tscope-top", "preload/libtscope.so",
            "tests/standins/libskewclock.so")
WRONG = "/tmp/tscope-hosts-wrong"
CLOCK = re.compile(r"([\d.]+) us off, ([\d.]+) us are stated")


def all_cases():
    with open(os.path.join(HERE, "hosts.py"), encoding="utf-8") as file:
        names = re.search(r"for function in \(([^)]*)\)", file.read())[1]
    return [name.strip().replace("_", "-") for name in names.split(",")]


def run_case(case):
    folder = tempfile.mkdtemp(prefix="tscope-hosts-")
    done = subprocess.run([sys.executable, os.path.join(HERE, "hosts.py"), case,
                           *(os.path.join(BUILD, name) for name in PROGRAMS), folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    outcome = "right" if done.returncode == 0 else "wrong" if done.returncode != SKIPPED else \
        "no result" if "skipped: no result" in done.stdout else "skipped"
    if outcome == "wrong":
        with open(os.path.join(folder, "output"), "w", encoding="utf-8") as file:
            file.write(done.stdout)
        os.makedirs(WRONG, exist_ok=True)
        shutil.move(folder, WRONG)
    shutil.rmtree(folder, ignore_errors=True)
    return outcome, [(float(off), float(stated)) for off, stated in CLOCK.findall(done.stdout) if float(stated)]


def main():
    cases = sys.argv[3:] or all_cases()
    outcomes, clocks = collections.Counter(), collections.defaultdict(list)
    for number in range(ROUNDS):
        for case in cases:
            outcome, seen = run_case(case)
            outcomes[case, outcome] += 1
            clocks[case] += seen
        print(f"\n| case | right | wrong | no result | off at most, ms | stated at most, ms | closest |  round {number + 1}")
        for case in cases:
            off, stated = (max((one[i] for one in clocks[case]), default=0) / 1e3 for i in (0, 1))
            closest = max((one[0] / one[1] for one in clocks[case]), default=0)
            print(f"| {case} | {outcomes[case, 'right']} | {outcomes[case, 'wrong']} | {outcomes[case, 'no result']} "
                  f"| {off:.2f} | {stated:.2f} | {closest:.0%} |", flush=True)
    return any(outcomes[case, "wrong"] for case in cases)


sys.exit(main())
