# SPDX-License-Identifier: MIT
"""A thread that goes from one greenlet to another has their stacks in turn, each with an outermost frame of its own.

PYTHON greenlets.py LIBTSCOPE CUDART. No sample may mix two stacks, and hardly any may be unreadable.
"""
import collections
import ctypes
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402
from outcomes import Skip  # noqa: E402

TURNS, TURN_S = 1200, 0.001
GREENLETS = ({"first", "within_first"}, {"second", "within_second", "deep_within_second"})


def compute():
    end = time.thread_time() + TURN_S
    while time.thread_time() < end:
        sum(range(1000))


def within_first():
    compute()


def deep_within_second():
    compute()


def within_second():
    deep_within_second()


def first():
    for _ in range(TURNS):
        within_first()
        turns[1].switch()


def second():
    while True:
        within_second()
        turns[0].switch()


turns = []


def program(cudart):
    from greenlet import greenlet  # pylint: disable=import-outside-toplevel
    turns.extend([greenlet(first), greenlet(second)])
    loaded = ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    calls = ctypes.CDLL(None)  # the preload's functions come first
    calls.tscope_step(ctypes.c_uint64(0))
    calls.cudaDeviceSynchronize()
    turns[0].switch()
    return loaded


def check(folder):
    trace, = read_trace.read_all(folder)
    of_stack = {stack: tuple(bool(functions & set(inside)) for functions in GREENLETS)
                for stack, inside in trace.functions().items()}
    found = collections.Counter(of_stack[sample.stack] for sample in trace.records["LineSample"])
    looks = trace.records["LineSampling"][-1]
    print(dict(found), looks)
    assert not found[True, True], found
    assert min(found[True, False], found[False, True]) > sum(found.values()) / 4, found
    assert looks.unreadable < looks.samples / 4, looks


def main():
    try:
        import greenlet  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        raise Skip("no greenlet: scripts/setup test") from None
    library, cudart = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="tscope-greenlets-") as folder:
        subprocess.run([sys.executable, __file__, "--program", cudart], check=True,
                       env=observed_environment(library, folder))
        check(folder)
    return 0


if __name__ == "__main__":
    sys.exit(program(sys.argv[2]) and None if sys.argv[1] == "--program" else main())
