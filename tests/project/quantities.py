#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every output says the same amount in the same way: quantities.py ROOT.

A share is printed by percent(), in which 0.4 % is not "0 %" and 99.7 % not "100 %". Memory of a device is said in
GiB, as PyTorch and nvidia-smi show it, by memory_size() and the page's memory(); GB are for files and messages. With
`fail` it tests itself."""
import os
import re
import sys

from tree import below, text_of

# Whole files about memory of devices; of others, the lines that name one of these members.
OF_MEMORY = ("find_memory.c", "find_memory_peak.c", "section_memory.c", "section_modules.c", "memory.js")
MEMBERS = r"(?:peak_allocated|peak_reserved|capacity|headroom|memory)_bytes|UNIT_BYTES|unit === 'bytes'"
IN_GB = {".c": r"\bbyte_size\(|\bCOLUMN_BYTES\b", ".h": r"\bbyte_size\(", ".js": r"(?<![\w.'])bytes(?=[,(\]} ]|$)(?!:)"}
BY_HAND = {".c": r"%[.*\d]*[fg] ?%%", ".h": r"%[.*\d]*[fg] ?%%", ".js": r"toFixed\(\d\) \+ ' %'"}
# A limit, which is a round number: "above 5 %".
LIMITS = ("above %g %%",)


def problems(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        code = re.sub(r"'[^']*'" if name.endswith(".js") else r"^\s*/?\*.*", "''", re.sub(r"//.*", "", line))
        kind = os.path.splitext(name)[1]
        by_hand = re.search(BY_HAND[kind], line) and not any(limit in line for limit in LIMITS)
        if name not in ("quantity.c", "quantity.js") and by_hand:
            yield f"{number}: print a share with percent(), which never rounds to 0 or 100: {line.strip()}"
        about = name in OF_MEMORY or re.search(MEMBERS, line)
        if about and re.search(IN_GB[kind], code):
            yield f"{number}: memory of a device is said in GiB: {line.strip()}"


def main():
    root = sys.argv[1]
    if sys.argv[2:] == ["fail"]:
        wrong = {"a.c": ['say(f, "%.0f %% of it", 100 * x)', 'say(f, "%.*f %%", n, 100 * x)', 'say(f, "%g %%", 100 * x)',
                         "byte_size(memory->capacity_bytes)"],
                 "a.js": ["(100 * share).toFixed(0) + ' %'"],
                 "section_memory.c": ["byte_size(x)", "COLUMN_BYTES, offsetof("],
                 "memory.js": ["['peak', bytes(m.peak)],", "['growth', 'growth', bytes],", "sayY: bytes,"],
                 "ranks.js": ["memory_bytes: {name: 'memory', say: bytes},"]}
        right = {"a.c": ['say(f, "%s of it", percent(x).text)', 'say(f, "above %g %%", LIMIT)'], "gpu.js": ["['bytes', 'bytes', bytes]"],
                 "memory.js": ["kind.bytes += row.bytes;", "['bytes', 'bytes', memory, {bar: 'share'}],",
                               "bytes: 0,", "{name, bytes: 0, rows: []};"]}
        missed = [line for name, lines in wrong.items() for line in lines if not list(problems(name, line))]
        blamed = [line for name, lines in right.items() for line in lines if list(problems(name, line))]
        print("missed:", missed, "blamed:", blamed)
        return 1 if missed or blamed else 0
    found = []
    for path in below(root, "analyzer", (".c", ".h", ".js")):
        found += [f"{path}:{one}" for one in problems(os.path.basename(path), text_of(root, path))]
    print("\n".join(found) or "every amount is said in one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
