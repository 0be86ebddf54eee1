# SPDX-License-Identifier: MIT
"""The same input gives the same document each time, with any number of threads:

    same_each_time.py TSCOPE-REPORT TSCOPE-REDUCE TRACEGEN [FOLDER]

A sum in another order, or an entry in another row, is a difference. FOLDER has recordings of PyTorch's profiler; the
other inputs are traces of ranks on several hosts, summaries of them, and a recording that contradicts itself.
"""
import difflib
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import run  # noqa: E402
from profiler_file import event, write_ranks  # noqa: E402

REPORT, REDUCE, TRACEGEN = sys.argv[1:4]
RECORDINGS = sys.argv[4:]
TRACES = ["--ranks", "6", "--ranks-per-host", "2", "--steps", "40", "--phases", "--slow-rank", "2", "--slow-factor", "1.4",
          "--skew"]


def write_contradiction(folder):
    """Two ranks that reduce in two groups, each in another order, on one stream: no collective can end before the other
    has. By the others, in a third group, the ranks' clocks are known."""
    os.mkdir(folder)
    ranks = []
    for rank in range(2):
        events, at, number = [], 1000, 0
        for step in range(12):
            begin = at
            for group in (rank, 1 - rank, *9 * [2]):
                for name, took in (("gemm", 20 + 7 * step), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 400)):
                    number += 1
                    members = {"Collective name": "allreduce", "Process Group Name": str(group), "Group size": 2,
                               "Process Group Ranks": "[0, 1]", "dtype": "Float", "In msg nelems": 9, "Out msg nelems": 9}
                    events += [event("cuda_runtime", "cudaLaunchKernel", at, 5, correlation=number),
                               event("kernel", name, at + 6, took, correlation=number, stream=7,
                                     **(members if name != "gemm" else {}))]
                    at += took + 10
            at += 50
            events.append(event("user_annotation", f"ProfilerStep#{step}", begin, at - begin))
        ranks.append(events)
    write_ranks(folder, *ranks)


def document(form, threads, folder):
    return run(REPORT, "--format", form, "--threads", threads, folder, errors="backslashreplace").stdout


def differ(form, folder, numbers):
    first = document(form, 1, folder)
    for threads in numbers:
        other = document(form, threads, folder)
        if other != first:
            sys.stdout.writelines(list(difflib.unified_diff(first.splitlines(True), other.splitlines(True), "1 thread",
                                                            f"{threads} threads", n=2))[:60])
            return True
    print(f"{form} of {os.path.basename(folder)}: {len(first)} characters, the same on 1 and {numbers} threads")
    return False


def main():
    with tempfile.TemporaryDirectory(prefix="tscope-same-") as scratch:
        traces, summaries = os.path.join(scratch, "traces"), os.path.join(scratch, "summaries")
        run(TRACEGEN, *TRACES, traces)
        run(REDUCE, traces, "--output", summaries)
        wrong = [differ(form, folder, [4]) for form, folder in (("json", traces), ("perfetto", traces), ("json", summaries))]
        contradiction = os.path.join(scratch, "contradiction")
        write_contradiction(contradiction)
        wrong.append(differ("json", contradiction, [2, 3, 4, 8]))
    for folder in RECORDINGS:
        if os.path.isdir(folder):
            wrong.append(differ("json", folder, [2, 3, 4, 8, 2, 4]))
        else:
            print("not tested: there is no", folder)
    return 1 if True in wrong else 0


if __name__ == "__main__":
    sys.exit(main())
