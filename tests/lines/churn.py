# SPDX-License-Identifier: MIT
"""A program that only marks steps, while threads start and end, generators run and exceptions are raised, and
the shim records stalls repeatedly. PYTHON churn.py LIBTSCOPE. The program must end normally with the right
sum, and its stacks must be in the trace."""
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402

SECONDS, STEP_S = 5, 2.5


def numbers(n):
    for i in range(n):
        try:
            if i % 3 == 0:
                raise ValueError(i)
            yield i
        except ValueError as error:
            yield error.args[0]


def deeper(depth):
    return sum(numbers(50)) if depth == 0 else deeper(depth - 1)


def churn():
    step = ctypes.CDLL(None).tscope_step
    end, next_step, rounds = time.monotonic() + SECONDS, 0, 0
    results = []
    while time.monotonic() < end:
        threads = [threading.Thread(target=lambda: results.append(deeper(20))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rounds += 8
        if time.monotonic() >= next_step:  # a step, so that there can be another stall
            step(ctypes.c_uint64(rounds))
            next_step = time.monotonic() + STEP_S
    total = sum(results)
    assert total == rounds * sum(range(50)), (total, rounds)
    print("churned", rounds)


def main():
    with tempfile.TemporaryDirectory(prefix="tscope-churn-") as folder:
        env = observed_environment(sys.argv[1], folder, TSCOPE_STALL="1", TSCOPE_LINES="off")
        program = ("import sys, ctypes; sys.argv = ['churn']; sys.path.insert(0, %r); import churn; "
                   "ctypes.CDLL(None).tscope_step(ctypes.c_uint64(0)); churn.churn()" % os.path.dirname(
                       os.path.abspath(__file__)))
        done = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
        assert done.returncode == 0 and done.stdout.startswith("churned"), (done.returncode, done.stderr)
        traces = read_trace.read_all(folder)
        assert any(b"churn.py" in trace.data for trace in traces), "no frame of this file is in the trace"
        print(sys.version.split()[0], done.stdout.strip())


if __name__ == "__main__":
    main()
