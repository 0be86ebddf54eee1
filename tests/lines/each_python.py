# SPDX-License-Identifier: MIT
"""Runs a program with every CPython from 3.9 on that this machine has.

usage: each_python.py PROGRAM [ARGUMENT...]
"""
import glob
import os
import re
import shutil
import subprocess
import sys

WANTED = ["3.%d" % minor for minor in range(9, 16)]


def from_setup():
    """The folder in which scripts/setup unpacks Pythons: beside the virtual environment."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.dirname(os.environ.get("TSCOPE_VENV") or os.path.join(cache, "tscope", "venv"))


def pythons():
    """{(version, path of the real program)}"""
    candidates = glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3.*"))
    candidates += glob.glob(os.path.expanduser("~/.local/share/uv/python/*/bin/python3.*"))
    candidates += glob.glob(os.path.join(from_setup(), "python3.*", "usr/bin/python3.*"))
    for version in WANTED:
        found = shutil.which("python" + version, path="/usr/bin:/usr/local/bin:/opt/bin")
        candidates += [found] if found else []
    found = {}
    for path in candidates:
        version = re.fullmatch(r"python(3\.\d+)", os.path.basename(path))
        if version and version.group(1) in WANTED:
            found[os.path.realpath(path)] = version.group(1)
    return sorted((version, path) for path, version in found.items())


def main():
    found = pythons()
    for missing in sorted(set(WANTED) - {version for version, _ in found}):
        print("not here: Python", missing)
    if not found:
        print("no Python from 3.9 on; skipped")
        return 77
    failed = [path for _, path in found if subprocess.run([path] + sys.argv[1:]).returncode]
    for path in failed:
        print("FAILED under", path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
