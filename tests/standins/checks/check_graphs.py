#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which collective of a CUDA graph each kernel of a replay was, against the schedule that the
simulator logged: check_graphs.py LIBTSCOPE PRINT_RUNS TRAIN. In the graphs are several communicators,
whose kernels run on two streams and not in the order of the calls."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from truth import Truth  # noqa: E402

STEPS, FIRST = 12, 4
NEAR_NS = 2000  # the clocks are the same, read by two programs one after the other


def expect(right, words):
    if not right:
        print(words)
        sys.exit(1)


def run(train, library, directory, options):
    log, traces = os.path.join(directory, "log"), os.path.join(directory, "traces")
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("TSCOPE", "STANDIN", "RANK"))}
    subprocess.run([train, "--steps", str(STEPS), "--graph", str(FIRST), "--log", log] + options,
                   env={**env, "LD_PRELOAD": library, "TSCOPE_DIR": traces}, check=True,
                   stdout=subprocess.DEVNULL)
    return Truth(log), traces


def pairs(print_runs, traces):
    """{rank: {comm: {seq: (start, end)}}} as the analyzer has it, how many of them were in graphs,
    and how many of those were told by their nodes."""
    done = subprocess.run([print_runs, traces], check=True, stdout=subprocess.PIPE, text=True)
    *lines, last = done.stdout.splitlines()
    found, replayed = {}, 0
    for line in lines:
        rank, comm, seq, start, end, in_graph = line.split()
        calls = found.setdefault(int(rank), {}).setdefault(comm, {})
        expect(int(seq) not in calls, f"rank {rank}: two calls {seq} on communicator {comm}")
        calls[int(seq)] = (int(start), int(end))
        replayed += int(in_graph)
    _, told, _, _ = last.split()
    return found, replayed, int(told)


def wanted(rank):
    """The same of a rank's truth, and whether kernels ran out of the order of the calls."""
    comms, unordered, latest = {}, 0, 0
    for op in rank.order:
        for call in op.calls:
            message = call["call"] in ("send", "recv")
            if not message:
                comms.setdefault(op.comm, {})[call["sequence"] - 1] = (op.start, op.end)
        if op.calls:
            unordered += op.start < latest
            latest = max(latest, op.start)
    return comms, unordered


def from_the_first(comms):
    """With times since the rank's first collective: the report's begin with the run."""
    first = min(start for calls in comms.values() for start, _ in calls.values() if start)
    return {comm: {seq: (start - first, end - first) for seq, (start, end) in calls.items()}
            for comm, calls in comms.items()}


def is_same(found, truth):
    return sorted(found) == sorted(truth) and all(
        abs(found[seq][0] - start) <= NEAR_NS and abs(found[seq][1] - end) <= NEAR_NS
        for seq, (start, end) in truth.items())


def check(print_runs, train, library, options, scattered):
    with tempfile.TemporaryDirectory(prefix="standin-graphs-") as directory:
        truth, traces = run(train, library, directory, options)
        found, replayed, told = pairs(print_runs, traces)
        expect(sorted(found) == [rank.number for rank in truth.ranks], f"ranks {sorted(found)}")
        out_of_order = calls = 0
        for rank in truth.ranks:
            comms, unordered = wanted(rank)
            out_of_order += unordered
            own = {name: by_seq for name, by_seq in found[rank.number].items()
                   if not name.endswith("p")}
            own = from_the_first(own)
            for name, truly in from_the_first(comms).items():
                like = [one for one, by_seq in own.items() if is_same(by_seq, truly)]
                expect(len(like) == 1, f"{options} rank {rank.number}: what ran on communicator "
                                       f"{name} is what {len(like)} of {len(own)} are said to have")
                calls += len(truly)
        expect(replayed and told == replayed, f"{options}: {told} told of {replayed}")
        expect(not scattered or out_of_order, f"{options}: all in the order of the calls")
        print(f"{' '.join(options)}: {calls} collectives, {told} in graphs, "
              f"{out_of_order} kernels before those of earlier calls")


def main():
    library, print_runs, train = sys.argv[1:]
    check(print_runs, train, library, ["--tensor", "2", "--bucket-kb", "4096"], True)
    check(print_runs, train, library, ["--buckets", "8"], False)
    check(print_runs, train, library, ["--pipeline", "2"], False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
