#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs on a GPU that validate, save and log at fixed distances, of a model that is not wrapped: the report names these
steps by what they hold, which the job itself writes. On the stand-ins.

    kinds.py --build BUILD [JOB...]
"""
import json
import os

from torch_job import CudaJob
from findings import findings_of
from outcomes import expect
from repeated import main

# How many ranks, 0: one process that is no rank; and its options.
JOBS = {"both": (0, []),
        "relatives": (0, ["--accumulate", "3", "--validate-every", "7", "--save-every", "20"]),
        "logged": (0, ["--validate-every", "0", "--save-every", "0", "--log-every", "5"]),
        "ranks": (2, ["--accumulate", "2"])}
WORDS = {"validation": "with copies to the GPU", "checkpoint": "copied from the GPU"}
WORDS_OF_RANKS = {**WORDS, "checkpoint": "on rank 0 alone while the others wait"}


def judge(document, truth, words_of):
    """A step ends with its optimizer: what follows the tenth optimizer call is in step 10, counted from 0."""
    found, first = document["steps"]["other"], document["steps"]["warmup_excluded"]
    for kind, words in words_of.items():
        steps = [step for step in truth[kind] if step >= first]
        works = [work for work in found if words in work["what"]]
        expect(len(works) == bool(steps), f"one kind of steps '{words}' at {steps}: {found}")
        expect(not works or works[0]["step"] == steps, f"{steps}: {works}")
    expect(len(found) == sum(bool(truth[kind]) for kind in WORDS), f"and nothing else: {found}")
    titles = [finding["title"] for finding in findings_of(document, "TIMING.JITTER")]
    for work in found:
        expect(any(f"every {work['every']} steps" in title for title in titles), f"{work} in {titles}")


def check(name, build, folder):
    ranks, options = JOBS[name]
    job = CudaJob(build, folder, name)
    job.environment.update(STANDIN_KERNEL_US="300", **({} if ranks else {"RANK": "0"}))
    out = job.run(os.path.join(folder, "checkpoint.pt"), *options, script="kinds_rank.py", ranks=ranks)
    document = job.report()
    print(name, document["steps"]["other"], document["steps"]["in_turn"])
    judge(document, json.loads(out), WORDS_OF_RANKS if ranks else WORDS)


if __name__ == "__main__":
    main(JOBS, check)
