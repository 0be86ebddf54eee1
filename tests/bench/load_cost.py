# SPDX-License-Identifier: MIT
"""Measures the time that the preload adds to programs that do not train: load_cost.py LIBRARY.

Runs each program with and without the preload in turns; the figures are medians of the wall time. Wanted:
less than 1 ms more.
"""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import clean_environment  # noqa: E402

PROGRAMS = (["true"], ["ls", "/"], ["bash", "-c", ":"], ["git", "--version"])
RUNS = 200


def run(command, environment):
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main():
    plain = clean_environment()
    preloaded = {**plain, "LD_PRELOAD": os.path.abspath(sys.argv[1])}
    for command in PROGRAMS:
        times = [(run(command, plain), run(command, preloaded)) for _ in range(RUNS)]
        alone = statistics.median(a for a, _ in times)
        more = statistics.median(b - a for a, b in times)
        print(f"{' '.join(command):16} {alone * 1e3:7.2f} ms alone, {more * 1e3:+.2f} ms preloaded"
              " (wanted: under +1.00)")


main()
