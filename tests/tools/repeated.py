# SPDX-License-Identifier: MIT
"""The command line of tests that run scenarios by name, once or many times; a name may be a pattern:

    PROGRAM --build BUILD [--repeat N] [--keep DIR] [SCENARIO...]
    PROGRAM --list

What a run leaves in its folder stays in DIR, in a folder NAME.xxxxxxxx. Programs that can judge that once more, with the
report of another build, have a third:

    PROGRAM --build BUILD --again DIR [SCENARIO...]
"""
import argparse
import concurrent.futures
import fnmatch
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

from outcomes import SKIPPED, Skip


def main(scenarios, check, judge=None, prepare=lambda build: None, at_once=1):
    """Exits with 1 unless `check(name, build, folder)` passes for each scenario each time, as skipped if it can do so for
    none. `prepare(build)` is called before the first; `judge(name, build, folder)` judges what was kept."""
    parser = argparse.ArgumentParser()
    parser.set_defaults(again=None)
    parser.add_argument("--build")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--keep", metavar="DIR")
    if judge:
        parser.add_argument("--again", metavar="DIR")
    parser.add_argument("scenarios", nargs="*", default=["*"])
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(scenarios))
        return
    build = os.path.realpath(arguments.build)

    def run_each_time(name):
        return [run(name, check, build, arguments.keep) for _ in range(arguments.repeat)]

    def judge_each(name):
        return [passes(name, judge, build, kept)
                for kept in sorted(glob.glob(os.path.join(glob.escape(arguments.again), name + ".*")))]

    names = dict.fromkeys(name for pattern in arguments.scenarios
                          for name in fnmatch.filter(scenarios, pattern) or sys.exit(f"no scenario {pattern}"))
    prepare(build)
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        each = map if at_once == 1 else pool.map
        for name, passed in zip(names, each(judge_each if arguments.again else run_each_time, names)):
            if passed:
                print(f"{name}: right in {passed.count(True)} of {len(passed) - passed.count(None)}", flush=True)
            outcomes += passed
    sys.exit(1 if False in outcomes else 0 if True in outcomes else SKIPPED)


def run(name, check, build, keep):
    if keep:
        os.makedirs(keep, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f"{name}." if keep else f"tscope-{name}.", dir=keep)
    try:
        return passes(name, check, build, folder)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def passes(name, check, build, folder):
    """None if it cannot run here."""
    try:
        check(name, build, folder)
        return True
    except Skip:
        return None
    except (AssertionError, subprocess.TimeoutExpired):
        print(f"{name}: {traceback.format_exc()}", flush=True)
        return False
