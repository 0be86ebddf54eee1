#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""layers.py finds the errors that it must find: layers_fail.py SOURCE. Each case makes one error in a copy of the tree,
and layers.py must then fail and name it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
changed = set()


def add(copy, path, text):
    changed.add(path)
    os.makedirs(os.path.dirname(os.path.join(copy, path)), exist_ok=True)
    with open(os.path.join(copy, path), "a", encoding="utf-8") as file:
        file.write(text)


def change_row(copy, room, change):
    changed.add("docs/architecture.md")
    path = os.path.join(copy, "docs/architecture.md")
    with open(path, encoding="utf-8") as file:
        before = file.read()
    table = before.index("## Who uses whom")
    row = re.compile(rf"^\| `{room}/` \|[^|]*", re.M).search(before, table)
    with open(path, "w", encoding="utf-8") as file:
        file.write(before[:row.start()] + change(row[0]) + before[row.end():])


def undeclared_include(copy):
    add(copy, "analyzer/base/arena.c", '#include "report/report.h"\n')
    return "analyzer/base/arena.c includes analyzer/report/report.h"


def include_between_the_halves(copy):
    add(copy, "preload/record/writer.c", '#include "../../analyzer/base/arena.h"\n')
    return "preload/record/writer.c includes analyzer/base/arena.h"


def launcher_that_uses_the_analyzer(copy):
    add(copy, "scripts/launch/tscope.c", '#include "analyzer/base/arena.h"\n')
    return "scripts/launch/tscope.c includes analyzer/base/arena.h"


def room_without_a_row(copy):
    add(copy, "analyzer/attic/attic.h", '#include "base/arena.h"\n')
    return "analyzer/attic/ has no row"


def declared_circle(copy):
    add(copy, "analyzer/base/arena.c", '#include "kernels/kernels.h"\n')
    change_row(copy, "analyzer/base", lambda row: row + "`analyzer/kernels/` ")
    return "a circle of rooms: analyzer/base/, analyzer/kernels/"


def arrow_that_nothing_needs(copy):
    change_row(copy, "analyzer/report", lambda row: row + "`analyzer/programs/` ")
    return "analyzer/report/ is said to use analyzer/programs/ and does not"


def copy_tree(source, copy):
    for folder in ("analyzer", "preload", "format"):
        shutil.copytree(os.path.join(source, folder), os.path.join(copy, folder))
    os.mkdir(os.path.join(copy, "docs"))
    shutil.copy(os.path.join(source, "docs", "architecture.md"), os.path.join(copy, "docs"))


def restore(source, copy):
    """Takes back what a case has changed: copying the whole tree again takes long on a busy disk."""
    for path in changed:
        os.remove(os.path.join(copy, path))
        if os.path.exists(os.path.join(source, path)):
            shutil.copy(os.path.join(source, path), os.path.join(copy, path))
    changed.clear()


def tried(source, copy, case):
    expected = case(copy)
    run = subprocess.run([sys.executable, os.path.join(HERE, "layers.py"), copy],
                         capture_output=True, text=True, check=False)
    restore(source, copy)
    seen = run.returncode == 1 and expected in run.stdout
    print(f"{case.__name__}: {'seen' if seen else 'NOT SEEN: ' + run.stdout + run.stderr}")
    return seen


def main():
    cases = [undeclared_include, include_between_the_halves, launcher_that_uses_the_analyzer, room_without_a_row,
             declared_circle, arrow_that_nothing_needs]
    source = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as copy:
        copy_tree(source, copy)
        return 0 if all([tried(source, copy, case) for case in cases]) else 1


if __name__ == "__main__":
    sys.exit(main())
