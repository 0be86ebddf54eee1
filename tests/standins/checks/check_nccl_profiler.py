#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What NCCL tells its profiler plugin about collectives, compared with what the stand-in ran:
check_nccl_profiler.py LIBTSCOPE OTHER_PROFILER TRAIN.

Each call of the job has its algorithm, protocol and channels, under the same communicator and
sequence number, in every version of the plugin interface. From v4 on it also has its start and stop
on the GPU, to the nanosecond, on the GPU's own timer.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import observed  # noqa: E402
import read_trace  # noqa: E402
from outcomes import expect  # noqa: E402
from truth import Truth  # noqa: E402

OPS = read_trace.ENUMS["OPS"]
NAMES = {"ALLREDUCE": "all_reduce", "BROADCAST": "broadcast", "REDUCE": "reduce",
         "ALLGATHER": "all_gather", "REDUCE_SCATTER": "reduce_scatter", "SEND": "send",
         "RECV": "recv"}
GLOBAL_TIMER_AHEAD_NS = 1234567890123456


def run(train, options, library=None, **more):
    """The output of the job, its truth, and the trace of each rank."""
    with tempfile.TemporaryDirectory(prefix="standin-inside-") as directory:
        log, traces = os.path.join(directory, "log"), os.path.join(directory, "traces")
        done = observed.run(train, "--ranks", "4", "--steps", "6", "--log", log, *options,
                            env=observed.observed_environment(library, traces, **more))
        return done.stdout, Truth(log), read_trace.read_all(traces)


def made_calls(rank):
    """{(communicator, kind): [(arrival, end, bytes)]}, in the order in which they ran."""
    made = {}
    for op in rank.order:
        for call in op.calls:
            made.setdefault((op.comm, call["call"]), []).append(
                (call["arrival"], call["end"], call["bytes"]))
    return made


def check_times(trace, rank):
    """Each kind has the same number of calls, with the same times."""
    ran, recorded = {}, {}
    for (_, name), calls in made_calls(rank).items():
        ran.setdefault(name, []).extend(call[:2] for call in calls)
    for inside in trace.records["CollectiveInside"]:
        name = NAMES[next(op for op, value in OPS.items() if value == inside.tag)]
        recorded.setdefault(name, []).append((inside.gpu_start - GLOBAL_TIMER_AHEAD_NS,
                                              inside.gpu_stop - GLOBAL_TIMER_AHEAD_NS))
    expect({name: sorted(times) for name, times in recorded.items()} ==
           {name: sorted(times) for name, times in ran.items()}, f"rank {rank.number}: {recorded}")


def check_rank(trace, rank, version):
    calls = {(call.comm, call.seq, call.tag >= OPS["SEND"]): call
             for call in trace.records["Collective"]}
    inside = trace.records["CollectiveInside"]
    recorded = {(one.comm, one.seq, one.tag >= OPS["SEND"]): one for one in inside}
    expect(len(recorded) == len(inside), f"rank {rank.number}: a call is recorded twice")
    wanted = {key for key in calls if version >= 4 or not key[2]}
    expect(set(recorded) == wanted, f"v{version}, rank {rank.number}: {set(recorded) ^ wanted}")
    for key, one in recorded.items():
        call = calls[key]
        expect(one.tag == call.tag, f"{one} is not {call}")
        expect(one.time >= call.time, "NCCL reports it after the call")
        words = trace.strings[one.algorithm], trace.strings[one.protocol]
        if key[2]:
            expect(words == ("", ""), f"a transfer has no algorithm: {words}")
        else:
            size = call.bytes * (4 if call.tag in (OPS["ALLGATHER"], OPS["REDUCE_SCATTER"]) else 1)
            small = call.tag == OPS["ALLREDUCE"] and size < 4096
            expect(words == ("TREE" if small else "RING", "LL" if size < 65536 else "SIMPLE"),
                   f"{words} for {size} bytes of {call}")
        expect(one.channels == (2 if version >= 4 else 0), f"channels: {one}")
        expect(one.channels_seen == (2 if version >= 3 else 0), f"channels seen: {one}")
        expect((one.dur == read_trace.PENDING) == (version < 3), f"done: {one}")
        expect((one.gpu_start > 0) == (version >= 4), f"times: {one}")
    if version >= 4:
        check_times(trace, rank)
    return len(inside)


def main():
    library, other, train = sys.argv[1:4]
    bare, _, _ = run(train, [])
    for version, options in ((6, []), (5, []), (5, ["--pipeline", "2"]), (5, ["--tensor", "2"]), (4, []),
                             (3, []), (2, []), (1, [])):
        printed, truth, traces = run(train, options, library, TSCOPE_NCCL_PROFILER="times",
                                     STANDIN_NCCL_PROFILER=str(version))
        expect(options or printed == bare, "the job is the same")
        expect(len(traces) == len(truth.ranks), f"{len(traces)} traces")
        for trace, rank in zip(traces, truth.ranks):
            recorded = check_rank(trace, rank, version)
        print(f"v{version} {' '.join(options)}: {recorded} calls of each rank are recorded")

    for inside in ("choices", "times"):
        _, truth, traces = run(train, ["--gather", "1"], library, TSCOPE_NCCL_PROFILER=inside, NCCL_CTA_POLICY="2")
        for trace, rank in zip(traces, truth.ranks):
            copied = [one for one in trace.records["CollectiveInside"]
                      if trace.strings[one.algorithm] == "COPY_ENGINE"]
            gathered = [call for call in trace.records["Collective"] if call.tag == OPS["ALLGATHER"]]
            expect(gathered and {(one.comm, one.seq) for one in copied} == {(call.comm, call.seq) for call in gathered},
                   f"rank {rank.number}: {copied}")
            expect(all(trace.strings[one.protocol] == "UC" and one.channels == 0 and one.gpu_start == 0 and one.dur == 0
                       for one in copied), f"{copied[0]}")

    _, _, traces = run(train, [], library, TSCOPE_NCCL_PROFILER="choices")
    for trace in traces:
        expect(trace.records["CollectiveInside"], "choices alone")
        for one in trace.records["CollectiveInside"]:
            expect(one.algorithm and one.dur == 0 and one.gpu_start == 0, f"without times: {one}")

    for name, env in (("not asked for", {}),
                      ("refused by the user", {"NCCL_PROFILER_PLUGIN": "none"}),
                      ("another's", {"NCCL_PROFILER_PLUGIN": other})):
        wanted = {} if name == "not asked for" else {"TSCOPE_NCCL_PROFILER": "times"}
        printed, _, traces = run(train, [], library, **env, **wanted)
        expect(not any(trace.records["CollectiveInside"] for trace in traces), name)
        expect(("the other profiler" in printed) == (name == "another's"), name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
