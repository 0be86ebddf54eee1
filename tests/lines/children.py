# SPDX-License-Identifier: MIT
"""Workers that were spawned, and those of a fork server, are sampled, or the report says why not.

PYTHON children.py LIBTSCOPE TSCOPE-REPORT, on Linux where a process may read its children.
"""
import ctypes
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import read_trace  # noqa: E402
from observed import json_of, observed_environment  # noqa: E402

WAYS = ["spawn", "forkserver"]


def spins_as_worker(stop):
    while not stop.is_set():
        sum(range(20000))


def sampled_in(trace, function):
    """The processes that were sampled in it."""
    stacks = {stack for stack, inside in trace.functions().items() if function in inside}
    return {sample.tid for sample in trace.records["LineSample"] if sample.stack in stacks}


def says_why_not(trace):
    return any("spawned workers" in why for why in trace.info("FEATURE"))


def program():
    step = ctypes.CDLL(None).tscope_step
    workers, stops = [], []
    for way in WAYS:
        context = multiprocessing.get_context(way)
        stops.append(context.Event())
        workers.append(context.Process(target=spins_as_worker, args=(stops[-1],)))
        workers[-1].start()
    pids = {worker.pid for worker in workers}
    until = time.monotonic() + 60
    number = 0
    while time.monotonic() < until and not (number % 20 == 19 and is_over(pids)):
        step(ctypes.c_uint64(number))
        number += 1
        time.sleep(0.02)
    for stop in stops:
        stop.set()
    for worker in workers:
        worker.join()


def is_over(workers):
    return any(says_why_not(trace) or workers <= sampled_in(trace, "spins_as_worker")
               for trace in read_trace.read_all(os.environ["TSCOPE_DIR"]))


def main():
    library, reporter = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="tscope-children-") as folder:
        subprocess.run([sys.executable, __file__, "--program"], env=observed_environment(library, folder), check=True)
        report = json_of(reporter, folder)
        sampled = any(len(sampled_in(trace, "spins_as_worker")) == len(WAYS) for trace in read_trace.read_all(folder))
    says_why = any(why.startswith("lines of child processes are missing on 1 of 1 ranks: processes that run the same")
                   for why in report["quality"]["notes"])
    print(sys.version.split()[0], "samples them" if sampled else "says why not" if says_why else "WRONG: neither")
    return 0 if sampled or says_why else 1


if __name__ == "__main__":
    if sys.argv[1] == "--program":
        program()
    else:
        sys.exit(main())
