# SPDX-License-Identifier: MIT
"""Reads traces for the tests, independently of the analyzer: the layout comes from format/records.def. In each record,
`writer` is the number of the thread that wrote it."""
import collections
import glob
import os
import re
import struct

import trace_header

FORMAT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "format")
CHUNK_HEADER = struct.Struct("<IBBHIIQQQ4xIQQ")
CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q"}
PENDING = (1 << 64) - 1
UNKNOWN = (1 << 32) - 1


def _read_definitions():
    with open(os.path.join(FORMAT, "records.def"), encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    layouts = {}
    for name, identifier in re.findall(r"\bR\((\w+), \w+, (0x[0-9a-f]+),", text):
        macro = re.search(rf"#define TSCOPE_FIELDS_{name}\(F\)(.*)", text).group(1)
        fields = re.findall(r"F\((\w+), (\w+),\s+\"", macro)
        layouts[int(identifier, 16)] = (
            struct.Struct("<" + "".join(CODES[kind] for kind, _ in fields)),
            collections.namedtuple(name.title().replace("_", ""),
                                   ["writer", "time", "tag"] + [field for _, field in fields]),
        )
    with open(os.path.join(FORMAT, "enums.def"), encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    enums = {}
    for name, body in re.findall(r"#define TSCOPE_(\w+)\(X\)(.*)", text):
        enums[name] = {entry: int(value) for entry, value in re.findall(r"X\((\w+), (\d+),", body)}
    return layouts, enums


LAYOUTS, ENUMS = _read_definitions()


class Trace:
    """The file of one process. Records by their name in records.def, in order of time; times and durations in units of
    the trace's clock, see `seconds`."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        header = trace_header.of(self.data)
        if header.magic != b"tscope\r\n":
            raise ValueError(f"{path} is no trace")
        self.header_bytes, self.chunk_bytes = header.header_bytes, header.chunk_bytes
        self.seconds_per_unit = (1 << header.tick_shift) / header.tick_hz
        self.pid, self.rank, self.world_size = header.pid, header.rank, header.world_size
        self.chunks = header.chunks
        self.closed = header.closed_realtime_ns != 0
        self.lost = list(header.lost)
        self.reaped_signal = header.reaped_signal
        self.all_lost = header.lost_singly  # those that are not of a whole chunk
        self.given_up_as = 0
        self.path = path
        self.strings = {0: ""}
        self.stacks = {}  # {number: its frames, innermost first}
        self.records = collections.defaultdict(list)
        for chunk in range(self.chunks):
            self._read_chunk(self.header_bytes + chunk * self.chunk_bytes)
        # The process may have been killed before it counted losses by their reasons.
        self.lost[self.given_up_as] += max(0, self.all_lost - sum(self.lost))
        for records in self.records.values():
            records.sort(key=lambda record: record.time)

    def _read_chunk(self, offset):
        if offset + CHUNK_HEADER.size > len(self.data):
            return
        magic, _home, _clock, header_bytes, thread, _sequence, base, committed, _generation, lost_as, given_up, emptied = (
            CHUNK_HEADER.unpack_from(self.data, offset))
        if magic != 0x4B4E4843:
            return
        self.all_lost += given_up if committed else emptied
        self.given_up_as = lost_as if emptied else self.given_up_as
        at = offset + header_bytes
        end = at + (committed & 0xFFFFFFFF)
        while at < end:
            kind, words, tag, time = struct.unpack_from("<BBHI", self.data, at)
            if kind in LAYOUTS and words:
                layout, make = LAYOUTS[kind]
                record = make(thread, base + time, tag, *layout.unpack_from(self.data, at + 8))
                if make.__name__ == "Time":
                    base = record.base
                elif make.__name__ == "String":
                    text = self.data[at + 16:at + 16 + record.bytes]
                    self.strings[record.string] = text.decode()
                elif make.__name__ == "Stack":
                    self.stacks[record.stack] = struct.unpack_from(f"<{record.frames}Q", self.data, at + 24)
                else:
                    self.records[make.__name__].append(record)
            at += 8 * max(words, 1)

    def seconds(self, units):
        return units * self.seconds_per_unit

    def functions(self):
        """{number of a stack: its functions without their classes, innermost first; None for what has no name}"""
        names = {frame.frame: self.strings[frame.function].rsplit(".", 1)[-1] for frame in self.records["Frame"]}
        return {stack: [names.get(frame) for frame in frames] for stack, frames in self.stacks.items()}

    def phases(self, name):
        """Outermost phases of a kind of enum tscope_phase."""
        return [phase for phase in self.outermost_phases() if phase.tag == ENUMS["PHASES"][name]]

    def outermost_phases(self):
        """Those that are not inside another one of their thread. One that is still open holds no others: PyTorch may
        never end it."""
        found, ends = [], collections.defaultdict(int)
        for phase in self.records["Phase"]:
            end = ends[phase.writer]
            if phase.time < end and phase.time + phase.dur <= end + 1:  # each time is cut off to whole units
                continue
            found.append(phase)
            if phase.dur != PENDING:
                ends[phase.writer] = phase.time + phase.dur
        return found

    def info(self, key):
        return [self.strings[record.value] for record in self.records["Info"]
                if record.tag == ENUMS["INFOS"][key]]


def paths_under(directory):
    return sorted(glob.glob(os.path.join(glob.escape(directory), "**", "*.tscope"), recursive=True))


def read_all(directory):
    """The traces of a run, by rank."""
    return sorted((Trace(path) for path in paths_under(directory)), key=lambda trace: trace.rank)
