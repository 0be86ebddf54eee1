#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No two source files have the same name, so that a name alone identifies a file: basenames.py SOURCE. Except the files
that each folder has (meson.build, __init__.py, README.md). So a comment that names a file by its name names one that
exists; a path in front of it, such as security/yama/yama_lsm.c, says that it is of another project."""
import collections
import os
import re
import subprocess
import sys

KINDS = ("*.c", "*.h", "*.def", "*.py", "*.S", "*.js")
EACH_FOLDER = {"__init__.py", "conftest.py"}
OF_OTHERS = {"poll.c": "a file of the C library in an example of a stack"}


def files_in_comments(path):
    """Names of C files and tables without a path, or with one that begins in a top folder of the product."""
    with open(path, encoding="utf-8") as file:
        comments = " ".join(re.findall(r"/\*.*?\*/|^\s*//[^\n]*", file.read(), re.S | re.M))
    own = r"(?<![\w./<*-])(?:(?:analyzer|preload|format|inspect)/[\w/]+/)?(\w+\.(?:c|def))\b"
    return set(re.findall(own, comments)) - OF_OTHERS.keys()


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
    named = {path: files_in_comments(os.path.join(source, path)) for paths in places.values() for path in paths
             if path.startswith(("analyzer/", "preload/", "format/", "inspect/"))}
    gone = [f"{path}: a comment names {name}, which does not exist"
            for path, names in sorted(named.items()) for name in sorted(names - places.keys())]
    print("\n".join(gone + [f"{len(places)} names, {len(shared)} of more than one file; {len(gone)} in comments do not exist"]))
    return 1 if shared or gone else 0


if __name__ == "__main__":
    sys.exit(main())
