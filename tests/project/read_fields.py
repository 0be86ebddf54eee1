#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The analyzer reads every field of a trace's records, or NOT_READ says why not: read_fields.py ROOT. A field that
nobody reads costs every job bytes and time, and misleads readers of the format. A field counts as read if any member of
the same name is read, so some unread fields may be missed. With `fail` it tests itself."""
import re
import sys

from tree import below, text_of, without_comments

# RECORD.field: why the analyzer does not read it.
NOT_READ = {
    "CALL_SITES.without_python": "what looking at lines left out, for people who examine the shim with tests/tools/dump",
    "CALL_SITES.first_ns": "as CALL_SITES.without_python",
    "CALL_SITES.one_in_always": "as CALL_SITES.without_python; each call site has its own weight",
    "CALL_SITES.one_in_large": "as CALL_SITES.one_in_always",
    "CALL_SITES.one_in_sampled": "as CALL_SITES.one_in_always",
    "SHAPE.block_x": "a launch's blocks, which make its grid's arithmetic complete; no estimate needs them yet",
    "SHAPE.block_y": "as SHAPE.block_x",
    "SHAPE.block_z": "as SHAPE.block_x",
    "MEMORY.given_back": "tests compare it with PyTorch's own count",
    "COLLECTIVE_INSIDE.channels_seen": "tests compare it with the channels that ran",
    "GPU_ANCHOR.drift_ppb": "for people who examine clocks; the analyzer takes the drift from the anchors themselves",
    "GRAPH.memsets": "tests compare it with the captured graph",
    "GRAPH_BODY.memsets": "as GRAPH.memsets",
}


def fields(text):
    """RECORD.field of each line F(type, name, ...) below #define TSCOPE_FIELDS_RECORD."""
    found = []
    for part in re.split(r"#define TSCOPE_FIELDS_", text)[1:]:
        record = re.match(r"\w+", part)[0]
        found += [f"{record}.{name}" for name in re.findall(r"\bF\(\s*\w+,\s*(\w+)", part) if not name.startswith("reserved")]
    return found


def unread(all_fields, code):
    names = set(re.findall(r"(?:\.|->)(\w+)\b", code)) | set(re.findall(r"offsetof\(\s*struct \w+,\s*(\w+)", code))
    for lists in re.findall(r"\b(?:SAME|COPY_EACH)\(([^;{}]*)", code):  # base/each.h
        names |= set(re.findall(r"\w+", lists))
    if "trace_dur(" in code and "trace_whole_dur(" in code:  # import/tscope/files/trace_file.h reads it of every record
        names.add("dur")
    return [field for field in all_fields if field.partition(".")[2] not in names]


def code_of(root):
    return "\n".join(without_comments(text_of(root, path)) for path in below(root, "analyzer", (".c", ".h", ".def")))


def main():
    root = sys.argv[1]
    every = fields(text_of(root, "format/records.def"))
    if sys.argv[2:] == ["fail"]:
        assert len(every) > 200 and "COLLECTIVE.bytes" not in unread(every, "x->bytes"), len(every)
        assert unread(["NEW.nobody_reads_this"], code_of(root)) == ["NEW.nobody_reads_this"]
        assert unread(["A.b"], without_comments("/* a.b */")) == ["A.b"]
        return 0
    found = unread(every, code_of(root))
    for field in sorted(set(found) - set(NOT_READ)):
        print(f"{field}: no code of analyzer/ reads it. Use it, drop it, or say why in tests/project/read_fields.py")
    for field in sorted(set(NOT_READ) - set(found)):
        print(f"{field}: is read now, or is gone: take it out of NOT_READ")
    print(len(every), "fields,", len(NOT_READ), "not read, each with its reason")
    return set(found) != set(NOT_READ)


if __name__ == "__main__":
    sys.exit(main())
