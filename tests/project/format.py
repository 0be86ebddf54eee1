#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every C file is formatted by clang-format 14 with the project's .clang-format, and uses sizeof with parentheses,
which clang-format does not check: format.py SOURCE."""
import os
import re
import subprocess
import sys

VERSION = "14"
BARE_SIZEOF = re.compile(r"\bsizeof [^(]")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        try:
            said = subprocess.run([name, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if re.search(rf"version {VERSION}\.", said):
            return name
    return None


def main():
    source = sys.argv[1]
    tool = clang_format()
    if not tool:
        print(f"skipped: no clang-format {VERSION} here (scripts/setup test)")
        return 77
    listed = subprocess.run(["git", "-C", source, "ls-files", "*.c", "*.h"], stdout=subprocess.PIPE,
                            text=True, check=False)
    files = [os.path.join(source, name) for name in listed.stdout.split()]
    if not files:
        print("skipped: not a git clone")
        return 77
    said = subprocess.run([tool, "-n", *files], stderr=subprocess.PIPE, text=True, check=False).stderr
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", said, re.M)))
    for name in wrong:
        print(f"{os.path.relpath(name, source)}: clang-format -i changes it")
    bare = [name for name in files if BARE_SIZEOF.search(read(name))]
    for name in bare:
        print(f"{os.path.relpath(name, source)}: sizeof without parentheses")
    print(f"{len(files)} files, {len(wrong)} not formatted, {len(bare)} with another sizeof")
    return 1 if wrong or bare else 0


if __name__ == "__main__":
    sys.exit(main())
