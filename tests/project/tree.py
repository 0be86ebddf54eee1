# SPDX-License-Identifier: MIT
"""Which files are ours."""
import os
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


def below(source, folder, endings):
    """Files below a folder, committed or not, by their paths in the source."""
    for where, _, names in os.walk(os.path.join(source, folder)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(where, name), source)
