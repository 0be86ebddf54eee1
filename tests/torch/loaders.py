#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What loaders cost: for each job, what a step would take without its work outside the phases, and with ranks that load
equally fast. The truth is the same job without that work, or with equal loaders.

    loaders.py LIBTSCOPE TSCOPE-REPORT
"""
import sys
import tempfile

from training import SKIPPED, Job, expect, python_with_torch, report_on

NO_WORK, EQUAL = "nothing outside the phases", "rank 1 as fast as its peers"
# Options, what is changed, the options that are then other, and who is named.
JOBS = {
    # Workers that need longer than the program: without its work, nothing is gained.
    "equally slow": (["--load-ms", "20", "--late-ms", "40"], NO_WORK, ["--work-ms", "0"], []),
    "two workers each": (["--load-ms", "44", "--workers", "2"], NO_WORK, ["--work-ms", "0"], []),
    # Without workers the program loads by itself.
    "no workers": (["--load-ms", "20", "--workers", "0"], NO_WORK, ["--work-ms", "0"], []),
    # Workers that are always ahead.
    "quick": (["--load-ms", "4", "--work-ms", "20"], NO_WORK, ["--work-ms", "10"], []),
    "one slow": (["--load-ms", "10", "--slow-rank", "1", "--slow-ms", "30"], EQUAL, ["--slow-ms", "0"], [1]),
}


def run(python, library, scratch, name, options):
    job = Job(python, library, scratch, name)
    return job, float(job.run(*options, script="loading_rank.py", ranks=2))


def check(name, python, library, report, scratch):
    options, change, others, named = JOBS[name]
    job, step_ms = run(python, library, scratch, "job", options)
    _, changed_ms = run(python, None, scratch, "changed", [*options, *others])
    document = report_on(report, job.directory)
    rows = {row["change"]: row["step_ms"] for row in document["critical_path"]["what_if"]}
    if name == "quick":  # half of the work
        rows[change] = (rows[change] + step_ms) / 2
    print(f"{name}: {step_ms:.1f} ms a step; {change}: {rows[change]:.1f} ms, in truth {changed_ms:.1f} ms")
    expect(abs(rows[change] - changed_ms) < 0.1 * step_ms, f"{name}: {rows}")
    # Equal loaders get unequal shares of a busy machine, so one may be the slower one in truth. But both are the limit:
    # to mend one promises nothing beyond that, within what figures may be off.
    found = [f for f in document["findings"] if f["id"] == "DIST.STRAGGLER" and (f["saving_s"] or 0) > 0]
    off_s = 0.1 * step_ms / 1e3 * document["steps"]["training"]
    promised = {rank for f in found for rank in f["ranks"] if rank in named or f["saving_added_s"] > off_s}
    expect(promised == set(named), f"{name}: {found}")


def main():
    library, report = sys.argv[1:3]
    python = python_with_torch()
    if not python:
        print("skipped: no Python with PyTorch 2; scripts/setup test installs one")
        return SKIPPED
    for name in sys.argv[3:] or JOBS:
        with tempfile.TemporaryDirectory(prefix="torch-loaders-") as scratch:
            check(name, python, library, report, scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
