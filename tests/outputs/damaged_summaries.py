# SPDX-License-Identifier: MIT
"""Summaries whose content was made to do harm, with all their checks right. If a part of what was found on a rank ends too
early or too late, nothing of it counts: the rank's trace is read instead, and the report is that from whole summaries.
Other changes are those of tests/fuzz/summary_seeds.py.

Usage: damaged_summaries.py TSCOPE_REPORT TSCOPE_REDUCE TRACEGEN
"""
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import run
from summary_files import FLAVOURS, Summaries, summarise

REPORT, REDUCE, TRACEGEN = sys.argv[1:]


def parts_of(found):
    """Where the parts of what was found on a rank are: begin and end of each one's bytes."""
    at = 0
    while at < len(found):
        begin = at + 4
        at = begin + int.from_bytes(found[at:begin], "little")
        yield begin, at


def other_lengths(found):
    """`found` with each of its parts a byte shorter, and a byte longer."""
    for begin, end in parts_of(found):
        for content in (found[begin:end - 1], found[begin:end] + b"\0") if end > begin else ():
            yield begin, found[:begin - 4] + struct.pack("<I", len(content)) + content + found[end:]


def report(folder):
    done = run(REPORT, "--format", "json", folder, ok=None, timeout=120)
    return done.returncode, done.stdout.replace(folder, ""), done.stderr


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for number, flavour in enumerate(FLAVOURS):
            traces, good, bad = (os.path.join(scratch, f"{name}{number}") for name in ("traces", "good", "bad"))
            path = summarise(TRACEGEN, REDUCE, flavour, traces, good)
            os.mkdir(bad)
            written = os.path.join(bad, os.path.basename(path))
            original = Summaries(path)
            original.write(written)
            whole = report(good)[1]
            assert report(bad)[1] == whole, "put together otherwise"
            for begin, found in other_lengths(original.parts[1][1]):
                changed = Summaries(path)
                changed.parts[1][1] = found
                changed.write(written)
                status, out, wrong = report(bad)
                assert out == whole, f"{flavour}: the part at {begin} counts: status {status} {wrong}"
            for parts in (changed := Summaries(path)).parts:
                parts[0] = parts[0][:-1]
            changed.write(written)
            status, _, wrong = report(bad)
            assert status == 2 and "is not what this tscope writes; run tscope reduce again" in wrong, (status, wrong)


main()
