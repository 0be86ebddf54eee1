# SPDX-License-Identifier: MIT
"""Which files are ours."""
import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from outcomes import Skip  # noqa: E402


def in_git(source, *patterns):
    """Files of the clone, by their paths in it."""
    listed = subprocess.run(["git", "-C", source, "ls-files", *patterns], stdout=subprocess.PIPE, text=True, check=False)
    if not listed.stdout:
        raise Skip("not a git clone")
    return [path for path in listed.stdout.split() if os.path.exists(os.path.join(source, path))]


def text_of(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    """Text of C, in which all else stays where it is."""
    return re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def below(source, folder, endings):
    """Files below a folder, committed or not, by their paths in the source."""
    for where, _, names in os.walk(os.path.join(source, folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(where, name), source)


def python_files(source):
    """Programs and modules of scripts/ and tests/."""
    for folder in ("scripts", "tests"):
        for path in below(source, folder, ""):
            with open(os.path.join(source, path), "rb") as file:
                if path.endswith(".py") or "." not in os.path.basename(path) and file.readline() == b"#!/usr/bin/env python3\n":
                    yield path
