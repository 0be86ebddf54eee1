#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the time from the time limit of a stall to the report's verdict in a job of many ranks:

    verdict_time.py --build BUILD [--ranks N] [--stall SECONDS] [--made N]

The ranks of the stand-in cluster train until one of them sleeps for ever. Each rank records a stall when its
limit is over. The program measures the time from the latest limit until each rank's record is in its trace, and
until tscope-report has named the rank with all the records; it starts tscope-report again while records are
missing. Then it measures the same report for traces of N ranks (10,000) made by tracegen, in which one rank
writes a checkpoint and all others wait for it. Prints seconds, and fails if the report names another rank.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
import trace_header  # noqa: E402
from built import built  # noqa: E402
from findings import ranks_of  # noqa: E402
from observed import json_so_far  # noqa: E402
from outcomes import wait_until  # noqa: E402
from processes import cost_of  # noqa: E402
from standin_job import StandinJob  # noqa: E402

CULPRIT, PATIENCE_S = 1, 300


def start(options, folder):
    return StandinJob(options.build, folder, "--steps", "100000", "--fault", "1", "--fault-rank", str(CULPRIT), "--fault-step", "5",
               ranks=options.ranks, TSCOPE_STALL=str(options.stall))


def report(build, traces):
    return json_so_far(built(build, "tscope-report"), traces)


def stalled_ranks(document):
    return len(document["stalls"]["ranks"]) if document else 0


def monotonic_ns(path, ticks):
    """Converts ticks of a trace to the machine's monotonic clock, ns."""
    header = trace_header.of_file(path)
    return header.start_monotonic_ns + (ticks - header.start_ticks) * 10**9 // header.tick_hz


def stalls(traces):
    """For the last stall of each rank: when it was recorded, and when its limit was over, both in monotonic ns."""
    found = []
    for path in read_trace.paths_under(traces):
        stall = read_trace.Trace(path).records["Stall"][-1]
        found.append((monotonic_ns(path, stall.looked),
                      monotonic_ns(path, stall.since) + stall.limit_ms * 10**6))
    return found


def measure_generated(options):
    """Measures the report of a hang of more ranks than this machine can run."""
    culprit = options.made // 2 + 3
    with tempfile.TemporaryDirectory(prefix="verdict-made-") as folder:
        subprocess.run([built(options.build, "tracegen"), "--flavour", "gloo", "--ranks",
                        str(options.made), "--hang-rank", str(culprit), folder], check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryFile("w+") as out:
            took, processor, peak, _ = cost_of([built(options.build, "tscope-report"), "--format", "json", folder], stdout=out)
            out.seek(0)
            check_named(json.load(out), culprit)
    print(f"{options.made} ranks made by tracegen: {took:.1f} s until the report named the rank, {processor:.1f} s of the "
          f"processor, {peak:.0f} MiB")


def check_named(document, culprit):
    named = ranks_of(document, "DIST.HANG")
    if named != [[culprit]]:
        sys.exit(f"named: {named}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--stall", type=int, default=20)
    parser.add_argument("--made", type=int, default=10000)
    options = parser.parse_args()
    options.build = os.path.realpath(options.build)
    folder = tempfile.mkdtemp(prefix="verdict-")
    job = start(options, folder)
    try:
        def all_recorded():
            began = time.monotonic_ns()
            document = report(options.build, job.traces)
            return (began, document) if stalled_ranks(document) == options.ranks else None
        began, document = wait_until("all ranks have recorded a stall", all_recorded, PATIENCE_S, each=0.5)
        ended = time.monotonic_ns()
        check_named(document, CULPRIT)
        all_stalls = stalls(job.traces)
        limit = max(over for _, over in all_stalls)
        print(f"{options.ranks} ranks; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
        print(f"from the limit to the last rank's record: {(max(at for at, _ in all_stalls) - limit) / 1e9:.1f} s")
        print(f"to the verdict: {(ended - limit) / 1e9:.1f} s, of which the report took {(ended - began) / 1e9:.1f} s")
    finally:
        job.end()
        shutil.rmtree(folder, ignore_errors=True)
    measure_generated(options)


if __name__ == "__main__":
    main()
