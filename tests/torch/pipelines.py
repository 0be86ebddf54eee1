#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pipelines of two stages and two replicas over gloo, whose stage 1 works 6 ms longer for each of four micro-batches:
it is named, with what the step takes without that, whichever way the messages are received; once, not also rank by
rank. Where one rank of the stage works longer, this rank is named and the stage is not. Where all work equally long,
nobody is.

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


def named(findings):
    """Who had no core, on a busy machine, is noted as such beside those that are named."""
    return [finding for finding in findings if "Only a note: threads that could run had no core" not in finding["evidence"]]


def straggler_findings(document):
    return named(finding for finding in document["findings"] if finding["id"] == "DIST.STRAGGLER")


def check_slow(document):
    path = document["critical_path"]
    saved = {one["change"]: one["step_ms"] for one in path["what_if"]}
    truth = document["distributed"]["mean_step_wall_ms"] - MICRO_BATCHES * SLOW_MS
    expect(abs(saved["stage 1 as fast as the others"] / truth - 1) < 0.15, f"{truth} ms of {path['what_if']}")
    found = stage_findings(document)
    expect(len(found) == 1 and found[0]["title"].startswith("Stage 1 "), f"stage 1 is named: {found}")
    expect(found[0]["ranks"] == [2, 3], found[0])
    expect(not straggler_findings(document), f"the stage is told once: {straggler_findings(document)}")
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
    document = report_of(python, library, report, "--slow-rank", "3")
    expect([one["ranks"] for one in straggler_findings(document)] == [[3]] and not stage_findings(document),
           f"one rank of a stage is slow: {document['findings']}")
    document = report_of(python, library, report)
    found = named(stage_findings(document)) + straggler_findings(document)
    expect(not found, f"nobody is slow: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
