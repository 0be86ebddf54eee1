#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a command's output with a file: golden.py FILE [TRACEGEN...] -- COMMAND...

With a tracegen command line, its traces are first written to a new folder, which replaces @ in COMMAND. If
TSCOPE_UPDATE_GOLDEN is set, the file is written instead (tests/golden/update does this for all). A command that fails
is always an error.
"""
import difflib
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import run  # noqa: E402


def output_of(command, tracegen):
    with tempfile.TemporaryDirectory(prefix="tscope-golden-") as traces:
        if tracegen:
            run(*tracegen, traces)
        return run(*(traces if word == "@" else word for word in command)).stdout


def main():
    path, *tracegen = sys.argv[1:sys.argv.index("--")]
    command = sys.argv[sys.argv.index("--") + 1:]
    got = output_of(command, tracegen)
    if "TSCOPE_UPDATE_GOLDEN" in os.environ:
        with open(path, "w", encoding="utf-8") as file:
            file.write(got)
        return 0
    with open(path, encoding="utf-8") as file:
        wanted = file.read()
    difference = list(difflib.unified_diff(wanted.splitlines(True), got.splitlines(True), path, "now"))
    sys.stdout.writelines(difference)
    if difference:
        print("If this is how it should look now: tests/golden/update, and look at the difference.")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
