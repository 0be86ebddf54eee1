# SPDX-License-Identifier: MIT
"""Recordings of PyTorch's profiler that tests make: their events, in microseconds, and one file for each rank."""
import json
import os
import tempfile

from observed import json_of


def event(category, name, at, took, pid=1, tid=1, **args):
    """On the host; or on a device, if `args` name a stream."""
    if "stream" in args:
        pid, tid = args.setdefault("device", 0), args["stream"]
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": took, "args": args}


def write(path, events, rank=None, ranks=1, escaped=True, **more):
    """Names may have bytes that are no text if they are not escaped: os.fsdecode()."""
    if rank is not None:
        more = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}, **more}
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump({"schemaVersion": 1, **more, "traceEvents": events}, file, ensure_ascii=escaped)
    return path


def write_ranks(folder, *ranks):
    for rank, events in enumerate(ranks):
        write(os.path.join(folder, f"rank{rank}.pt.trace.json"), events, rank, len(ranks))


def report_on_events(program, *ranks):
    """On a recording of each rank, or on one that says nothing of ranks."""
    with tempfile.TemporaryDirectory(prefix="tscope-profile-") as folder:
        if len(ranks) > 1:
            write_ranks(folder, *ranks)
            return json_of(program, folder)
        return json_of(program, write(os.path.join(folder, "recording.json"), *ranks))
