#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs whose ranks each have the optimizer's state for some whole tensors: of tensors of very different size one rank
has most, is slow for that, and the report says so. Of even ones nobody's part is larger.

    parts.py LIBTSCOPE TSCOPE-REPORT
"""
import sys
import tempfile

from training import Job, expect, python_or_skip, report_on

LARGER = "Its part of what the ranks share is larger"


def main():
    library, report = sys.argv[1:3]
    python = python_or_skip()
    for name in ("uneven", "even"):
        with tempfile.TemporaryDirectory(prefix="torch-parts-") as scratch:
            job = Job(python, library, scratch, name)
            job.run(name, script="parts_rank.py", ranks=3)
            document = report_on(report, job.directory)
        told = [one for one in document["findings"] if LARGER in one["evidence"]]
        print(name, [(one["title"], one["evidence"]) for one in told])
        expect([one["ranks"] for one in told] == ([[0]] if name == "uneven" else []), document["findings"])
        expect(all(one["action"].startswith("Divide what the ranks share by size") for one in told), told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
