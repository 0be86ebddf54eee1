# SPDX-License-Identifier: MIT
"""The thread that trains is sampled, not the first one, and each sample says what that thread did.

PYTHON sampled.py LIBTSCOPE CUDART    with each Python of this machine, see each_python.py

A program whose first thread only waits does one thing after the other in a second thread, which also waits for the
GPU (of a stand-in) now and then.
"""
import collections
import ctypes
import gc
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402

SECONDS = 0.6
OF_THREAD, BESIDE, HOLDS_GIL = 0x100, 0x200, 0x400  # in the tag of a LINE_SAMPLE


def until():
    return time.monotonic() + SECONDS


def computes():
    end = time.thread_time() + SECONDS  # it may have to wait for a core for much longer
    while time.thread_time() < end:
        sum(i * i for i in range(1000))


def sleeps():
    time.sleep(SECONDS)


def sleeps_by_select():
    select.select([], [], [], SECONDS)


def sleeps_by_poll():
    select.poll().poll(SECONDS * 1000)


def waits_for_event():
    threading.Event().wait(SECONDS)


def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    timer = threading.Timer(SECONDS, lock.release)
    timer.start()
    lock.acquire()
    timer.join()


def waits_for_network():
    here, there = socket.socketpair()
    timer = threading.Timer(SECONDS, there.send, [b"."])
    timer.start()
    here.recv(1)
    timer.join()


def waits_for_pipe():
    here, there = os.pipe()
    timer = threading.Timer(SECONDS, os.write, [there, b"."])
    timer.start()
    os.read(here, 1)
    timer.join()


def waits_for_process():
    child = subprocess.Popen(["sleep", str(SECONDS)])
    os.waitpid(child.pid, 0)


def collects():
    kept = [[] for _ in range(300000)]
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        gc.collect()
    return kept


def holds_the_gil(end):
    while time.monotonic() < end:
        sum(range(1000))


def waits_for_gil():
    end = until()
    sys.setswitchinterval(0.5)
    thread = threading.Thread(target=holds_the_gil, args=(end,))
    thread.start()
    while time.monotonic() < end:
        time.sleep(0)
    sys.setswitchinterval(0.005)
    thread.join()


def works_in_another_thread(end):
    while time.monotonic() < end:
        time.sleep(0.05)


def waits_for_thread():
    thread = threading.Thread(target=works_in_another_thread, args=(until(),))
    thread.start()
    thread.join()


# What most samples of the function must say. Those of a thread that computes may also be without a core.
EXPECTED = {"computes": "RUNNING", "sleeps": "SLEEP", "sleeps_by_select": "SLEEP", "sleeps_by_poll": "SLEEP",
            "waits_for_event": "LOCK", "waits_for_lock": "LOCK", "waits_for_network": "NETWORK", "waits_for_pipe": "PIPE",
            "waits_for_process": "PROCESS", "collects": "COLLECTING",
            "waits_for_gil": "GIL", "waits_for_thread": "LOCK"}


def train(cudart):
    tids.append(threading.get_native_id())
    loaded = ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    calls = ctypes.CDLL(None)  # the preload's functions come first
    for name in EXPECTED:
        calls.cudaDeviceSynchronize()
        globals()[name]()
    return loaded


tids = []


def program(cudart):
    ctypes.CDLL(None).tscope_step(ctypes.c_uint64(0))
    thread = threading.Thread(target=train, args=(cudart,))
    thread.start()
    thread.join()
    print(tids[0], os.getpid())


def read(folder):
    trace, = read_trace.read_all(folder)
    return trace, trace.functions()


def check(folder, trainer, first):
    trace, stacks = read(folder)
    what = {number: name for name, number in read_trace.ENUMS["ACTIVITIES"].items()}
    seconds = collections.defaultdict(collections.Counter)
    beside = collections.Counter()
    holders = set()
    for sample in trace.records["LineSample"]:
        name, activity = stacks[sample.stack], what[sample.tag & 0xff]
        if sample.tag & BESIDE:
            beside.update(set(name))
            holders.update(set(name) if sample.tag & HOLDS_GIL else ())
        elif sample.tag & OF_THREAD and sample.tid == trainer:
            for function in set(name) & set(EXPECTED):
                seconds[function][activity] += sample.stands_us / 1e6
    wrong = []
    for function, expected in EXPECTED.items():
        found = seconds[function]
        got = found[expected] + (found["NO_CORE"] if expected in ("RUNNING", "COLLECTING") else 0)
        if not found[expected] or got < 0.5 * sum(found.values()) or sum(found.values()) < 0.5 * SECONDS:
            wrong.append((function, expected, dict(found)))
    late = [sample for sample in trace.records["LineSample"] if sample.tid == first and not sample.tag & BESIDE]
    if sum(sample.stands_us for sample in late) > 0.5e6:
        wrong.append(("the first thread, which does not train", late[:3]))
    if "works_in_another_thread" not in beside:
        wrong.append(("the thread for which it waits", dict(beside)))
    if "holds_the_gil" not in holders:
        wrong.append(("who holds the GIL", holders))
    for line in wrong:
        print("WRONG", *line)
    print(sys.version.split()[0], {name: dict(found) for name, found in seconds.items()} if wrong else "as expected")
    return 1 if wrong else 0


def main():
    library, cudart = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="tscope-sampled-") as folder:
        done = subprocess.run([sys.executable, __file__, "--program", cudart], stdout=subprocess.PIPE,
                              env=observed_environment(library, folder), universal_newlines=True)
        assert done.returncode == 0, done.returncode
        trainer, first = map(int, done.stdout.split())
        return check(folder, trainer, first)


if __name__ == "__main__":
    sys.exit(program(sys.argv[2]) if sys.argv[1] == "--program" else main())
