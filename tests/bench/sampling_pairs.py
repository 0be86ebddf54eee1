# SPDX-License-Identifier: MIT
"""What a thread that trains loses while its lines are sampled: PYTHON sampling_pairs.py LIBTSCOPE CUDART [PAIRS]

The same work of a thread 40 frames deep, with lines sampled and without (TSCOPE_LINES=collectives), in turns: its CPU
time and the wall time, as the median of the pairs' ratios and half of the distance between the quartiles. And its
instructions, as valgrind counts them, of a shorter piece of it: each thread's apart.
"""
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import sampling

DEPTH = 40
ROUNDS, COUNTED_ROUNDS = 8000, 600


def work(rounds):
    for _ in range(rounds):
        sampling.first(), sampling.second(), sampling.third()


def go(depth, rounds):
    return go(depth - 1, rounds) if depth else work(rounds)


def program(rounds, cudart):
    loaded = sampling.as_training_thread(cudart)
    wall, cpu = time.perf_counter(), time.thread_time()
    go(DEPTH - 4, rounds)
    print(time.thread_time() - cpu, time.perf_counter() - wall)
    return loaded


def run(lines, rounds, before=()):
    """CPU and wall time of the work in seconds, and how many samples were taken."""
    with tempfile.TemporaryDirectory(prefix="tscope-bench-") as folder:
        environment = sampling.observed_environment(sys.argv[1], folder, TSCOPE_LINES=lines, PYTHONHASHSEED="0")
        said = subprocess.run([*before, sys.executable, __file__, "--program", str(rounds), sys.argv[2]], check=True,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        trace, = sampling.read_trace.read_all(folder)
        totals = trace.records.get("LineSampling")
    return [*map(float, said.split()), totals[-1].samples if totals else 0]


def counted(lines):
    """Instructions of the first thread, and of all others, and how many samples were taken."""
    with tempfile.TemporaryDirectory(prefix="tscope-bench-") as folder:
        _, _, samples = run(lines, COUNTED_ROUNDS, ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes",
                                                    "--callgrind-out-file=" + os.path.join(folder, "out")])
        of_thread = {}
        for path in glob.glob(os.path.join(folder, "out*-*")):
            with open(path, encoding="utf-8") as file:
                totals = [line for line in file if line.startswith("totals:")]
            of_thread[int(path.rsplit("-", 1)[1])] = int(totals[-1].split()[1])
    return of_thread.pop(1), sum(of_thread.values()), samples


def print_ratio(name, with_samples, without):
    ratios = sorted(a / b for a, b in zip(with_samples, without))
    quarter = len(ratios) // 4
    print("  %-10s %.3f s without, ratio %.4f, +- %.4f" % (
        name, statistics.median(without), statistics.median(ratios), (ratios[-1 - quarter] - ratios[quarter]) / 2))


def main(pairs):
    print("Python %s, %d pairs, load %.1f" % (sys.version.split()[0], pairs, os.getloadavg()[0]))
    runs = {"sampled": [], "collectives": []}
    for i in range(pairs):
        for lines in sorted(runs, reverse=i % 2):
            runs[lines].append(run(lines, ROUNDS))
    on, off = list(zip(*runs["sampled"])), list(zip(*runs["collectives"]))
    print("  %d samples a run, without %d" % (statistics.median(on[2]), max(off[2])))
    print_ratio("CPU time", on[0], off[0])
    print_ratio("wall time", on[1], off[1])
    if not shutil.which("valgrind"):
        print("  instructions: skipped, no valgrind")
        return
    for lines in "collectives", "sampled", "collectives", "sampled":
        own, others, samples = counted(lines)
        print("  %-12s %d instructions of the thread, %d of tscope's, %d samples" % (lines, own, others, samples), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--program":
        program(int(sys.argv[2]), sys.argv[3])
    else:
        main(int(sys.argv[3]) if len(sys.argv) > 3 else 20)
