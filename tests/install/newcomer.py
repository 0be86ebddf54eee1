#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The way of someone who has never seen tscope: newcomer.py SOURCE BUILD.

One command builds the wheel; auditwheel agrees with its name; pip installs it into an empty
environment; `tscope run` on a PyTorch job, `tscope report`, and every example of docs/python.md.
The wheel is built a second time in another folder, and must be the same, bit for bit.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE, BUILD = map(os.path.realpath, sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode == SKIPPED:
        print(done.stdout)
        sys.exit(SKIPPED)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def wheel_of(source):
    said = run(os.path.join(source, "scripts", "wheel"))
    return re.search(r"^tscope wheel: (/.*\.whl)$", said, re.M).group(1)


def copy_of_source(folder):
    """What git tracks, in a folder of another name: no path may be in the wheel."""
    copy = os.path.join(folder, "a-copy-of-the-source-elsewhere")
    for name in run("git", "-C", SOURCE, "ls-files", "-z").split("\0"):
        if name and os.path.exists(os.path.join(SOURCE, name)):
            os.makedirs(os.path.dirname(os.path.join(copy, name)), exist_ok=True)
            shutil.copy2(os.path.join(SOURCE, name), os.path.join(copy, name))
    return copy


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_wheel(wheel):
    venv = os.environ.get("TSCOPE_VENV") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tscope", "venv")
    said = " ".join(run(os.path.join(venv, "bin", "auditwheel"), "show", wheel).split())
    assert re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_', said), said
    assert int(re.search(r'"manylinux_2_(\d+)_', said)[1]) <= 28, said
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        library = next(name for name in names if name.endswith("/libtscope.so"))
        run(sys.executable, os.path.join(SOURCE, "tests", "unit", "core_library.py"),
            archive.extract(library, folder), SOURCE)
        for name in names:
            assert SOURCE.encode() not in archive.read(name), f"{name} names the folder it was built in"


def main():
    if not os.path.isdir(os.path.join(SOURCE, ".git")) and not os.path.isfile(os.path.join(SOURCE, ".git")):
        print("skipped: the source is no clone, so what belongs to it is not known")
        return SKIPPED
    epoch = run("git", "-C", SOURCE, "log", "-1", "--format=%ct").strip()
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    wheel = wheel_of(SOURCE)
    check_wheel(wheel)
    with tempfile.TemporaryDirectory(prefix="tscope-newcomer-") as folder:
        place = os.path.join(folder, "env")
        run(sys.executable, "-m", "venv", place)
        run(os.path.join(place, "bin", "pip"), "install", "--no-index", "--disable-pip-version-check", wheel)
        for program in ("tscope", "tscope-run", "tscope-report"):
            said = run(os.path.join(place, "bin", program), "--version", env={})
            assert said.startswith(program + " "), said
        print(run(sys.executable, os.path.join(HERE, "python_page.py"), SOURCE, BUILD, place))
        again = wheel_of(copy_of_source(folder))
        assert digest(wheel) == digest(again), f"{wheel} and {again} differ"
        print(f"{os.path.basename(wheel)}: {digest(wheel)}, twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
