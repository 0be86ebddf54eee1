#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how fast tscope-report reads generated runs, and its memory, by number of ranks.

usage: scale.py TRACEGEN TSCOPE_REPORT [RANKS...]

Each run has TSCOPE_SCALE_EVENTS events per rank (100,000). RANKS default to TSCOPE_SCALE_RANKS, else
"10 100"; the wanted figures are for "10 100 1000", which needs 2.1 GB in TMPDIR. The cost by CPU time
does not depend on the other load of the machine.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from processes import cost_of  # noqa: E402


def main():
    tracegen, report = sys.argv[1:3]
    ranks = sys.argv[3:] or os.environ.get("TSCOPE_SCALE_RANKS", "10 100").split()
    events = int(os.environ.get("TSCOPE_SCALE_EVENTS", "100000"))
    cores = len(os.sched_getaffinity(0))
    print(f"{events} events a rank, {cores} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'ranks':>6} {'M events':>9} {'wall s':>8} {'M events/s':>11} {'CPU ns/event':>13} "
          f"{'peak MiB':>9}")
    for count in map(int, ranks):
        with tempfile.TemporaryDirectory(prefix="tscope-scale-") as directory:
            out = subprocess.run(
                [tracegen, "--ranks", str(count), "--events", str(events), "--kernels", "12",
                 directory], check=True, capture_output=True, text=True).stdout
            total = int(out.split()[-2])
            wall, cpu, peak, _ = min(cost_of([report, "--format", "json", directory], stdout=subprocess.DEVNULL) for _ in range(2))
        print(f"{count:6} {total / 1e6:9.1f} {wall:8.2f} {total / wall / 1e6:11.1f} "
              f"{cpu * 1e9 / total:13.1f} {peak:9.0f}", flush=True)


if __name__ == "__main__":
    main()
