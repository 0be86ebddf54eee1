# SPDX-License-Identifier: MIT
"""Other processes: what the kernel says of them, and their end."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys

from outcomes import wait_until

NOBODY = 65534
# In front of a command that root starts: as another user, and as root without the right to read others.
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
WITHOUT_PTRACE = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]

COST = """
import os, subprocess, sys, time
begin = time.monotonic()
child = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(child.pid, 0)
with open(int(sys.argv[1]), "w") as told:
    print(time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=told)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def cost_of(command, ok=(0,), **more):
    """Of a command: wall seconds, CPU seconds of all threads, peak MiB, and its status, which must be in `ok`. A small
    process starts it, because the peak of a child begins with that of its parent."""
    read, write = os.pipe()
    with open(read, encoding="ascii") as told:
        with open(write, "wb"):
            status = subprocess.run([sys.executable, "-c", COST, str(write), *command], pass_fds=[write], check=False, **more).returncode
        assert status in ok, f"{' '.join(command)}: status {status}"
        return *map(float, told.read().split()), status


def state_of(path):
    """The letter of a process, by its number, or of a thread, by its folder in /proc."""
    with open(f"/proc/{path}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def states_of_threads(pid):
    return {int(tid): state_of(f"{pid}/task/{tid}") for tid in os.listdir(f"/proc/{pid}/task")}


def wait_for_state(pid, letters):
    wait_until(f"process {pid} is {letters}", lambda: state_of(pid) in letters, each=0.001)


def children_of(pid):
    """Those of all its threads; none of a process that is gone."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as children:  # a thread may end meanwhile
            found += map(int, children.read().split())
    return found


def as_on_another_host():
    """What makes a command run as if on another host; None without the right to that."""
    there = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]
    works = shutil.which("unshare") and subprocess.run(there + ["true"], stderr=subprocess.DEVNULL).returncode == 0
    return there if works else None


def run_within(seconds, command, out, err=subprocess.STDOUT, **more):
    """A command's exit status, None after so many seconds; then all that it started has ended, too. For `out` a file: a
    pipe stays open as long as a process that is left behind."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **more)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(OSError):  # no process is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
