#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the results of a long check to docs/validation/NAME.md, with the command, the date, the commit and the
machine: record.py NAME TITLE COMMAND, with the text on standard input. Without arguments it prints the commit."""
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def git(*words):
    command = ["git", "-C", ROOT, *words] if shutil.which("git") else ["true"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def commit():
    # The files that such a check writes, and changed documents, do not change the program.
    changed = [line for line in git("status", "--porcelain", "--untracked-files=no").splitlines()
               if not line.split(maxsplit=1)[1].startswith("docs/")]
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (
        " with changes that are not committed" if changed else "")


def machine():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = re.search(r"model name\s*: (.*)", file.read())
    except OSError:
        model = None
    load = os.getloadavg()[0]
    return (f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), Linux "
            f"{platform.release()}, {' '.join(platform.libc_ver())}, load {load:.0f} at its end")


def write(name, title, command, text):
    path = os.path.join(ROOT, "docs", "validation", f"{name}.md")
    with open(path + ".new", "w", encoding="utf-8") as page:
        page.write(f"# {title}\n\nWritten by `{command}`, on {datetime.date.today().isoformat()}, on commit "
                   f"{commit()}, on {machine()}.\n\n{text.strip()}\n")
    os.replace(path + ".new", path)
    return path


if __name__ == "__main__":
    if sys.argv[1:]:
        write(*sys.argv[1:4], sys.stdin.read())
    else:
        print(commit())
