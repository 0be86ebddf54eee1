#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch jobs over gloo whose ranks wait for each other's messages in a circle: the report names all of them, for whom
each waits, and their lines.

    circles.py --build BUILD [JOB...]
"""
import json
import os
import signal

from torch_job import HERE, TorchJob
import read_trace
from marks import place_of
from outcomes import expect, wait_until
from repeated import main

# Ranks, marks of the lines in circle_rank.py, and for whom each rank of the circle waits. The third rank of the last
# job only waits for those of the circle.
JOBS = {"sends": (4, ["the first half's", "the second half's"], [2, 3, 0, 1]),
        "send-ring": (3, ["the send"], [1, 2, 0]),
        "recv-ring": (3, ["the receive"], [1, 2, 0]),
        "irecv-ring": (3, ["the wait"], [1, 2, 0]),
        "batch-ring": (3, ["the batch"], [1, 2, 0]),
        "recv-and-reduce": (3, ["the receive of one", "the all_reduce of the others"], [1, 0])}


def run_until_stalled(job, name):
    ranks = JOBS[name][0]
    process = job.start("circle_rank.py", [name], ranks)

    def all_stall():
        expect(process.poll() is None, f"{name}: all ranks stall")
        return sum(bool(trace.records["Stall"]) for trace in read_trace.read_all(job.directory)) == ranks
    try:
        wait_until(f"{name}: all ranks stall", all_stall, each=0.5)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def judge(name, document):
    _, marks, waits_for = JOBS[name]
    circle = list(range(len(waits_for)))
    suspects = {suspect["rank"]: suspect for suspect in document["collective_check"]["suspects"]}
    expect(sorted(suspects) == circle, f"{name}: {sorted(suspects)}")
    for rank, suspect in suspects.items():
        words = json.dumps(suspect)
        expect("circle" in words and f"for rank {waits_for[rank]}" in words, f"{name}: {words}")
    first = document["findings"][0]
    expect(first["id"] == "DIST.HANG" and first["ranks"] == circle, f"{name}: {first}")
    for mark in marks:
        place = place_of(os.path.join(HERE, "jobs", "circle_rank.py"), mark)
        expect(place in first["title"], f"{name}: {place} in {first['title']}")
    said = json.dumps(document["findings"])
    expect("CUPTI" not in said and "all ranks are at the same place" not in said.lower(), f"{name}: {said}")


def check(name, build, folder):
    job = TorchJob(build, folder, name)
    job.environment["TSCOPE_STALL"] = "3"
    run_until_stalled(job, name)
    judge(name, job.report())


if __name__ == "__main__":
    main(JOBS, check)
