#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""truth.py and replay.py against closed forms: schedules without variation, computed by hand.

    check_truth.py TRAIN
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from truth import Truth  # noqa: E402

STEPS, FIRST = 14, 4
# The host runs eight steps ahead, so that no launch is late on a busy machine.
EVEN = ["--steps", str(STEPS), "--jitter", "0", "--warmup", "0", "--ahead", "8", "--loss", "0"]

COMPUTE = 8e6 + 12e6 + 2e6                     # forward, backward, optimizer
INPUT = 2e3 + 256 * 1024 / 20                  # latency, bytes over the host link
TRANSFER = 20e3 + 256 * 1024 * 1.5 / 0.5       # of one all-reduce of four ranks
FIRST_TRANSFER = 20e3 + 64 * 1024 * 1.5 / 0.5
KERNELS, BUCKETS, GAP = 8 + 8 + 1, 4, 1e3
COMM = FIRST_TRANSFER + (BUCKETS - 1) * TRANSFER
IN_LINE = COMPUTE + INPUT + (KERNELS + 1) * GAP  # a step without all-reduces

wrong = 0


def near(name, value, wanted, within=100):
    global wrong
    right = abs(value - wanted) <= within
    wrong += not right
    print(f"{name:50} {value:14.1f} {wanted:14.1f}{'' if right else '  <-- wrong'}")


def truth_of(train, options):
    with tempfile.TemporaryDirectory(prefix="standin-truth-") as directory:
        subprocess.run([train] + EVEN + options + ["--log", directory], check=True)
        return Truth(directory)


def serial(train):
    """Nothing overlaps: a step is the sum of its parts."""
    truth = truth_of(train, ["--overlap", "0"])
    steady, what_if = truth.steady(FIRST, STEPS), truth.what_if(FIRST, STEPS)
    step = IN_LINE + COMM + BUCKETS * GAP
    near("serial: step", steady["step"], step)
    near("serial: compute", steady["compute"], COMPUTE)
    near("serial: exposed", steady["exposed"], COMM)
    near("serial: exposed wait", steady["exposed_wait"], 0)
    near("serial: exposed copy", steady["exposed_memcpy"], INPUT)
    near("serial: path, compute", steady["path"]["by_category"]["compute"], COMPUTE)
    near("serial: path, communication", steady["path"]["by_category"]["communication"],
         COMM)
    near("serial: communication free", what_if["communication"], step - COMM)
    near("serial: rank 1 as its peers", what_if["ranks"][1], step)


def overlapped(train):
    """All buckets but the last overlap with the backward pass: two of its layers take 3 ms."""
    truth = truth_of(train, [])
    steady = truth.steady(FIRST, STEPS)
    near("overlapped: step", steady["step"], IN_LINE + TRANSFER + GAP)
    near("overlapped: comm", steady["comm"], COMM)
    near("overlapped: exposed", steady["exposed"], TRANSFER)


def slow_rank(train):
    """The kernels of one rank take 1.5 times as long; the other ranks wait for the difference."""
    truth = truth_of(train, ["--overlap", "0", "--slow-rank", "2", "--slow-factor", "1.5"])
    steady, what_if = truth.steady(FIRST, STEPS), truth.what_if(FIRST, STEPS)
    even = IN_LINE + COMM + BUCKETS * GAP
    near("slow rank: step", steady["step"], even + COMPUTE / 2)
    for rank in steady["ranks"]:
        near(f"slow rank: exposed wait of rank {rank['rank']}", rank["exposed_wait"],
             0 if rank["rank"] == 2 else COMPUTE / 2)
    near("slow rank: path on it", steady["path"]["by_rank"][2], even + COMPUTE / 2)
    near("slow rank: as its peers", what_if["ranks"][2], even)


def main():
    for case in (serial, overlapped, slow_rank):
        case(sys.argv[1])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
