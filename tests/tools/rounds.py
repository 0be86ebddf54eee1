#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tests again and again beside whatever else the machine does, and counts how often each is right.

    rounds.py run BUILD LOG [--rounds N] [--jobs N] [--failures DIR] NAME...
    rounds.py table LOG...

NAME is a test's name, or a pattern such as 'torch slow *'. Each run is a line in LOG. `run` goes on where LOG ends. What a
wrong run said and wrote is kept in DIR; its own folders too, which the test would remove. `table` sums up what LOG holds.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "lib"))
import record
from outcomes import SKIPPED
from processes import run_within

# The same test, but what it made in its folder for temporary files stays there.
KEEPING = """
import os, runpy, shutil, sys, tempfile
remove = shutil.rmtree
def keep(path, *how, **more):
    if os.path.dirname(os.path.realpath(path)) != os.path.realpath(tempfile.gettempdir()):
        remove(path, *how, **more)
shutil.rmtree = keep
tempfile.TemporaryDirectory.cleanup = lambda self: self._finalizer.detach()
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def tests_named(build, patterns):
    answer = subprocess.run(["meson", "introspect", build, "--tests"], capture_output=True, text=True, check=True)
    tests = {test["name"]: test for test in json.loads(answer.stdout)}
    named = [name for pattern in patterns for name in fnmatch.filter(tests, pattern) or sys.exit(f"no test {pattern}")]
    return [tests[name] for name in dict.fromkeys(named)]


def runs_in(log):
    """Of each line: when, at which commit, the test, how it ended, for how long, and the load then."""
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def outcome(test, build, folder):
    """How the test ended, and what it said."""
    command = list(test["cmd"])
    script = next((i for i, part in enumerate(command) if part.endswith(".py")), None)
    if script == 1:
        command[1:1] = ["-c", KEEPING]
    with open(os.path.join(folder, "output"), "w", encoding="utf-8") as output:
        status = run_within(5 * test["timeout"], command, output, cwd=test["workdir"] or build,
                            env={**os.environ, **test["env"], "TMPDIR": folder})
    return {None: "too long", 0: "right", SKIPPED: "skipped"}.get(status, "wrong")


def once(test, options, writing):
    folder = tempfile.mkdtemp(prefix="r-")
    os.chmod(folder, 0o1777)  # as /tmp is: a test's daemons may be of another user
    began, commit = time.time(), record.commit()
    how = outcome(test, options.build, folder)
    with writing, open(options.log, "a", encoding="utf-8") as file:
        print(time.strftime("%H:%M:%S"), commit, test["name"], how, f"{time.time() - began:.0f}",
              f"{os.getloadavg()[0]:.1f}", sep="\t", file=file)
    if options.failures and how not in ("right", "skipped"):
        os.makedirs(options.failures, exist_ok=True)
        shutil.move(folder, tempfile.mkdtemp(prefix=re.sub(r"\W", "-", test["name"]) + ".", dir=options.failures))
    shutil.rmtree(folder, ignore_errors=True)


def run(options):
    tests = tests_named(options.build, options.names)
    done = [line[2] for line in runs_in(options.log)]
    left = [test for turn in range(options.rounds) for test in tests if turn >= done.count(test["name"])]
    writing = threading.Lock()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(once, test, options, writing) for test in left]:
            future.result()


def table(options):
    of_test = {}
    for line in (line for log in options.logs for line in runs_in(log) if line[3] != "skipped"):
        of_test.setdefault(line[2], []).append((line[3], float(line[5]), line[1]))
    print("| test | runs | right | load | commits |\n|---|---|---|---|---|")
    for name, runs in of_test.items():
        loads, commits = [load for _, load, _ in runs], dict.fromkeys(commit for *_, commit in runs)
        print(f"| {name} | {len(runs)} | {sum(how == 'right' for how, *_ in runs)} | {min(loads):.0f} to {max(loads):.0f} "
              f"| {', '.join(commits)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True)
    running = what.add_parser("run")
    running.set_defaults(do=run)
    running.add_argument("build")
    running.add_argument("log")
    running.add_argument("--rounds", type=int, default=20)
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--failures")
    running.add_argument("names", nargs="+")
    summing = what.add_parser("table")
    summing.set_defaults(do=table)
    summing.add_argument("logs", nargs="+")
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
