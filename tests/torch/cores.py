#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Four ranks on two cores are too many, and the report says so; one rank on two cores is not.

    cores.py LIBTSCOPE TSCOPE-REPORT

The true values are the kernel's counts, as the ranks themselves read them. If another process keeps this machine's
cores busy, one rank waits too, and then the report has to name another process as the reason.
"""
import os
import sys
import tempfile

from training import SKIPPED, Job, expect, python_with_torch, report_on

LIBRARY, REPORT = sys.argv[1:3]
SECONDS = "4"


def run(python, scratch, ranks):
    job = Job(python, LIBRARY, scratch, f"of-{ranks}")
    out = job.run(SECONDS, script="busy_ranks.py", ranks=ranks)
    ran, waited = next((float(a), float(b)) for word, a, b in
                       (line.split() for line in out.splitlines() if line.count(" ") == 2)
                       if word == "scheduled")
    findings = report_on(REPORT, job.directory)["findings"]
    return [f for f in findings if f["id"] == "HOST.OVERSUBSCRIBED"], findings, waited / (ran + waited)


def main():
    python = python_with_torch()
    cores = sorted(os.sched_getaffinity(0))[:2]
    for reason in ([] if python else ["no Python with PyTorch 2"]) + \
                  ([] if len(cores) == 2 else ["one core alone"]) + \
                  ([] if os.path.exists("/proc/self/schedstat") else ["no schedstat in this kernel"]):
        print("skipped:", reason)
        return SKIPPED
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory(prefix="tscope-cores-") as scratch:
        found, findings, share = run(python, scratch, 4)
        expect(share > 0.25, f"four ranks on two cores waited {share:.0%}: no truth to test with")
        expect(len(found) == 1 and found[0]["severity"] == "critical", findings)
        expect(found[0]["title"].startswith("4 ranks share 2 cores"), found)
        expect(findings[0] is found[0], findings)
        for finding in findings:
            under = "This may follow from HOST.OVERSUBSCRIBED" in finding["evidence"]
            expect(under == finding["id"].startswith(("DIST.", "TIMING.", "EFFICIENCY.")), finding)
        found, findings, share = run(python, scratch, 1)
        print(f"one rank waited {share:.0%}: {[f['title'] for f in found]}")
        expect(not any("share" in f["title"] or "has only" in f["title"] for f in found), found)
        if share < 0.08:
            expect(not found, found)
        if share > 0.15:
            expect(len(found) == 1, f"waited {share:.0%}: {findings}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
