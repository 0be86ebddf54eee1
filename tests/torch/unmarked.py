#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that run no optimizer: the report finds their steps by what comes again and again, and says so; where nothing
does, it finds none.

    unmarked.py LIBTSCOPE TSCOPE-REPORT STANDIN-FOLDER
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import standin_wheel  # noqa: E402
from training import Job, expect, python_or_skip, report_on  # noqa: E402

# The job, where it runs, and how its steps are found; None: they are not.
JOBS = [("by_hand", "cpu", "backward passes"), ("accumulated", "cpu", "backward passes"),
        ("by_hand", "cuda", "backward passes"), ("inference", "cuda", "repeated launches"), ("answers", "cuda", None)]
STEPS = 40


def check(document, out, method):
    steps = document["steps"]
    if method is None:
        expect(steps["method"] == "none" and steps["count"] == 0, f"no steps: {steps}")
        return
    count, took_ms = map(float, out.split())
    expect(steps["method"] == method, f"found by {method}: {steps}")
    expect(abs(steps["count"] - count) <= 1, f"{count} steps: {steps}")
    # What a job that is not alone on its cores measures of itself is not exact either.
    expect(abs(steps["median_ms"] / took_ms - 1) < 0.15, f"{took_ms} ms: {steps}")


def main():
    library, report, standins = sys.argv[1:4]
    python = python_or_skip()
    wheel, why_not = standin_wheel.site_packages(python)
    with tempfile.TemporaryDirectory(prefix="torch-unmarked-") as scratch:
        site = standin_wheel.make(wheel, standins, os.path.join(scratch, "site")) if wheel else None
        for name, device, method in JOBS:
            if device == "cuda" and not wheel:
                print(f"left out: {name} on a GPU: {why_not}")
                continue
            job = Job(python, library, scratch, f"{name}-{device}")
            if device == "cuda":
                job.environment.update(PYTHONPATH=site, RANK="0")
            out = job.run(name, device, str(STEPS), script="unmarked_job.py", ranks=0)
            document = report_on(report, job.directory)
            print(name, device, out.strip(), document["steps"]["method"], document["steps"]["count"],
                  document["steps"]["median_ms"])
            check(document, out, method)
    return 0


if __name__ == "__main__":
    sys.exit(main())
