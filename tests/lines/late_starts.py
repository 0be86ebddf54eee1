# SPDX-License-Identifier: MIT
"""A thread that Python has made, but that does not run yet, has the number of the thread that made it. The first thread's
samples stay its own.

PYTHON late_starts.py LIBTSCOPE LATE_STARTS    with each Python of this machine, see each_python.py
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402

LATE_MS, SECONDS = 700, 1.0


def work_of_the_other():
    time.sleep(SECONDS)


def work_of_the_first():
    time.sleep(SECONDS)


def program():
    calls = ctypes.CDLL(None)
    late_by_ms = ctypes.c_uint.in_dll(calls, "late_by_ms")
    calls.tscope_step(ctypes.c_uint64(0))
    other = threading.Thread(target=work_of_the_other)
    late_by_ms.value = LATE_MS
    other.start()  # returns when the thread runs
    late_by_ms.value = 0
    work_of_the_first()
    other.join()
    print(os.getpid())


def main():
    library, late_starts = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="tscope-late-") as folder:
        done = subprocess.run([sys.executable, __file__, "--program"], stdout=subprocess.PIPE, universal_newlines=True,
                              env=observed_environment(f"{late_starts}:{library}", folder))
        assert done.returncode == 0, done.returncode
        trace, = read_trace.read_all(folder)
    functions = trace.functions()
    seconds = {}
    for sample in trace.records["LineSample"]:
        for name in set(functions[sample.stack]) if sample.tid == int(done.stdout) else ():
            seconds[name] = seconds.get(name, 0) + sample.stands_us / 1e6
    own, others = (seconds.get(work.__name__, 0) for work in (work_of_the_first, work_of_the_other))
    print(sys.version.split()[0], "the first thread:", seconds)
    waits = seconds.get("start", 0)  # while the other was made, but did not run yet
    return 0 if own >= SECONDS / 2 and waits >= LATE_MS / 2e3 and not others else 1


if __name__ == "__main__":
    sys.exit(program() if sys.argv[1] == "--program" else main())
