#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Four ranks on two cores are too many, and the report says so; one rank on two cores is not.

    cores.py --build BUILD [CASE...]

The true values are the kernel's counts, as the ranks themselves read them. If they used the cores, they are too many by
themselves; if other processes had most of the cores, the report has to name these, for one rank as for four. In between
it may say either.
"""
import os
import re

from findings import findings_of
from torch_job import TorchJob
from outcomes import Skip, expect
from repeated import main

SECONDS = "4"
FULL, TAKEN = 1.8, 1.0  # of two cores: the ranks have all of them; others have most


def run(build, folder, ranks):
    """The finding, all findings, the share of their time that the ranks waited, and how many cores they used."""
    job = TorchJob(build, folder, "job")
    out = job.run(SECONDS, script="busy_ranks.py", ranks=ranks)
    times = [[float(number) for number in found] for found in re.findall(r"scheduled (\d+) (\d+) (\d+)", out)]
    expect(len(times) == ranks, out)
    ran, waited, took = (sum(column) for column in zip(*times))
    document = job.report()
    return findings_of(document, "HOST.OVERSUBSCRIBED"), document["findings"], waited / (ran + waited), ran / (took / ranks)


def check_too_many(found, findings, used):
    expect(len(found) == 1, findings)
    if used > FULL:
        expect(found[0]["severity"] == "critical", findings)
    if found[0]["severity"] != "critical":
        expect(found[0]["title"].startswith("Threads on ") and "something else used" in found[0]["evidence"], found)
        return
    expect(used > TAKEN, f"{used:.2f} of 2 cores, and {found}")
    expect(found[0]["title"].startswith("4 ranks share 2 cores"), found)
    expect(findings[0] is found[0], findings)
    for finding in findings:
        under = "This may follow from HOST.OVERSUBSCRIBED" in finding["evidence"]
        expect(under == finding["id"].startswith(("DIST.", "TIMING.", "EFFICIENCY.")), finding)


def four_ranks(build, folder):
    found, findings, share, used = run(build, folder, 4)
    expect(share > 0.25, f"four ranks on two cores waited {share:.0%}: no truth to test with")
    print(f"four ranks waited {share:.0%} and used {used:.2f} cores: {[f['title'] for f in found]}")
    check_too_many(found, findings, used)


def one_rank(build, folder):
    found, findings, share, _ = run(build, folder, 1)
    print(f"one rank waited {share:.0%}: {[f['title'] for f in found]}")
    expect(not any("share" in f["title"] or "has only" in f["title"] for f in found), found)
    if share < 0.08:
        expect(not found, found)
    if share > 0.15:
        expect(len(found) == 1, f"waited {share:.0%}: {findings}")


def prepare(_):
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise Skip("one core alone")
    if not os.path.exists("/proc/self/schedstat"):
        raise Skip("no schedstat in this kernel")
    os.sched_setaffinity(0, cores)


CASES = {"four": four_ranks, "one": one_rank}

if __name__ == "__main__":
    main(CASES, lambda name, build, folder: CASES[name](build, folder), prepare=prepare)
