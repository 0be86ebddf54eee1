#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulator's log obeys its laws: order on a stream, event waits, one end for all ranks of a
collective, and a transfer time of latency + bytes x bus factor / bandwidth of the slowest link.

    check_law.py TRAIN
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from observed import run  # noqa: E402
from truth import Truth  # noqa: E402

LATENCY_NS, BYTES_PER_NS = 20e3, 0.5  # the training program's defaults
GAP_NS, LAUNCH_NS = 1000, 3000

CASES = {
    "data parallel": ["--ranks", "4"],
    "tensor parallel": ["--ranks", "4", "--tensor", "2"],
    "pipeline": ["--ranks", "4", "--pipeline", "4"],
    "slow link": ["--ranks", "4", "--slow-link", "1-2:0.25"],
}


def fail(message):
    print(message)
    sys.exit(1)


def check_streams(truth):
    for rank in truth.ranks:
        for op in rank.order:
            runs = op.kind not in ("event", "wait")
            ready = op.launched + (LAUNCH_NS if runs else 0)
            for other in [op.previous] + op.after:
                if other in rank.ops:
                    ready = max(ready, rank.ops[other].end + (GAP_NS if runs else 0))
            if op.start != ready:
                fail(f"rank {rank.number} op {op.id} starts at {op.start}, not at {ready}")


def transfer_ns(call, slow):
    n, message = call["ranks"], call["call"] in ("send", "recv")
    factor = 1 if message else 2 * (n - 1) / n  # all other calls of the training program are all-reduces
    bandwidth = BYTES_PER_NS * (0.25 if slow else 1)
    return LATENCY_NS + call["bytes"] * factor / bandwidth


def check_collectives(truth, slow):
    for meeting in truth.meetings:
        call = meeting.members[0][1]
        expected = 2 if call["call"] in ("send", "recv") else call["ranks"]
        if len(meeting.members) != expected:
            fail(f"{call} met {len(meeting.members)} ranks, not {expected}")
        if len({member["end"] for _, member in meeting.members}) != 1:
            fail(f"{call} ends at different times")
        wanted = transfer_ns(call, slow)
        if abs(meeting.transfer - wanted) > 1:
            fail(f"{call} took {meeting.transfer} ns after the last arrival, not {wanted}")


def main():
    for name, options in CASES.items():
        with tempfile.TemporaryDirectory(prefix="standin-law-") as directory:
            run(sys.argv[1], "--steps", "6", "--log", directory, *options)
            truth = Truth(directory)
            check_streams(truth)
            check_collectives(truth, slow=name == "slow link")
            print(f"{name}: {sum(len(rank.order) for rank in truth.ranks)} operations, "
                  f"{len(truth.meetings)} collectives and messages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
