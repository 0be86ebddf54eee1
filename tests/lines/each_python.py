# SPDX-License-Identifier: MIT
"""Runs a program with every CPython from 3.9 on that this machine has, or with three of them: the oldest, the newest,
and one of the version that runs this.

usage: each_python.py [--few] PROGRAM [ARGUMENT...]
"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from outcomes import Skip  # noqa: E402
from torch_python import virtual_environment  # noqa: E402

WANTED = ["3.%d" % minor for minor in range(9, 16)]


def pythons():
    """{(version, path of the real program)}"""
    candidates = glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3.*"))
    candidates += glob.glob(os.path.expanduser("~/.local/share/uv/python/*/bin/python3.*"))
    candidates += glob.glob(os.path.join(virtual_environment(), "..", "python3.*", "usr/bin/python3.*"))
    for version in WANTED:
        found = shutil.which("python" + version, path="/usr/bin:/usr/local/bin:/opt/bin")
        candidates += [found] if found else []
    found = {}
    for path in candidates:
        version = re.fullmatch(r"python(3\.\d+)", os.path.basename(path))
        if version and version.group(1) in WANTED:
            found[os.path.realpath(path)] = version.group(1)
    return sorted(((version, path) for path, version in found.items()), key=lambda one: (WANTED.index(one[0]), one[1]))


def few(found):
    own = [(version, path) for version, path in found if version == "%d.%d" % sys.version_info[:2]]
    return sorted({found[0], *own[-1:], found[-1]}, key=found.index)


def main():
    found = pythons()
    for missing in sorted(set(WANTED) - {version for version, _ in found}):
        print("not here: Python", missing)
    if not found:
        raise Skip("no Python from 3.9 on")
    command = sys.argv[1:]
    if command[0] == "--few":
        command, found = command[1:], few(found)
    failed = [path for _, path in found if subprocess.run([path] + command).returncode]
    for path in failed:
        print("FAILED under", path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
