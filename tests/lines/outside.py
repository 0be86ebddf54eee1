# SPDX-License-Identifier: MIT
"""Stacks read from outside: PYTHON outside.py TSCOPE-STACKS. A program of this Python stands still in
several threads; what tscope-stacks says of it is compared with what it said itself (where it put its
threads, which of them keeps the GIL), and frame by frame with py-spy, where that is installed and knows
this Python."""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "standing.py")


def said_by_tscope(program, pid):
    done = subprocess.run([program, "--frames", str(pid)], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    threads = {}
    for line in done.stdout.splitlines():
        _, tid, file, number, function = line.split("\t")
        threads.setdefault(int(tid), []).append((file, int(number), function.rpartition(".")[2]))
    return threads


def said_by_py_spy(pid):
    done = subprocess.run(["py-spy", "dump", "--json", "--pid", str(pid)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        return None, (done.stderr.splitlines() or ["?"])[0]
    threads = {}
    for thread in json.loads(done.stdout):
        threads[thread["os_thread_id"]] = [(frame["filename"], frame["line"], frame["name"].rpartition(".")[2])
                                           for frame in thread["frames"]]
    return threads, None


def keeps_the_gil(program, *arguments):
    """Where tscope-stacks says that the GIL is kept while the program stands still, or None."""
    job = subprocess.Popen([sys.executable, PROGRAM, *arguments], stdout=subprocess.PIPE, universal_newlines=True)
    try:
        job.stdout.readline()
        wait_until_asleep(job.pid)
        said = subprocess.run([program, str(job.pid)], stdout=subprocess.PIPE, check=True, universal_newlines=True)
        found = re.search(r"keeps the GIL: at (\S+):\d+ in (\w+)", said.stdout)
        return found and found.groups()
    finally:
        job.kill()
        job.wait()


def wait_until_asleep(pid):
    """It has said where it is going to stand still; it is there once its first thread sleeps."""
    while True:
        with open("/proc/%d/stat" % pid) as stat:
            if stat.read().rpartition(")")[2].split()[0] == "S":
                return
        os.sched_yield()


def main():
    assert keeps_the_gil(sys.argv[1], "holding") == ("standing.py", "stand_still")
    assert keeps_the_gil(sys.argv[1]) is None
    job = subprocess.Popen([sys.executable, PROGRAM], stdout=subprocess.PIPE, universal_newlines=True)
    try:
        truth = json.loads(job.stdout.readline())
        found = said_by_tscope(sys.argv[1], job.pid)
        # What waits in a generator, behind a callback of C, in the first thread.
        for name, functions in truth.items():
            assert any([function for _, _, function in frames][:len(functions)] == functions
                       for frames in found.values()), (name, functions, found)
        if not shutil.which("py-spy"):
            print(sys.version.split()[0], "agrees with the program itself; py-spy is not installed")
            return
        other, why = said_by_py_spy(job.pid)
        if other is None:
            print(sys.version.split()[0], "agrees with the program itself; py-spy does not know it:", why)
            return
        assert found == other, (found, other)
        print(sys.version.split()[0], "agrees with py-spy on", sum(map(len, found.values())), "frames of",
              len(found), "threads")
    finally:
        job.kill()
        job.wait()


main()
