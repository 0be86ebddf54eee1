# SPDX-License-Identifier: MIT
"""Inputs of fuzz_summary: real summaries, and some of their bytes changed. With REPLAY (and MUTATIONS of each summary,
and SEED) that program is run on them; else they are left in FOLDER.

Usage: summary_seeds.py TRACEGEN TSCOPE_REDUCE FOLDER
       summary_seeds.py TRACEGEN TSCOPE_REDUCE --replay REPLAY [MUTATIONS [SEED]]
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from summary_files import FLAVOURS, Summaries, summarise


def mutate(data, chance):
    """Some bytes changed, put in or taken out; mostly near each other, so that the rest is still understood."""
    data = bytearray(data)
    at = chance.randrange(len(data)) if data else 0
    for _ in range(chance.choice((1, 1, 2, 8))):
        near = min(max(at + chance.randrange(-16, 17), 0), max(len(data) - 1, 0))
        kind = chance.randrange(4)
        if kind == 0 or not data:
            data[near:near] = bytes(chance.choice((0, 1, 0x7F, 0x80, 0xFF)) for _ in range(chance.randrange(1, 10)))
        elif kind == 1:
            del data[near:near + chance.randrange(1, 9)]
        elif kind == 2:
            data[near] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))
        else:
            data[near] ^= 1 << chance.randrange(8)
    return data


def as_input(summaries):
    return b"".join(struct.pack("<BII", entry[0], len(facts), len(found)) + bytes(facts) + bytes(found)
                    for entry, (facts, found) in zip(summaries.entries, summaries.parts))


def make(tracegen, reduce, folder, mutations, chance):
    with tempfile.TemporaryDirectory() as scratch:
        for number, flavour in enumerate(FLAVOURS):
            path = summarise(tracegen, reduce, flavour, f"{scratch}/traces{number}", f"{scratch}/summaries{number}")
            for mutation in range(mutations + 1):
                summaries = Summaries(path)
                if mutation:
                    parts = chance.choice(summaries.parts)
                    which = chance.randrange(2)
                    parts[which] = mutate(parts[which], chance)
                with open(os.path.join(folder, f"{number}-{mutation}"), "wb") as file:
                    file.write(as_input(summaries))


def main():
    tracegen, reduce, to, *more = sys.argv[1:]
    if to != "--replay":
        return make(tracegen, reduce, to, 0, None)
    replay, mutations, seed = more[0], int((more[1:] or ["10"])[0]), int((more[2:] or ["1"])[0])
    with tempfile.TemporaryDirectory() as folder:
        make(tracegen, reduce, folder, mutations, random.Random(seed))
        return subprocess.run([replay, folder], check=False).returncode


sys.exit(main())
