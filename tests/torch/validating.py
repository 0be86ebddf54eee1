#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that validate and save at fixed distances: the report names these steps and what they contain, however long they
take, and its figures of training contain only training. The truth is what the job itself writes.

    validating.py --build BUILD [JOB...]
"""
import json
import os
import statistics

from torch_job import TorchJob
from built import built
from findings import findings_of
from observed import run
from outcomes import expect
from repeated import main

# Long ones; short validations, which share steps with checkpoints; nothing but their passes shows validations, nothing
# but their time checkpoints, which therefore must be many and long beside what a busy machine makes of other steps;
# frequent calls that take no time are training.
SHORT = ["--accumulate", "4", "--validate-every", "10", "--batches", "8", "--saves", "4"]
JOBS = {"both": ["--steps", "110"],
        "many": [*SHORT, "--steps", "400"],
        "silent": [*SHORT, "--steps", "200", "--saves", "12", "--own", "--no-barrier", "--log-every", "5"]}
KINDS = {"validation": ("forward only", None), "checkpoint": ("on rank 0 alone while the others wait", 0)}


def check_steps(document, truth):
    """A step ends with its optimizer: what follows the twentieth optimizer call is in step 20, counted from 0. First steps
    that a busy machine makes long are left out like any warm-up."""
    steps_of, found, besides = document["steps"], document["steps"]["other"], set()
    count, warmup = steps_of["count"], steps_of["warmup_excluded"]
    expect(len(found) == len(KINDS), f"and nothing else: {found}")
    for kind, (words, rank) in KINDS.items():
        works = [work for work in found if work["what"] == words]
        expect(len(works) == 1, f"one kind of steps that is '{words}': {found}")
        every = min(map(int, truth[kind]))
        took = {int(step): ms for step, ms in truth[kind].items() if warmup <= int(step) < count}
        steps = sorted(took)
        expect(works[0]["step"] == steps and works[0]["every"] == every, f"{steps}: {works[0]}")
        expect(works[0]["rank"] == rank, works[0])
        ms = statistics.median(took.values())
        expect(0.3 * ms < works[0]["ms"] < 2 * ms + 10, f"{kind} takes {ms} ms: {works[0]}")
        besides |= set(steps)
    expect(steps_of["training"] == count - warmup - len(besides), steps_of["training"])
    return besides


def check_training(document, other):
    """Compares medians and the budget with the series of all steps."""
    series = document["series"]["steps"]
    looked_at = list(zip(series["step"], series["wall_ms"]))[document["steps"]["warmup_excluded"]:]
    typical = statistics.median(ms for step, ms in looked_at if step not in other)
    expect(abs(document["steps"]["median_ms"] / typical - 1) < 1e-3, f"{typical} is the median")
    other_work_s = sum(ms for step, ms in looked_at if step in other) / 1e3
    lines = {line["name"]: line["seconds"] for line in document["budget"]["lines"]}
    expect(abs(lines["other than training"] / other_work_s - 1) < 1e-3, f"{other_work_s} s of {lines}")
    expect(abs(sum(lines.values()) - document["budget"]["wall_s"]) < 1e-3, "lines sum to the wall")


def check_words(document, text):
    titles = [finding["title"] for finding in findings_of(document, "TIMING.JITTER")]
    for wanted in ("Steps 20, 40, 60 and 2 more: something that takes", "every 20 steps, forward only",
                   "Steps 25, 50, 75, 100: something that takes", "every 25 steps, on rank 0 alone"):
        expect(any(wanted in title for title in titles), f"'{wanted}' in {titles}")
        expect(wanted.lower() in " ".join(text.lower().split()), f"'{wanted}' in the text")
    # On a busy machine ranks wait for each other in training too, but not in these steps.
    judged = document["distributed"]["n_steps"]
    expect(judged == document["steps"]["training"], f"waits are judged on {judged} steps")
    barriers = [row for row in document["overlap"]["by_collective"] if row["op"] == "barrier"]
    expect(not barriers, f"the checkpoint's barrier is none of training's waits: {barriers}")


def longest(of_ranks):
    """What each step did, as long as the rank took that took longest: a step has all ranks' work."""
    return {kind: {step: max(took[kind][step] for took in of_ranks) for step in of_ranks[0][kind]} for kind in of_ranks[0]}


def check(name, build, folder):
    job = TorchJob(build, folder, "validating")
    out = job.run(os.path.join(folder, "checkpoint.pt"), *JOBS[name], script="validating_rank.py", ranks=2)
    truth = longest([json.loads(line) for line in out.splitlines()])
    text = run(built(build, "tscope-report"), job.directory).stdout
    document = job.report()
    try:
        check_training(document, check_steps(document, truth))
        if name == "both":
            check_words(document, text)
    except AssertionError:
        print(f"{name}: {truth}\n{text}")
        raise


if __name__ == "__main__":
    main(JOBS, check)
