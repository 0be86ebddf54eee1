# SPDX-License-Identifier: MIT
"""What sampling lines costs, and whether py-spy sees the same: PYTHON sampling.py LIBTSCOPE CUDART [SECONDS]

For stacks of 10, 40 and 120 frames, of a thread that sleeps, one that computes at the end of the stack, and one whose
stack grows and shrinks by 20 frames: the CPU time of tscope's thread for a look, of which "in all" is with its waking
up; the share of one core; and the same of py-spy at the same rate, if it is installed. "differs by" compares where both
saw the program, as the largest difference of a function's share, beside three standard errors of that share.
"""
import collections
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402
from processes import cost_of  # noqa: E402

RATE = 100


def first():
    return sum(range(3000))


def second():
    return [i for i in range(1000)]


def third():
    return {i: i for i in range(500)}


def down(n):
    return down(n - 1) if n else sum(range(20))


def leaf(mode, end):
    while time.monotonic() < end:
        if mode == "sleeps":
            time.sleep(0.05)
        elif mode == "computes":
            first(), second(), third()
        else:
            down(20)


def go(depth, mode, end):
    return go(depth - 1, mode, end) if depth else leaf(mode, end)


def as_training_thread(cudart):
    """Makes the thread one whose lines are sampled; what it returns is to be kept."""
    import ctypes
    loaded = ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    if "LD_PRELOAD" in os.environ:
        calls = ctypes.CDLL(None)  # the preload's functions come first
        calls.tscope_step(ctypes.c_uint64(0))
        calls.cudaDeviceSynchronize()  # a thread that waits for a GPU trains
    return loaded


def program(depth, mode, seconds, cudart):
    loaded = as_training_thread(cudart)
    go(depth - 4, mode, time.monotonic() + seconds)
    return loaded


def job(depth, mode, seconds):
    return [sys.executable, __file__, "--program", str(depth), mode, str(seconds), sys.argv[2]]


def shares(seconds_of):
    total = sum(seconds_of.values()) or 1
    return collections.Counter({name: seconds / total for name, seconds in seconds_of.items()})


def by_tscope(library, depth, mode, seconds):
    with tempfile.TemporaryDirectory(prefix="tscope-bench-") as folder:
        subprocess.run(job(depth, mode, seconds), check=True, env=observed_environment(library, folder))
        trace, = read_trace.read_all(folder)
    functions = trace.functions()
    found = collections.Counter()
    for sample in trace.records["LineSample"]:
        frames = functions[sample.stack]
        if "leaf" in frames:  # py-spy did not see the start
            found[frames[0]] += sample.stands_us / 1e6
    totals = trace.records["LineSampling"][-1]
    return totals, shares(found)


def by_py_spy(depth, mode, seconds):
    with tempfile.TemporaryDirectory(prefix="tscope-bench-") as folder:
        raw = os.path.join(folder, "raw")
        running = subprocess.Popen(job(depth, mode, seconds + 1))
        try:
            _, spent, _, _ = cost_of(["py-spy", "record", "--nonblocking", "--idle", "--rate", str(RATE), "--duration",
                                      str(int(seconds)), "--format", "raw", "--pid", str(running.pid), "--output", raw],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finally:
            running.wait()
        found, samples = collections.Counter(), 0
        with open(raw, encoding="utf-8") as file:
            for line in file:
                stack, count = line.rsplit(" ", 1)
                samples += int(count)
                if "leaf (" in stack:
                    found[stack.split(";")[-1].split(" ")[0].rsplit(".", 1)[-1]] += int(count)
    return spent, samples, shares(found)


def main(library, _, seconds):
    has_py_spy = subprocess.run(["which", "py-spy"], stdout=subprocess.DEVNULL).returncode == 0
    print("Python %s, %g s each, load %.1f" % (sys.version.split()[0], seconds, os.getloadavg()[0]))
    for depth in 10, 40, 120:
        for mode in "sleeps", "computes", "recurs":
            totals, ours = by_tscope(library, depth, mode, seconds)
            n = totals.samples + totals.unreadable
            line = "%4d frames, %-8s  tscope %5.1f us a look, %.2f %% of a core, %d of %d read" % (
                depth, mode, totals.cpu_ns / 1e3 / n, totals.cpu_ns / 1e7 / seconds, totals.samples, n)
            if has_py_spy:
                spent, samples, theirs = by_py_spy(depth, mode, seconds)
                worst = max(set(ours) | set(theirs), key=lambda name: abs(ours[name] - theirs[name]))
                share = (ours[worst] + theirs[worst]) / 2
                error = 3 * (2 * share * (1 - share) / max(min(n, samples), 1)) ** 0.5
                line += "; py-spy %6.1f us, %.2f %%, %d samples; differs by %.3f (%s; chance %.3f)" % (
                    spent * 1e6 / max(samples, 1), 100 * spent / seconds, samples,
                    abs(ours[worst] - theirs[worst]), worst, error)
            print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--program":
        program(int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), sys.argv[5])
    else:
        main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 5)
