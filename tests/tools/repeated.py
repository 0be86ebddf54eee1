# SPDX-License-Identifier: MIT
"""The command line of tests that run scenarios by name, once or many times:

    PROGRAM --build BUILD [--repeat N] [SCENARIO...]
    PROGRAM --list
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile


def main(scenarios, check, prefix):
    """Exits with 1 unless `check(name, build, folder)` passes for each scenario each time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("scenarios", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(scenarios))
        return
    failed = 0
    for name in arguments.scenarios or scenarios:
        right = sum(passes(name, check, os.path.realpath(arguments.build), prefix)
                    for _ in range(arguments.repeat))
        print(f"{name}: right in {right} of {arguments.repeat}", flush=True)
        failed += right < arguments.repeat
    sys.exit(failed > 0)


def passes(name, check, build, prefix):
    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        check(name, build, folder)
        return True
    except (AssertionError, subprocess.TimeoutExpired) as wrong:
        print(f"{name}: {wrong}")
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
