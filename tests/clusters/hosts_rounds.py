#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs cases of hosts.py again and again: hosts_rounds.py BUILD ROUNDS [--results FILE] [--keep FOLDER] [CASE...]. After each
round a table: how often the report was right and wrong, how often the job itself did not do what the case is about, and over
all runs how far a clock was off, how far that was stated at most, and the closest that a clock came to what was stated. With a
file of results, each run is added to it, and the table is about all in it. Traces and output of runs that were not right stay in
/tmp/tscope-hosts-kept; with --keep those of all runs stay in FOLDER. hosts_rounds.py BUILD --again FOLDER judges what was kept
there once more, with the programs of BUILD, and runs no job."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from outcomes import SKIPPED  # noqa: E402

PROGRAMS = ("scripts/tscope-run", "analyzer/tscope-report", "analyzer/tscope-top", "preload/libtscope.so",
            "tests/standins/libskewclock.so")
KEPT = "/tmp/tscope-hosts-kept"
SEEN_LIVE = ("hang", "copies")
CLOCK = re.compile(r"([\d.]+) us off, ([\d.]+) us are stated")


def all_cases():
    with open(os.path.join(HERE, "hosts.py"), encoding="utf-8") as file:
        names = re.search(r"for function in \(([^)]*)\)", file.read())[1]
    return [name.strip().replace("_", "-") for name in names.split(",")]


def judge(build, case, folder, *again):
    begun = time.time()
    done = subprocess.run([sys.executable, os.path.join(HERE, "hosts.py"), case,
                           *(os.path.join(build, name) for name in PROGRAMS), folder, *again],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    outcome = "right" if done.returncode == 0 else "wrong" if done.returncode != SKIPPED else \
        "no result" if "skipped: no result" in done.stdout else "skipped"
    with open(os.path.join(folder, "again" if again else "output"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return {"case": case, "outcome": outcome, "folder": os.path.basename(folder), "seconds": round(time.time() - begun),
            "load": os.getloadavg()[0],
            "clocks": [(float(off), float(stated)) for off, stated in CLOCK.findall(done.stdout) if float(stated)]}


def run_case(build, case, keep):
    folder = tempfile.mkdtemp(prefix=f"{case}-")
    result = judge(build, case, folder)
    kept = keep or (KEPT if result["outcome"] in ("wrong", "no result") else None)
    if kept:
        os.makedirs(kept, exist_ok=True)
        shutil.move(folder, kept)
    shutil.rmtree(folder, ignore_errors=True)
    return result


def judge_again(build, kept):
    """Cases that judge a job while it runs have no second look: they are as "skipped"."""
    names = sorted(name for name in os.listdir(kept) if os.path.exists(os.path.join(kept, name, "output")))
    runs = [judge(build, name.rpartition("-")[0], os.path.join(kept, name), "again") for name in names]
    for one in runs:
        if one["outcome"] == "wrong":
            print(f"wrong: {one['folder']}")
    return [one for one in runs if one["outcome"] in ("right", "wrong") or one["case"] not in SEEN_LIVE]


def print_table(runs, number):
    print(f"\n| case | right | wrong | no result | off at most, ms | stated at most, ms | closest |  round {number}")
    for case in dict.fromkeys(one["case"] for one in runs):
        mine = [one for one in runs if one["case"] == case]
        counts = [sum(one["outcome"] == outcome for one in mine) for outcome in ("right", "wrong", "no result")]
        clocks = [clock for one in mine for clock in one["clocks"]]
        off, stated = (max((clock[i] for clock in clocks), default=0) / 1e3 for i in (0, 1))
        closest = max((clock[0] / clock[1] for clock in clocks), default=0)
        print(f"| {case} | {' | '.join(map(str, counts))} | {off:.2f} | {stated:.2f} | {closest:.0%} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=os.path.realpath)
    parser.add_argument("rounds", type=int, nargs="?", default=1)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--results")
    parser.add_argument("--keep", type=os.path.realpath)
    parser.add_argument("--again", type=os.path.realpath)
    arguments = parser.parse_intermixed_args()
    if arguments.again:
        runs = judge_again(arguments.build, arguments.again)
        print_table(runs, 1)
        return any(one["outcome"] == "wrong" for one in runs)
    runs = []
    if arguments.results and os.path.exists(arguments.results):
        with open(arguments.results, encoding="utf-8") as file:
            runs = [json.loads(line) for line in file]
    for number in range(arguments.rounds):
        for case in arguments.cases or all_cases():
            runs.append(run_case(arguments.build, case, arguments.keep))
            if arguments.results:
                with open(arguments.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
        print_table(runs, number + 1)
    return any(one["outcome"] == "wrong" for one in runs)


sys.exit(main())
