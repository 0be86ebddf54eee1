#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pipelines of two stages and two replicas over gloo, whose stage 1 works 6 ms longer for each of four micro-batches:
it is named, with what the step takes without that, whichever way the messages are received. Where the stages work
equally long, none is.

    pipelines.py LIBTSCOPE TSCOPE-REPORT
"""
import sys
import tempfile

from training import SKIPPED, Job, expect, python_with_torch, report_on

STEPS, MICRO_BATCHES, SLOW_MS = 40, 4, 6.0


def report_of(python, library, report, *options):
    with tempfile.TemporaryDirectory(prefix="torch-pipelines-") as scratch:
        job = Job(python, library, scratch, "pipeline")
        job.run("--steps", str(STEPS), *options, script="pipeline_gloo.py")
        return report_on(report, job.directory)


def stage_findings(document):
    return [finding for finding in document["findings"] if finding["title"].startswith("Stage ")]


def check_slow(document):
    path = document["critical_path"]
    saved = {one["change"]: one["step_ms"] for one in path["what_if"]}
    truth = document["distributed"]["mean_step_wall_ms"] - MICRO_BATCHES * SLOW_MS
    expect(abs(saved["stage 1 as fast as the others"] / truth - 1) < 0.15, f"{truth} ms of {path['what_if']}")
    found = stage_findings(document)
    expect(len(found) == 1 and found[0]["title"].startswith("Stage 1 "), f"stage 1 is named: {found}")
    expect(found[0]["ranks"] == [2, 3], found[0])
    unknown = path["by_category"]["unknown"]
    expect(unknown <= 0.02 * path["length_ms"], f"{unknown} ms of the path have no reason")


def main():
    library, report = sys.argv[1:3]
    python = python_with_torch()
    if not python:
        print("skipped: no Python with PyTorch 2; scripts/setup test installs one")
        return SKIPPED
    for way in ("irecv", "recv", "batch"):
        check_slow(report_of(python, library, report, "--slow-stage", "1", "--way", way))
    found = stage_findings(report_of(python, library, report))
    expect(not found, f"no stage is slow: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
