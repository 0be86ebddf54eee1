#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first steps of a new user of tscope: newcomer.py SOURCE BUILD.

One command builds the wheel of the commit that is checked out; auditwheel agrees with its name; pip installs it into an
empty environment; `tscope run` on a PyTorch job, `tscope report`, its page, and every example of docs/python.md. The
wheel is built a second time in another folder, and must be the same, bit for bit. Both are built from git's export of
that one commit, without uncommitted or later changes in the clone.
"""
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import observed  # noqa: E402
from manual import check_each_starts, pages_of, programs_of  # noqa: E402
from outcomes import SKIPPED, Skip  # noqa: E402
from torch_python import virtual_environment  # noqa: E402

SOURCE, BUILD = map(os.path.realpath, sys.argv[1:3])


def run(*command, **more):
    done = observed.run(*command, ok=(0, SKIPPED), **more)
    if done.returncode == SKIPPED:
        raise Skip(done.stdout)
    return done.stdout + done.stderr


def wheel_of(source):
    """Compiles without a compiler cache, which would compare an object with itself."""
    os.environ["CCACHE_DISABLE"] = "1"
    said = run(os.path.join(source, "scripts", "wheel"))
    return re.search(r"^tscope wheel: (/.*\.whl)$", said, re.M).group(1)


def export(commit, folder, name):
    """Exports the commit into a folder with this name: the wheel must not contain its path."""
    place = os.path.join(folder, name)
    os.makedirs(place)
    archive = subprocess.run(["git", "-C", SOURCE, "archive", commit], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
    return place


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_contents(source, names):
    """All programs, pages, completions and the module are in the wheel."""
    wanted = [f"/scripts/{program}" for program in programs_of(source)]
    wanted += [f"/share/man/man{page[-1]}/{page}" for page in pages_of(source)]
    wanted += ["/bash-completion/completions/tscope", "/zsh/site-functions/_tscope",
               "/fish/vendor_completions.d/tscope.fish", "/lib/tscope/libtscope.so", "/headers/tscope.h",
               "/libtscope/__init__.py", "/libtscope/py.typed"]
    missing = [end for end in wanted if not any(name.endswith(end) for name in names)]
    assert not missing, f"the wheel lacks {missing}; it has {names}"


def check_wheel(wheel, source):
    said = " ".join(run(os.path.join(virtual_environment(), "bin", "auditwheel"), "show", wheel).split())
    assert re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_', said), said
    assert int(re.search(r'"manylinux_2_(\d+)_', said)[1]) <= 28, said
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        check_contents(source, names)
        library = next(name for name in names if name.endswith("/libtscope.so"))
        run(sys.executable, os.path.join(source, "tests", "unit", "record", "core_library.py"),
            archive.extract(library, folder), source)
        for name in names:
            assert source.encode() not in archive.read(name), f"{name} names the folder it was built in"


def main():
    if not os.path.isdir(os.path.join(SOURCE, ".git")) and not os.path.isfile(os.path.join(SOURCE, ".git")):
        raise Skip("the source is no clone, so what belongs to it is not known")
    commit, epoch = run("git", "-C", SOURCE, "log", "-1", "--format=%H %ct").split()
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    with tempfile.TemporaryDirectory(prefix="tscope-newcomer-") as folder:
        source = export(commit, folder, "source")
        wheel = wheel_of(source)
        check_wheel(wheel, source)
        place = os.path.join(folder, "env")
        run(sys.executable, "-m", "venv", place)
        run(os.path.join(place, "bin", "pip"), "install", "--no-index", "--disable-pip-version-check", wheel)
        check_each_starts(os.path.join(place, "bin"), source, run)
        print(run(sys.executable, os.path.join(source, "tests", "install", "python_page.py"), source, BUILD, place))
        again = wheel_of(export(commit, folder, "the-same-commit-elsewhere"))
        assert digest(wheel) == digest(again), f"{wheel} and {again} differ"
        print(f"commit {commit}: {os.path.basename(wheel)}: {digest(wheel)}, twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
