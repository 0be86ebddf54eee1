# SPDX-License-Identifier: MIT
"""Stacks read from outside: PYTHON outside.py TSCOPE-STACKS. A program with this Python stalls in
several threads. The output of tscope-stacks is compared with that of the program (the functions of its
threads, and which thread keeps the GIL), and frame by frame with py-spy, if it is installed and knows
this Python."""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from processes import wait_for_state  # noqa: E402

PROGRAM = os.path.join(HERE, "standing.py")


def frames_of_tscope(program, pid):
    done = subprocess.run([program, "--frames", str(pid)], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    threads = {}
    for line in done.stdout.splitlines():
        _, tid, file, number, function = line.split("\t")
        threads.setdefault(int(tid), []).append((file, int(number), function.rpartition(".")[2]))
    return threads


def frames_of_py_spy(pid):
    done = subprocess.run(["py-spy", "dump", "--json", "--pid", str(pid)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        return None, (done.stderr.splitlines() or ["?"])[0]
    threads = {}
    for thread in json.loads(done.stdout):
        threads[thread["os_thread_id"]] = [(frame["filename"], frame["line"], frame["name"].rpartition(".")[2])
                                           for frame in thread["frames"]]
    return threads, None


def gil_holder(program, *arguments):
    """(file, function) of the thread that keeps the GIL while the program stalls, from tscope-stacks; or None."""
    job = subprocess.Popen([sys.executable, PROGRAM, *arguments], cwd=os.path.dirname(PROGRAM), stdout=subprocess.PIPE,
                           universal_newlines=True)
    try:
        job.stdout.readline()
        wait_for_state(job.pid, "S")  # it prints its functions just before it stalls
        printed = subprocess.run([program, str(job.pid)], stdout=subprocess.PIPE, check=True, universal_newlines=True)
        found = re.search(r"keeps the GIL: at (\S+):\d+ \((\w+)\)", printed.stdout)
        return found and found.groups()
    finally:
        job.kill()
        job.wait()


def main():
    assert gil_holder(sys.argv[1], "holding") == ("standing.py", "stand_still")
    assert gil_holder(sys.argv[1]) is None
    job = subprocess.Popen([sys.executable, PROGRAM], stdout=subprocess.PIPE, universal_newlines=True)
    try:
        truth = json.loads(job.stdout.readline())
        wait_for_state(job.pid, "S")  # else one of the two looks may see it print
        found = frames_of_tscope(sys.argv[1], job.pid)
        # One thread is in a generator, one in a callback from C, and the first is in stand_still().
        for name, functions in truth.items():
            assert any([function for _, _, function in frames][:len(functions)] == functions
                       for frames in found.values()), (name, functions, found)
        if not shutil.which("py-spy"):
            print(sys.version.split()[0], "agrees with the program itself; py-spy is not installed")
            return
        other, why = frames_of_py_spy(job.pid)
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
