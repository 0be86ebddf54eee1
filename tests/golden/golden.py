#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a command's output with a file: golden.py [--update] FILE -- COMMAND [ARGUMENT]...

With --update, or with TSCOPE_UPDATE_GOLDEN set, writes the file instead (tests/golden/update does
so for all). A command that writes to stderr or fails is wrong whatever the file says.
"""
import difflib
import os
import subprocess
import sys


def main():
    arguments = sys.argv[1:]
    update = "TSCOPE_UPDATE_GOLDEN" in os.environ
    if arguments[:1] == ["--update"]:
        update = True
        del arguments[0]
    path, _, *command = arguments
    env = {key: value for key, value in os.environ.items()
           if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "LC_CTYPE", "LANG")}
    env["LC_ALL"] = "C.UTF-8"
    done = subprocess.run(command, capture_output=True, env=env)
    if done.returncode != 0 or done.stderr:
        print(f"{command}: status {done.returncode}, stderr: {done.stderr.decode()}")
        return 1
    got = done.stdout.decode()
    if update:
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
