#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a command's output with a file: golden.py FILE [TRACEGEN...] -- COMMAND...

With a tracegen command line, its traces are first written to a new folder, which replaces @ in COMMAND. If
TSCOPE_UPDATE_GOLDEN is set, the file is written instead (tests/golden/update does this for all). A command that fails
is always an error.
"""
import difflib
import os
import subprocess
import sys
import tempfile


def output_of(command, tracegen, env):
    with tempfile.TemporaryDirectory(prefix="tscope-golden-") as traces:
        if tracegen:
            subprocess.run([*tracegen, traces], check=True, stdout=subprocess.DEVNULL)
        command = [traces if word == "@" else word for word in command]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env).stdout.decode()


def main():
    path, *tracegen = sys.argv[1:sys.argv.index("--")]
    command = sys.argv[sys.argv.index("--") + 1:]
    env = {key: value for key, value in os.environ.items()
           if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "LC_CTYPE", "LANG")}
    env["LC_ALL"] = "C.UTF-8"
    got = output_of(command, tracegen, env)
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
