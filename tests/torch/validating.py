#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job that validates every 20 steps and whose rank 0 saves every 25: the report names these steps and what they
contain, and its figures of training contain only training.

    validating.py LIBTSCOPE TSCOPE-REPORT
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

from training import SKIPPED, Job, expect, python_with_torch

STEPS = 110


def of_kind(document, words):
    kinds = [work for work in document["steps"]["other"] if words in work["what"]]
    expect(len(kinds) == 1, f"one kind of steps that is '{words}': {document['steps']['other']}")
    return kinds[0]


def check_steps(document):
    """A step ends with its optimizer: what follows the twentieth optimizer call is in step 20, counted from 0."""
    validation, checkpoint = of_kind(document, "forward only"), of_kind(document, "rank 0 alone")
    expect(len(document["steps"]["other"]) == 2, f"and nothing else: {document['steps']['other']}")
    expect(validation["step"] == [20, 40, 60, 80, 100] and validation["every"] == 20, validation)
    expect(checkpoint["step"] == [25, 50, 75, 100] and checkpoint["every"] == 25, checkpoint)
    expect(validation["rank"] is None and checkpoint["rank"] == 0, checkpoint)
    warmup = document["steps"]["warmup_excluded"]
    expect(document["steps"]["training"] == STEPS - warmup - 8, document["steps"]["training"])


def check_training(document):
    """Compares medians and the budget with the series of all steps."""
    series, other = document["series"]["steps"], set(range(20, STEPS, 20)) | set(range(25, STEPS, 25))
    looked_at = list(zip(series["step"], series["wall_ms"]))[document["steps"]["warmup_excluded"]:]
    typical = statistics.median(ms for step, ms in looked_at if step not in other)
    expect(abs(document["steps"]["median_ms"] / typical - 1) < 1e-3, f"{typical} is the median")
    other_work_s = sum(ms for step, ms in looked_at if step in other) / 1e3
    lines = {line["name"]: line["seconds"] for line in document["budget"]["lines"]}
    expect(abs(lines["other than training"] / other_work_s - 1) < 1e-3, f"{other_work_s} s of {lines}")
    expect(abs(sum(lines.values()) - document["budget"]["wall_s"]) < 1e-3, "lines sum to the wall")


def check_words(document, text):
    titles = [finding["title"] for finding in document["findings"] if finding["id"] == "TIMING.JITTER"]
    for wanted in ("Steps 20, 40, 60 and 2 more: something that takes", "every 20 steps, forward only",
                   "Steps 25, 50, 75, 100: something that takes", "every 25 steps, on rank 0 alone"):
        expect(any(wanted in title for title in titles), f"'{wanted}' in {titles}")
        expect(wanted.lower() in " ".join(text.lower().split()), f"'{wanted}' in the text")
    # On a busy machine ranks wait for each other in training too, but not in these steps.
    judged = document["distributed"]["n_steps"]
    expect(judged == document["steps"]["training"], f"waits are judged on {judged} steps")
    barriers = [row for row in document["overlap"]["by_collective"] if row["op"] == "barrier"]
    expect(not barriers, f"the checkpoint's barrier is none of training's waits: {barriers}")


def main():
    library, report = sys.argv[1:3]
    python = python_with_torch()
    if not python:
        print("skipped: no Python with PyTorch 2; scripts/setup test installs one")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="torch-validating-") as scratch:
        job = Job(python, library, scratch, "validating")
        job.run(str(STEPS), os.path.join(scratch, "checkpoint.pt"), script="validating_rank.py", ranks=2)
        text = subprocess.run([report, job.directory], capture_output=True, text=True, check=True).stdout
        document = json.loads(subprocess.run([report, job.directory, "--format", "json"],
                                             capture_output=True, text=True, check=True).stdout)
        try:
            check_steps(document)
            check_training(document)
            check_words(document, text)
        except AssertionError:
            print(text)
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
