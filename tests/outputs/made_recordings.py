#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of PyTorch's profiler that are made here, by a simulation of hosts and streams, so that their truth is known: who
is slow, and how much shorter the job is without that.

    made_recordings.py TSCOPE-REPORT [CASE...]

What the replay says of the slow rank, or of all ranks, is held against the same simulation without the cause: within 2 % of
the step.
"""
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import json_of  # noqa: E402

WORLD, SLOW, STEPS = 4, 2, 40
COMPUTE, COMM, COPY = 7, 20, 30  # streams


class Rank:
    """Times in us."""

    def __init__(self, number):
        self.number, self.now, self.numbers, self.events = number, 0.0, 0, []
        self.ends = {COMPUTE: 0.0, COMM: 0.0, COPY: 0.0}
        self.random = random.Random(number)

    def add(self, cat, name, start, end, pid=None, tid=1, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": round(start, 3), "dur": round(end - start, 3),
                            "pid": 100 + self.number if pid is None else pid, "tid": tid, "args": args})

    def launch(self, took=6):
        self.numbers += 1
        self.add("cuda_runtime", "cudaLaunchKernel", self.now, self.now + took - 1, correlation=self.numbers)
        self.now += took
        return self.numbers, self.now + 4

    def run(self, name, start, end, stream, number, **args):
        self.ends[stream] = end
        cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        self.add(cat, name, start, end, pid=0, tid=stream, correlation=number, stream=stream, device=0, **args)

    def kernel(self, name, took, stream=COMPUTE, after=0.0, lost=False):
        number, soonest = self.launch()
        start = max(soonest, self.ends[stream] + 1, after + 1.5)
        took *= 1 + 0.03 * self.random.uniform(-1, 1)
        self.run(name, start, start + took, stream, number)
        if lost:
            self.events.pop()
        return start + took

    def wait_for_device(self):
        begin, self.now = self.now, max(self.now + 3, max(self.ends.values()) + 5)
        self.numbers += 1
        self.add("cuda_runtime", "cudaDeviceSynchronize", begin, self.now, correlation=self.numbers)


def work_before_steps(rank):
    """As an evaluation before training: of none of the steps."""
    for part in range(64):
        rank.kernel(f"gemm_forward_{part % 8}", 400)
    rank.wait_for_device()


def about(name, **args):
    return {"Collective name": name, "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float", "Group size": WORLD,
            "Process Group Name": "0", "Process Group Ranks": str(list(range(WORLD))), **args}


def meet(ranks, calls, took, name="allreduce"):
    """A collective on the stream of communication; the calls are numbers and soonest begins, by rank."""
    starts = [max(soonest, rank.ends[COMM] + 1) for rank, (_, soonest) in zip(ranks, calls)]
    end = max(starts) + took
    for rank, start, (number, _) in zip(ranks, starts, calls):
        rank.run("ncclDevKernel_" + {"allreduce": "AllReduce_Sum_f32_RING_LL"}.get(name, "AllGather_RING_LL"), start, end, COMM, number,
                 **about(name))
    return end


def data_parallel(more, lost=lambda rank, step: False, before=False, at_end=False):
    """Gradients are reduced in four parts during the backward pass; the slow rank's GPU takes `more` longer for all compute."""
    ranks = [Rank(number) for number in range(WORLD)]
    if before:
        work_before_steps(ranks[SLOW])
    for step in range(STEPS):
        begins, calls = [rank.now for rank in ranks], [[] for _ in range(4)]
        for rank in ranks:
            factor, gone = 1 + more * (rank.number == SLOW), lost(rank.number, step)
            for part in range(8):
                rank.kernel(f"gemm_forward_{part}", 400 * factor, lost=gone)
            for part in range(8):
                end = rank.kernel(f"gemm_backward_{part}", 500 * factor, lost=gone)
                if part % 2:
                    number, soonest = rank.launch()
                    calls[part // 2].append((number, max(soonest, end + 1.5)))
        for part in calls:
            meet(ranks, part, 200)
        for rank, begin in zip(ranks, begins):
            rank.kernel("adam", 150, after=rank.ends[COMM], lost=lost(rank.number, step) or at_end and step == STEPS - 1)
            rank.wait_for_device()
            rank.add("user_annotation", f"ProfilerStep#{step}", begin, rank.now)
    return ranks


def call_exchange(rank):
    """As batch_isend_irecv(): to the next rank, and from the one before. Two ranges, and one launch."""
    for name, args in (("send", {"Dst Rank": (rank.number + 1) % WORLD}), ("recv", {"Src Rank": (rank.number - 1) % WORLD})):
        rank.add("cpu_op", "record_param_comms", rank.now, rank.now + 2, **about(name, **args))
        rank.now += 3
    return rank.launch()


def exchange(ranks, calls, took):
    """Each has both of its neighbours in it."""
    starts = [max(soonest, rank.ends[COMM] + 1) for rank, (_, soonest) in zip(ranks, calls)]
    for i, (rank, (number, _)) in enumerate(zip(ranks, calls)):
        end = max(starts[i], starts[i - 1], starts[(i + 1) % WORLD]) + took
        rank.run("ncclDevKernel_SendRecv", starts[i], end, COMM, number)


def ring(more, took=150):
    """Ring attention: blocks go round, each rank computes with one while it sends it on."""
    ranks = [Rank(number) for number in range(WORLD)]
    for step in range(STEPS):
        begins = [rank.now for rank in ranks]
        for layer in range(6):
            for rank in ranks:
                rank.kernel(f"gemm_qkv_{layer}", 200)
            got = [rank.ends[COMPUTE] for rank in ranks]
            for hop in range(WORLD):
                calls = []
                for rank, there in zip(ranks, got):
                    if hop < WORLD - 1:
                        number, soonest = call_exchange(rank)
                        calls.append((number, max(soonest, there + 1.5)))
                for rank, there in zip(ranks, got):
                    rank.kernel("flash_attention_block", 250 * (1 + more * (rank.number == SLOW)), after=there)
                if calls:
                    exchange(ranks, calls, took)
                    got = [rank.ends[COMM] for rank in ranks]
        calls = []
        for rank in ranks:
            number, soonest = rank.launch()
            calls.append((number, max(soonest, rank.ends[COMPUTE] + 1.5)))
        meet(ranks, calls, 300)
        for rank, begin in zip(ranks, begins):
            rank.kernel("adam", 150, after=rank.ends[COMM])
            rank.wait_for_device()
            rank.add("user_annotation", f"ProfilerStep#{step}", begin, rank.now)
    return ranks


def sharded(more, copy=250, work=400):
    """As FSDP2: parameters of the next layer are copied in on a stream of their own, once the layer before is computed, and
    gathered; of the slow rank that copy takes longer. The copies of the others then run while they wait."""
    ranks = [Rank(number) for number in range(WORLD)]
    layers = 8
    for step in range(STEPS):
        begins = [rank.now for rank in ranks]
        done = [[rank.ends[COMPUTE], rank.ends[COMPUTE]] for rank in ranks]  # of the layers before
        for layer in range(layers):
            calls = []
            for rank, before in zip(ranks, done):
                copied = rank.kernel("split_with_sizes_copy_out", copy * (1 + 8 * more * (rank.number == SLOW)), COPY, before[layer])
                number, soonest = rank.launch()
                calls.append((number, max(soonest, copied + 1.5)))
            there = meet(ranks, calls, 60, "_allgather_base")
            for rank, before in zip(ranks, done):
                before.append(rank.kernel(f"gemm_{layer}", work, after=there))
        for rank, begin in zip(ranks, begins):
            rank.kernel("adam", 150)
            rank.wait_for_device()
            rank.add("user_annotation", f"ProfilerStep#{step}", begin, rank.now)
    return ranks


# name: a job with and without its cause
CASES = {
    "whole": data_parallel,
    "work of the slow rank before the first step": lambda more: data_parallel(more, before=True),
    "kernels of the slow rank lost in the middle": lambda more: data_parallel(more, lambda rank, step: rank == SLOW and 12 <= step < 28),
    "kernels lost twice, and most of them": lambda more: data_parallel(
        more, lambda rank, step: rank == SLOW and (3 <= step < 14 or 18 <= step < 38)),
    "kernels lost in the middle, and what was under way at the end": lambda more: data_parallel(
        more, lambda rank, step: rank == SLOW and 12 <= step < 28, at_end=True),
    "slow copies before gathering": lambda more: sharded(more),
    "slow copies that take half as long as the work": lambda more: sharded(more, 300, 300),
    "ring of messages": ring,
    "ring of slow messages": lambda more: ring(more, 400),
    "kernels of all ranks lost in the middle": lambda more: data_parallel(more, lambda rank, step: 10 <= step < 20),
}

# How many steps are known, where some are lost: of 40, 16 and the one that begins the recording are not.
KNOWN = {"kernels of the slow rank lost in the middle": 23, "kernels lost in the middle, and what was under way at the end": 23}


def without_sides(ranks):
    """As older versions of PyTorch record them: not whose the messages are."""
    for rank in ranks:
        rank.events = [event for event in rank.events if event["name"] != "record_param_comms"]
    return ranks


# What is not known is not promised.
UNKNOWN = {
    "ring of messages of which the sides are not recorded": (lambda: without_sides(ring(0.3)), "between which ranks"),
}


def write(ranks, folder):
    for rank in ranks:
        with open(os.path.join(folder, f"rank{rank.number}.pt.trace.json"), "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": WORLD},
                       "traceEvents": rank.events}, file)


def report_on(report, ranks):
    with tempfile.TemporaryDirectory(prefix="made-recordings-") as folder:
        write(ranks, folder)
        return json_of(report, folder)


def check_unknown(report, name):
    make, words = UNKNOWN[name]
    reason = report_on(report, make())["critical_path"]["what_if_reason"]
    wrong = words not in (reason or "")
    print(f"{name}: {reason}{'  <-- wrong' if wrong else ''}")
    return wrong


def check(report, name):
    if name in UNKNOWN:
        return check_unknown(report, name)
    slow, quick = CASES[name](0.3), CASES[name](0)
    end = [max(rank.now for rank in ranks) for ranks in (slow, quick)]
    true = 1 - end[1] / end[0]
    document = report_on(report, slow)
    row = next((row for row in document["critical_path"]["what_if"] if row["change"] == f"rank {SLOW} as fast as its peers"), None)
    told = row["saving_fraction"] if row else None
    found = [one for one in document["findings"] if one["id"] == "DIST.STRAGGLER"]
    named = [one["ranks"] for one in found]
    alike = "lost" in name or all("as often as its peers" in one["evidence"] for one in found)  # of lost kernels it cannot be told
    wrong = not alike or any("slow compute" not in one["title"] for one in found)
    wrong = wrong or named != [[SLOW]] or told is None or abs(told - true) > 0.02
    wrong = wrong or KNOWN.get(name, document["critical_path"]["steps"]) != document["critical_path"]["steps"]
    wrong = wrong or any(one["id"] == "KERNEL.LATE_START" for one in document["findings"])
    print(f"{name}: rank {SLOW} is worth {told} of the step, in truth {true:.4f}; named: {named}{'  <-- wrong' if wrong else ''}")
    return wrong


def main():
    wrong = [check(sys.argv[1], name) for name in sys.argv[2:] or [*CASES, *UNKNOWN]]
    sys.exit(any(wrong))


if __name__ == "__main__":
    main()
