# SPDX-License-Identifier: MIT
"""Summaries whose content was made to do harm: bytes within them are changed, and all their checks are made right again.
Every report ends with a result or with one line, within a stated memory. If a part of what was found on a rank ends too
early or too late, nothing of it counts: the rank's trace is read instead, and the report is that from whole summaries.

Usage: damaged_summaries.py TSCOPE_REPORT TSCOPE_REDUCE TRACEGEN [MUTATIONS [SEED]]
"""
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

REPORT, REDUCE, TRACEGEN = sys.argv[1:4]
MUTATIONS = int(sys.argv[4]) if len(sys.argv) > 4 else 60
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else 1
MASK = 2**64 - 1
HASH_SEED = 0xCBF29CE484222325
HEADER = struct.Struct("<8sQQII")
PART = struct.Struct("<QIIQ")
ENTRY = struct.Struct("<IIQQQQ" + "QIIQ" * 2 + "IIII")
MOST_MIB = 300
SANITIZED = "asan" in subprocess.run(["ldd", REPORT], capture_output=True, text=True).stdout


def hash_bytes(seed, data):
    """As base/hash.h has it."""
    state = (seed ^ len(data) * 0x9E3779B97F4A7C15) & MASK
    for at in range(0, len(data) + 1, 8):
        word = int.from_bytes(data[at:at + 8].ljust(8, b"\0"), "little")
        if at + 8 <= len(data):
            state = (state ^ word) * 0x9FB21C651E98DF25 & MASK
            state ^= state >> 32
        else:
            state = (state ^ word) * 0x9FB21C651E98DF25 & MASK
    return state ^ state >> 32


def hash_text(seed, text):
    for byte in text:
        seed = (seed ^ byte) * 0x100000001B3 & MASK
    return (seed ^ 0xFF) * 0x100000001B3 & MASK


class Summaries:
    """A file, taken apart and put together again."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.magic, self.layout, table, n, _ = HEADER.unpack_from(self.data)
        self.entries = [list(ENTRY.unpack_from(self.data, table + i * ENTRY.size)) for i in range(n)]
        self.parts = [[self.part(entry, 6), self.part(entry, 10)] for entry in self.entries]

    def part(self, entry, at):
        offset, size, whole, checked = entry[at:at + 4]
        data = zlib.decompress(self.data[offset:offset + size])
        assert len(data) == whole and hash_bytes(HASH_SEED, data) == checked, "the format is not what this test knows"
        return data

    def write(self, path):
        body, table = bytearray(HEADER.size), b""
        for entry, parts in zip(self.entries, self.parts):
            for at, data in zip((6, 10), parts):
                packed = zlib.compress(bytes(data))
                entry[at:at + 4] = len(body), len(packed), len(data), hash_bytes(HASH_SEED, bytes(data))
                body += packed
        stamp = hash_text(HASH_SEED, b"")
        for entry in self.entries:
            stamp = hash_bytes(stamp, struct.pack("<QQ", entry[0], entry[9]))
        for entry in self.entries:
            entry[5] = stamp
            packed = ENTRY.pack(*entry[:-1], 0)
            table += packed[:-4] + struct.pack("<I", zlib.crc32(packed[:-4]))
        HEADER.pack_into(body, 0, self.magic, self.layout, len(body), len(self.entries), 0)
        with open(path, "wb") as file:
            file.write(body + table)


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
    child = subprocess.Popen([REPORT, "--format", "json", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, wrong = child.communicate(timeout=120)
    return child.returncode, out, wrong.decode()


def main():
    chance = random.Random(SEED)
    results = {0: 0, 2: 0}
    with tempfile.TemporaryDirectory() as scratch:
        for number, flavour in enumerate(("nccl --phases --buckets 2 --kernels 2", "nccl --kernels 2", "gloo --hang-rank 1")):
            traces, good, bad = (os.path.join(scratch, f"{name}{number}") for name in ("traces", "good", "bad"))
            subprocess.run([TRACEGEN, "--ranks", "3", "--steps", "8", "--flavour", *flavour.split(), traces], check=True, capture_output=True)
            subprocess.run([REDUCE, traces, "--output", good], check=True, capture_output=True)
            os.mkdir(bad)
            (name,) = os.listdir(good)
            original = Summaries(os.path.join(good, name))
            original.write(os.path.join(bad, name))
            whole = report(good)[1].replace(good.encode(), b"")
            assert report(bad)[1].replace(bad.encode(), b"") == whole, "put together otherwise"
            for begin, found in other_lengths(original.parts[1][1]):
                changed = Summaries(os.path.join(good, name))
                changed.parts[1][1] = found
                changed.write(os.path.join(bad, name))
                status, out, wrong = report(bad)
                assert out.replace(bad.encode(), b"") == whole, f"{flavour}: the part at {begin} counts: status {status} {wrong}"
            for parts in (changed := Summaries(os.path.join(good, name))).parts:
                parts[0] = parts[0][:-1]
            changed.write(os.path.join(bad, name))
            status, _, wrong = report(bad)
            assert status == 2 and "is not what this tscope writes; run tscope reduce again" in wrong, (status, wrong)
            for number in range(MUTATIONS):
                changed = Summaries(os.path.join(good, name))
                parts = changed.parts[chance.randrange(len(changed.parts))]
                which = chance.randrange(2)
                parts[which] = mutate(parts[which], chance)
                changed.write(os.path.join(bad, name))
                status, _, wrong = report(bad)
                assert status in results, f"mutation {number} of seed {SEED}: status {status}: {wrong}"
                results[status] += 1
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    assert SANITIZED or most < MOST_MIB, f"{most:.0f} MiB"
    print(f"{results[0]} reports, {results[2]} refusals, at most {most:.0f} MiB")


main()
