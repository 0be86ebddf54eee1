# SPDX-License-Identifier: MIT
"""The header of a trace: struct tscope_file_header, as format/tscope_format.h has it."""
import collections
import os
import re
import struct

FORMAT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "format", "tscope_format.h")
CODES = {"u16": "H", "u32": "I", "i32": "i", "u64": "Q"}


def _read_layout():
    """{field: (place, its struct)}; each field is aligned to its size."""
    with open(FORMAT, encoding="utf-8") as file:
        body = re.search(r"struct tscope_file_header \{(.*?)\n\};", file.read(), re.S).group(1)
    layout, at = {}, 0
    for kind, name, many in re.findall(r"(?m)^  (\w+) (\w+)(?:\[(\d+)\])?;", body):
        one = struct.Struct(f"<{many}s" if kind == "char" else f"<{many}{CODES[kind]}")
        aligned = 1 if kind == "char" else struct.calcsize("<" + CODES[kind])
        at = (at + aligned - 1) // aligned * aligned
        layout[name] = at, one
        at += one.size
    return layout


LAYOUT = _read_layout()
Header = collections.namedtuple("Header", LAYOUT)


def of(data):
    """The header at the beginning of these bytes. Lists and texts are tuples and bytes, all else is a number."""
    values = [one.unpack_from(data, at) for at, one in LAYOUT.values()]
    return Header(*[value if len(value) > 1 else value[0] for value in values])


def of_file(path):
    with open(path, "rb") as file:
        return of(file.read(4096))


def put(data, **fields):
    """Into a bytearray."""
    for name, value in fields.items():
        at, one = LAYOUT[name]
        one.pack_into(data, at, value)


def patch(path, **fields):
    with open(path, "r+b") as file:
        data = bytearray(file.read(4096))
        put(data, **fields)
        file.seek(0)
        file.write(data)
