#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No two source files have the same name, so that a name alone identifies a file: basenames.py SOURCE. Except the files
that each folder has (meson.build, __init__.py, README.md)."""
import collections
import os
import subprocess
import sys

KINDS = ("*.c", "*.h", "*.def", "*.py", "*.S", "*.js")
EACH_FOLDER = {"__init__.py", "conftest.py"}


def main():
    source = sys.argv[1]
    listed = subprocess.run(["git", "-C", source, "ls-files", *KINDS], stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode != 0 or not listed.stdout:
        print("skipped: not a git clone")
        return 77
    places = collections.defaultdict(list)
    for path in listed.stdout.split():
        if os.path.exists(os.path.join(source, path)):
            places[os.path.basename(path)].append(path)
    shared = {name: paths for name, paths in places.items() if len(paths) > 1 and name not in EACH_FOLDER}
    for name, paths in sorted(shared.items()):
        print(f"{name}: {', '.join(paths)}")
    print(f"{len(places)} names, {len(shared)} of more than one file")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
