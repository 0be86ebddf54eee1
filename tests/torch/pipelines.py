#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pipelines of two stages and two replicas over gloo, whose stage 1 works 6 ms longer for each of four micro-batches:
it is named, with what the step takes if it works as long as the other, whichever way the messages are received; once,
not also rank by rank. Where one rank of the stage works longer, this rank is named and the stage is not. Where all work
equally long, nobody is. What a step then takes is from the job's own clock in the same run: on a busy machine other
delays hide a part of the work, and the other stage works longer too.

    pipelines.py --build BUILD [JOB...]
"""
import json
import os

from torch_job import TorchJob
from findings import findings_of
from outcomes import expect
from repeated import main

STEPS, RANKS = 40, 4
WAYS = ("irecv", "recv", "batch")  # to receive messages
JOBS = {**{way: ["--slow-stage", "1", "--way", way] for way in WAYS}, "slow-rank": ["--slow-rank", "3"], "even": []}


def works_s(steps):
    """Between what it does with others, and in the slow work, of which how much is told too. Stage 0 works before the first
    thing that it does with others in a step."""
    ops = [op for step in steps for op in step]
    slow = [end - begin for what, begin, end in ops if what == "slow work"]
    between = [after[1] - before[2] for before, after in zip(ops, ops[1:])]
    return sum(slow) + sum(between), sum(slow)


def slow_work_left(ranks):
    """Which share of the slow work is left if stage 1 works as long as stage 0."""
    works = [works_s(steps) for steps in ranks]
    more, slow = sum(work[0] for work in works[2:]) - sum(work[0] for work in works[:2]), sum(work[1] for work in works)
    return min(1, max(0, 1 - more / slow)) if slow else 1


def ends_with_slow_work(ranks, left):
    """When each step ends on each rank, if the slow work takes such a share of its time. A rank receives its k-th message as long after
    the other stage's rank sent its k-th as it did. Each rank goes on as long as it did after the last of its stage began to reduce."""
    ops, done = [[op for step in steps for op in step] for steps in ranks], [0] * RANKS
    before = [steps[0][0][1] for steps in ranks]  # where the last thing that was done ended
    now = list(before)
    sent, reduces, ends = ([[] for _ in ranks] for _ in range(3))
    messages = [[op for op in of_rank if op[0] == "send"] for of_rank in ops]
    sums = [[op for op in of_rank if op[0] == "reduce"] for of_rank in ops]
    received = [0] * RANKS
    while any(done[r] < len(ops[r]) for r in range(RANKS)):
        for r in range(RANKS):
            while done[r] < len(ops[r]):
                what, begin, end = ops[r][done[r]]
                start, peer, other = now[r] + begin - before[r], (r + RANKS // 2) % RANKS, r ^ 1
                if what == "receive":
                    if received[r] >= len(sent[peer]):
                        break
                    k = received[r]
                    now[r] = max(start, sent[peer][k]) + end - max(begin, messages[peer][k][1])
                    received[r] += 1
                elif what == "reduce":
                    k = len(ends[r])
                    if len(reduces[r]) == k:
                        reduces[r].append(start)
                    if len(reduces[other]) <= k:
                        break
                    now[r] = max(start, reduces[other][k]) + end - max(begin, sums[other][k][1])
                else:
                    if what == "send":
                        sent[r].append(start)
                    now[r] = start + (end - begin) * (left if what == "slow work" else 1)
                    if what == "update":
                        ends[r].append(now[r])
                before[r] = end
                done[r] += 1
    return ends


def report_of(build, folder, options):
    """And how long a step takes if stage 1 works as long as stage 0, by the job's own clock."""
    job = TorchJob(build, folder, "pipeline")
    job.run("--steps", str(STEPS), "--times", folder, *options, script="pipeline_gloo.py", ranks=RANKS)
    ranks = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"rank{rank}.json"), encoding="utf-8") as file:
            ranks.append(json.load(file))
    document = job.report()
    first = document["steps"]["warmup_excluded"]
    ends = ends_with_slow_work(ranks, slow_work_left(ranks))
    return document, sum(1e3 * (end[-1] - end[first - 1]) / (STEPS - first) for end in ends) / RANKS


def stage_findings(document):
    return [finding for finding in document["findings"] if finding["title"].startswith("Stage ")]


def named(findings):
    """Who had no core, on a busy machine, is noted as such beside those that are named."""
    return [finding for finding in findings if "Only a note: threads that could run had no core" not in finding["evidence"]]


def straggler_findings(document):
    return named(findings_of(document, "DIST.STRAGGLER"))


def check_slow(document, truth_ms):
    path, step_ms = document["critical_path"], document["distributed"]["mean_step_wall_ms"]
    said_ms = {one["change"]: one["step_ms"] for one in path["what_if"]}["stage 1 as fast as the others"]
    print(f"{step_ms:.1f} ms a step; stages equally fast: {said_ms:.1f} ms, in truth {truth_ms:.1f} ms")
    expect(abs(said_ms - truth_ms) < 0.03 * step_ms, f"{truth_ms} ms of {path['what_if']}")
    found = stage_findings(document)
    expect(len(found) == 1 and found[0]["title"].startswith("Stage 1 "), f"stage 1 is named: {found}")
    expect(found[0]["ranks"] == [2, 3], found[0])
    expect(not straggler_findings(document), f"the stage is told once: {straggler_findings(document)}")
    unknown = path["by_category"]["unknown"]
    expect(unknown <= 0.02 * path["length_ms"], f"{unknown} ms of the path have no reason")


def check(name, build, folder):
    document, truth_ms = report_of(build, folder, JOBS[name])
    if name in WAYS:
        check_slow(document, truth_ms)
    elif name == "slow-rank":
        expect([one["ranks"] for one in straggler_findings(document)] == [[3]] and not stage_findings(document),
               f"one rank of a stage is slow: {document['findings']}")
    else:
        found = named(stage_findings(document)) + straggler_findings(document)
        expect(not found, f"nobody is slow: {found}")


if __name__ == "__main__":
    main(JOBS, check)
