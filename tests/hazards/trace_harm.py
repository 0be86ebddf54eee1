#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What happens to the trace file never harms the job:

    trace_harm.py --build BUILD [CASE...]
    trace_harm.py --list

Each case runs a program that launches for 1.2 s, on a file system of its own, and does something to its trace
meanwhile; several cases run at once, since they mostly wait. The program's output and exit status must be those of a run
without the preload, with at most one line on stderr. File systems are made in files, which needs root; a case that cannot be
made is skipped with the reason.
"""
import contextlib
import ctypes
import functools
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from built import built  # noqa: E402
from control_groups import ControlGroup  # noqa: E402
from observed import observed_environment  # noqa: E402
from outcomes import Skip, wait_until  # noqa: E402
from read_trace import paths_under  # noqa: E402
from repeated import main  # noqa: E402

LIBRARY, PROGRAMS = "", ""
LAUNCHES = 120000
MEGABYTES = {"btrfs": 120, "xfs": 320, "ext4": 40, "tmpfs": 24}
MUST_TELL = ("cut_to_nothing", "cut_in_the_middle", "removed", "server_reports_eio", "server_has_no_space",
             "server_has_forgotten_us")
ALL = ("btrfs", "xfs", "ext4", "tmpfs")
HARMS, FILE_SYSTEMS = {}, {}


class TooLate(Exception):
    """Raised if the machine was so busy that the job had ended before anything was done to its trace."""


def harm(*file_systems):
    def note(function):
        HARMS[function.__name__] = function
        FILE_SYSTEMS[function.__name__] = file_systems
        return function
    return note


def call(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Skip(f"no {error.filename}") from error
    if done.returncode:
        raise Skip(f"{' '.join(command)}: {done.stderr.strip()}")


class Mounted:
    """A file system of a few megabytes; `fuse` is one that fails on request."""

    def __init__(self, kind, scratch):
        self.where = os.path.join(scratch, kind)
        os.mkdir(self.where)
        self.server = None
        if kind == "fuse":
            self.serve(scratch)
            return
        if kind == "tmpfs":
            call("mount", "-t", "tmpfs", "-o", f"size={MEGABYTES[kind]}m", "none", self.where)
            return
        image = os.path.join(scratch, f"{kind}.image")
        with open(image, "wb") as file:
            file.truncate(MEGABYTES[kind] << 20)
        call(f"mkfs.{kind}", "-q", image)
        call("mount", "-o", "loop", image, self.where)

    def serve(self, scratch):
        folder = os.path.join(scratch, "behind")
        os.mkdir(folder)
        self.server = subprocess.Popen(["/usr/bin/python3", os.path.join(HERE, "..", "tools", "failing_fs.py"), self.where, folder,
                                        control_of(self.where)], stderr=subprocess.PIPE, text=True)

        def served():
            if self.server.poll() is not None:
                raise Skip(f"no file system in a process: {self.server.stderr.read().strip()}")
            return os.path.ismount(self.where)
        wait_until("the file system is there", served, each=0.01)

    def __enter__(self):
        return self.where

    def __exit__(self, *nothing):
        subprocess.run(["umount", "--lazy", self.where], check=False)
        if self.server:
            self.server.communicate(timeout=20)


def sync(path):
    """Only the file system of this path: others may not answer."""
    file = os.open(path, os.O_RDONLY)
    ctypes.CDLL(None).syncfs(file)
    os.close(file)


def fill(where):
    """Until nothing more fits, also no small file."""
    for size in (1 << 20, 4096, 1):
        try:
            with open(os.path.join(where, f"filler-{size}"), "wb", buffering=0) as file:
                while file.write(b"x" * size) > 1:
                    pass
        except OSError:
            pass
    sync(where)


@harm(*ALL)
def disk_fills_up(trace):
    fill(os.path.dirname(os.path.dirname(os.path.dirname(trace))))


@harm(*ALL)
def cut_to_nothing(trace):
    os.truncate(trace, 0)


@harm(*ALL)
def cut_in_the_middle(trace):
    os.truncate(trace, os.path.getsize(trace) // 2)


@harm(*ALL)
def removed(trace):
    shutil.rmtree(os.path.dirname(trace))


@harm("btrfs", "xfs", "ext4")
def copied_by_reference_on_a_full_disk(trace):
    where = os.path.dirname(os.path.dirname(os.path.dirname(trace)))
    for number in range(3):
        copy = os.path.join(where, f"copy-{number}")
        subprocess.run(["cp", "--reflink=auto", trace, copy], check=True)
        sync(where)
        time.sleep(0.05)
    fill(where)


def control_of(mount):
    return mount + "-fails-with"


def fail_with(name, trace):
    mount = os.path.dirname(os.path.dirname(os.path.dirname(trace)))
    with open(control_of(mount) + ".new", "w", encoding="ascii") as file:
        file.write(name)
    os.rename(control_of(mount) + ".new", control_of(mount))


@harm("fuse")
def server_reports_eio(trace):
    fail_with("EIO", trace)


@harm("fuse")
def server_has_no_space(trace):
    fail_with("ENOSPC", trace)


@harm("fuse")
def server_has_forgotten_us(trace):
    fail_with("ESTALE", trace)


@harm("fuse")
def server_does_not_answer(trace):
    """The helper waits for it. The job does not, before its end."""
    fail_with("SILENCE", trace)
    time.sleep(10)
    fail_with("", trace)


@harm("tmpfs")
def memory_is_short(scratch):
    """What is on tmpfs counts for the group of the job, in which the kernel kills when nothing is left."""
    group = ControlGroup("memory", 32 << 20)
    with Mounted("tmpfs", scratch) as where:
        subprocess.run(["mount", "-o", "remount,size=1g", where], check=True)
        job = start(os.path.join(where, "traces"), "plain", "3000000", enter=group.enter)
        out, errors = job.communicate(timeout=60)
    group.remove()
    assert (job.returncode, out, errors) == (0, b"3000000 launches\n", b""), (job.returncode, out, errors)
    return "no line"


def environment(directory):
    return observed_environment(directory and LIBRARY, directory, LD_LIBRARY_PATH=PROGRAMS, TSCOPE_DISK_FREE="0")


def start(directory, *arguments, enter=None):
    return subprocess.Popen([os.path.join(PROGRAMS, "hazard"), *(arguments or ["steady"])], env=environment(directory),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=enter)


def wait_for_trace(directory, job):
    found = wait_until(f"a trace in {directory}", lambda: paths_under(directory) or job.poll() is not None, seconds=20, each=0.01)
    assert found is not True, job.communicate()
    time.sleep(0.3)  # so that pages went to the file
    sync(os.path.dirname(found[0]))
    return found[0]


@functools.lru_cache
def without_preload(*arguments):
    """What the program prints and how it ends; each is run once."""
    bare = start(None, *arguments)
    bare_out, _ = bare.communicate(timeout=60)
    assert bare.returncode == 0 and bare_out.endswith(b"%d launches\n" % LAUNCHES), (bare.returncode, bare_out)
    return bare.returncode, bare_out


def line_of_harm(name, kind, scratch):
    """What the job said of it."""
    if name == memory_is_short.__name__:
        return memory_is_short(scratch)
    arguments = ["shapes"] if name == server_does_not_answer.__name__ else []
    with Mounted(kind, scratch) as where:
        directory = os.path.join(where, "traces")
        job = start(directory, *arguments)
        HARMS[name](wait_for_trace(directory, job))
        over = job.poll() is not None
        out, errors = job.communicate(timeout=60)
        assert (job.returncode, out) == without_preload(*arguments), (job.returncode, out, errors)
        lines = errors.decode().splitlines()
        assert len(lines) <= 1 and all(line.startswith("tscope: ") for line in lines), lines
        if over and not lines and name in MUST_TELL:
            raise TooLate
        assert lines or name not in MUST_TELL, "no line"
        return lines[0] if lines else "no line"


def check(case, _, scratch):
    name, kind = case.split("-")
    for turn in "12345":
        with contextlib.suppress(TooLate):
            where = os.path.join(scratch, turn)
            os.mkdir(where)
            print(f"{case}: {line_of_harm(name, kind, where)}", flush=True)
            return
        print(f"{case}: the job ended too early", flush=True)
    raise AssertionError("the job ended too early each time")


def prepare(build):
    global LIBRARY, PROGRAMS  # pylint: disable=global-statement
    LIBRARY, PROGRAMS = built(build, "libtscope.so"), os.path.join(build, "tests", "hazards")
    for arguments in ([], ["shapes"]):
        without_preload(*arguments)


if __name__ == "__main__":
    main([f"{name}-{kind}" for name, kinds in FILE_SYSTEMS.items() for kind in kinds], check, prepare=prepare, at_once=4)
