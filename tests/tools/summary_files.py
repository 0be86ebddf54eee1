# SPDX-License-Identifier: MIT
"""Files of summaries (tscope reduce), taken apart and put together again, as analyzer/import/summary/summary_file.h has
them."""
import os
import struct
import zlib

from observed import run

MASK = 2**64 - 1
HASH_SEED = 0xCBF29CE484222325
HEADER = struct.Struct("<8sQQII")
PART = struct.Struct("<QIIQ")
ENTRY = struct.Struct("<IIQQQQ" + "QIIQ" * 2 + "IIII")
FLAVOURS = ("nccl --phases --buckets 2 --kernels 2", "nccl --kernels 2", "gloo --hang-rank 1")


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


def summarise(tracegen, reduce, flavour, traces, folder):
    """Makes the summaries of a job of three ranks in `folder`; their file."""
    run(tracegen, "--ranks", "3", "--steps", "8", "--flavour", *flavour.split(), traces)
    run(reduce, traces, "--output", folder)
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)
