#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which ranks the report names, over many runs of the training script on four ranks.

    repeat.py RUNS LIBTSCOPE TSCOPE-REPORT [options of ddp_gloo.py]
"""
import sys
import tempfile

from training import Job, python_or_skip, report_on


def main():
    runs, library, tool, *options = sys.argv[1:]
    python = python_or_skip()
    for _ in range(int(runs)):
        with tempfile.TemporaryDirectory(prefix="tscope-repeat-") as scratch:
            job = Job(python, library, scratch, "run")
            job.run(*options)
            found = report_on(tool, job.directory)
        print("named:", found["distributed"]["stragglers"], "steps:", found["steps"]["count"],
              flush=True)


if __name__ == "__main__":
    main()
