#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The analyzer must find which collective of a CUDA graph each kernel of a replay ran; compared with
the schedule that the simulator logged: check_graphs.py LIBTSCOPE PRINT_RUNS TRAIN. The graphs use
several communicators, whose kernels run on two streams and not in the order of the calls."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from observed import observed_environment, run  # noqa: E402
from outcomes import expect  # noqa: E402
from truth import Truth  # noqa: E402

STEPS, FIRST = 12, 4
NEAR_NS = 2000  # one clock, which two libraries read one after the other


def run_job(train, library, directory, options):
    log, traces = os.path.join(directory, "log"), os.path.join(directory, "traces")
    run(train, "--steps", STEPS, "--graph", FIRST, "--log", log, *options, env=observed_environment(library, traces))
    return Truth(log), traces


def pairs(print_runs, traces):
    """{rank: {comm: {seq: (start, end)}}} as the analyzer has it, the number of calls in graphs, and
    how many of those were identified by their graph nodes."""
    *lines, last = run(print_runs, traces).stdout.splitlines()
    found, replayed = {}, 0
    for line in lines:
        rank, comm, seq, start, end, in_graph = line.split()
        calls = found.setdefault(int(rank), {}).setdefault(comm, {})
        expect(int(seq) not in calls, f"rank {rank}: two calls {seq} on communicator {comm}")
        calls[int(seq)] = (int(start), int(end))
        replayed += int(in_graph)
    _, identified, _, _ = last.split()
    return found, replayed, int(identified)


def wanted(rank):
    """The same from a rank's truth, and the number of kernels that ran before those of earlier calls."""
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


def since_first_collective(comms):
    """The same with times since the rank's first collective: the two sources count from other instants."""
    first = min(start for calls in comms.values() for start, _ in calls.values() if start)
    return {comm: {seq: (start - first, end - first) for seq, (start, end) in calls.items()}
            for comm, calls in comms.items()}


def is_same(found, truth):
    return sorted(found) == sorted(truth) and all(
        abs(found[seq][0] - start) <= NEAR_NS and abs(found[seq][1] - end) <= NEAR_NS
        for seq, (start, end) in truth.items())


def check(print_runs, train, library, options, reordered):
    with tempfile.TemporaryDirectory(prefix="standin-graphs-") as directory:
        truth, traces = run_job(train, library, directory, options)
        found, replayed, identified = pairs(print_runs, traces)
        expect(sorted(found) == [rank.number for rank in truth.ranks], f"ranks {sorted(found)}")
        out_of_order = calls = 0
        for rank in truth.ranks:
            comms, unordered = wanted(rank)
            out_of_order += unordered
            own = {name: by_seq for name, by_seq in found[rank.number].items()
                   if not name.endswith("p")}
            own = since_first_collective(own)
            for name, true_calls in since_first_collective(comms).items():
                matching = [one for one, by_seq in own.items() if is_same(by_seq, true_calls)]
                expect(len(matching) == 1, f"{options} rank {rank.number}: communicator {name} has the "
                                           f"runs of {len(matching)} of {len(own)} in the trace")
                calls += len(true_calls)
        expect(replayed and identified == replayed, f"{options}: {identified} of {replayed} identified")
        expect(not reordered or out_of_order, f"{options}: all in the order of the calls")
        print(f"{' '.join(options)}: {calls} collectives, {identified} in graphs, "
              f"{out_of_order} kernels before those of earlier calls")


def main():
    library, print_runs, train = sys.argv[1:]
    check(print_runs, train, library, ["--tensor", "2", "--bucket-kb", "4096"], True)
    check(print_runs, train, library, ["--buckets", "8"], False)
    check(print_runs, train, library, ["--pipeline", "2"], False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
