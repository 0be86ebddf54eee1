#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The trace of a run contains what the simulator did: every kernel, copy and fill with its times,
every collective call in its order, nothing else, and nothing lost. Has a reader of its own, written
from docs/trace-format.md.

    check_trace.py LIBTSCOPE TRAIN [options of the training program]
"""
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import trace_header  # noqa: E402
from observed import observed_environment, run  # noqa: E402
from read_trace import paths_under  # noqa: E402
from truth import Truth  # noqa: E402

HEADER_BYTES, CHUNK_BYTES, CHUNK_MAGIC = 4096, 65536, 0x4B4E4843
DUR_LONG = 0xFFFFFFFF
TIME, COLLECTIVE, COLLECTIVE_RUN = 0x01, 0x22, 0x24
GPU_KERNEL, GPU_MEMCPY, GPU_MEMSET = 0x60, 0x61, 0x62
OPS = {1: "all_reduce", 16: "send", 17: "recv"}


def records(data):
    """(type, tag, time, bytes) of every committed record, times made absolute."""
    for at in range(HEADER_BYTES, len(data) - CHUNK_BYTES + 1, CHUNK_BYTES):
        magic, _, _, header = struct.unpack_from("<IBBH", data, at)
        if magic != CHUNK_MAGIC:
            continue
        base, committed = struct.unpack_from("<QQ", data, at + 16)
        position, end = at + header, at + header + (committed & 0xFFFFFFFF)
        while position < end:
            kind, words, tag, time = struct.unpack_from("<BBHI", data, position)
            if not words:
                break
            body = data[position + 8:position + 8 * words]
            if kind == TIME:
                base, = struct.unpack_from("<Q", body)
            else:
                yield kind, tag, base + time, body
            position += 8 * words


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        header = trace_header.of(data)
        self.rank, self.lost = header.rank, sum(header.lost)
        self.gpu, self.calls = [], []
        for kind, tag, time, body in records(data):
            if kind in (GPU_KERNEL, GPU_MEMCPY, GPU_MEMSET):
                dur, = struct.unpack_from("<I", body)
                if dur == DUR_LONG:
                    dur, = struct.unpack_from("<Q", body, len(body) - 8)
                self.gpu.append((kind, time, time + dur))
            elif kind == COLLECTIVE_RUN:
                dur, = struct.unpack_from("<Q", body)
                self.gpu.append((kind, time, time + dur))
            elif kind == COLLECTIVE:
                _, count, size, comm, seq = struct.unpack_from("<QQQII", body)
                self.calls.append((time, comm, seq, OPS.get(tag, tag), size))
        self.gpu.sort(key=lambda span: span[1:])
        self.calls.sort()


KINDS = {"kernel": GPU_KERNEL, "collective": COLLECTIVE_RUN, "copy": GPU_MEMCPY, "fill": GPU_MEMSET}


def fail(message):
    print(message)
    sys.exit(1)


def compare_gpu(trace, rank):
    """Times must agree within 2 us: it is one clock, which two libraries read one after the other."""
    wanted = sorted((op.start, op.end, KINDS[op.kind]) for op in rank.order if op.kind in KINDS)
    if len(wanted) != len(trace.gpu):
        fail(f"rank {rank.number}: {len(trace.gpu)} GPU spans recorded of {len(wanted)}")
    worst = 0
    for (start, end, kind), (got, got_start, got_end) in zip(wanted, trace.gpu):
        off = max(abs(got_start - start), abs(got_end - end))
        worst = max(worst, off)
        if kind != got or off > 2000:
            fail(f"rank {rank.number}: kind {got} {got_start}..{got_end} recorded of "
                 f"kind {kind} {start}..{end}")
    return len(wanted), worst


def compare_calls(trace, rank):
    wanted = {}
    for op in rank.order:
        for call in op.calls:
            wanted.setdefault(op.comm, []).append((call["call"], call["bytes"]))
    got = {}
    for _, comm, _, op, size in trace.calls:
        got.setdefault(comm, []).append((op, size))
    if sorted(got.values()) != sorted(wanted.values()):
        fail(f"rank {rank.number}: calls recorded {[len(calls) for calls in got.values()]}, "
             f"made {[len(calls) for calls in wanted.values()]}")


def main():
    library, train, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="standin-trace-") as directory:
        log, traces = os.path.join(directory, "log"), os.path.join(directory, "traces")
        run(train, "--steps", "10", "--log", log, *options, env=observed_environment(library, traces))
        truth = Truth(log)
        found = {}
        for path in paths_under(traces):
            trace = Trace(path)
            found[trace.rank] = trace
        if sorted(found) != [rank.number for rank in truth.ranks]:
            fail(f"traces of ranks {sorted(found)}")
        for rank in truth.ranks:
            trace = found[rank.number]
            if trace.lost:
                fail(f"rank {rank.number}: {trace.lost} records lost")
            spans, worst = compare_gpu(trace, rank)
            compare_calls(trace, rank)
            print(f"rank {rank.number}: {spans} GPU spans within {worst} ns, "
                  f"{len(trace.calls)} collective calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
