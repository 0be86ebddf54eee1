#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rooms use only the rooms that docs/architecture.md lets them use: layers.py SOURCE.

Reads the includes of TOPS, and the table under "Who uses whom". Errors are: an
include of a room that the table does not name for the including room, a line of the table that no include needs, a
circle of rooms, and a folder without a row. A folder without its own row belongs to the row of the folder above it, but
each folder directly below analyzer/ and preload/ has its own.
"""
import collections
import os
import re
import sys

from tree import below, text_of

HALVES = ("analyzer", "preload")
TOPS = HALVES + ("format", "inspect", "scripts/launch")
SOURCES = (".c", ".h", ".def")


def section(text, title):
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def declared(document):
    """{room: the rooms it may use}"""
    uses = {}
    for line in section(document, "Who uses whom").splitlines():
        cells = [re.findall(r"`([\w./]+)`", cell) for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or not cells[0]:
            continue
        uses[cells[0][0].rstrip("/")] = [name.rstrip("/") for name in cells[1]]
    return uses


def sources(source):
    return [path for top in TOPS for path in below(source, top, SOURCES)]


def includes(source, path, known):
    """Files of the project that `path` includes, found the way the compiler does."""
    half = "analyzer" if path.startswith("analyzer/") else "preload"
    below = [os.path.dirname(path), half, "preload/include", "."]
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text_of(source, path), re.M):
        places = [os.path.normpath(os.path.join(folder, name)) for folder in below]
        found = [place for place in places if place in known]
        if found:
            yield found[0]


def room_of(path, rooms):
    folder = os.path.dirname(path)
    while folder not in rooms and os.path.dirname(folder) not in HALVES + ("",):
        folder = os.path.dirname(folder)
    return folder


def arrows(source, rooms):
    """{(room, used room): [(file, included file)]}"""
    known = set(sources(source))
    found = collections.defaultdict(list)
    for path in sorted(known):
        for included in includes(source, path, known):
            pair = room_of(path, rooms), room_of(included, rooms)
            if pair[0] != pair[1]:
                found[pair].append((path, included))
    return found


def circles(uses):
    """The rooms that reach themselves."""
    def reached(start):
        seen, ahead = set(), list(uses[start])
        while ahead:
            room = ahead.pop()
            if room not in seen:
                seen.add(room)
                ahead += uses.get(room, [])
        return seen
    return sorted(room for room in uses if room in reached(room))


def wrong_of(source):
    uses = declared(text_of(source, "docs/architecture.md"))
    found = arrows(source, uses)
    wrong = []
    for room in sorted({room_of(path, uses) for path in sources(source)} - set(uses)):
        wrong.append(f"{room}/ has no row in docs/architecture.md, Who uses whom")
    for room in sorted(uses):
        if not os.path.isdir(os.path.join(source, room)):
            wrong.append(f"{room}/ has a row and is no folder")
    allowed = {(room, used) for room in uses for used in uses[room]}
    for (room, used), files in sorted(found.items()):
        if (room, used) not in allowed:
            wrong += [f"{path} includes {included}: {room}/ does not use {used}/"
                      for path, included in files]
    for room, used in sorted(allowed):
        if (room, used) not in found:
            wrong.append(f"{room}/ is said to use {used}/ and does not")
    around = circles(uses)
    if around:
        wrong.append("a circle of rooms: " + ", ".join(room + "/" for room in around))
    return wrong, len(uses), len(found)


def main():
    wrong, rooms, n = wrong_of(os.path.realpath(sys.argv[1]))
    print("\n".join(wrong) or f"{rooms} rooms, {n} arrows between them, all declared, no circle")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
