# SPDX-License-Identifier: MIT
"""The same input gives the same document each time, with any number of threads:

    same_each_time.py TSCOPE-REPORT TSCOPE-REDUCE TRACEGEN [FOLDER]

A sum in another order, or an entry in another row, is a difference. FOLDER has recordings of PyTorch's profiler; the
other inputs are traces of ranks on several hosts, and summaries of them.
"""
import difflib
import os
import subprocess
import sys
import tempfile

REPORT, REDUCE, TRACEGEN = sys.argv[1:4]
RECORDINGS = sys.argv[4:]
TRACES = ["--ranks", "6", "--ranks-per-host", "2", "--steps", "40", "--phases", "--slow-rank", "2", "--slow-factor", "1.4",
          "--skew"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="backslashreplace", check=True).stdout


def document(form, threads, folder):
    return run(REPORT, "--format", form, "--threads", str(threads), folder)


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
    for folder in RECORDINGS:
        if os.path.isdir(folder):
            wrong.append(differ("json", folder, [2, 3, 4, 8, 2, 4]))
        else:
            print("not tested: there is no", folder)
    return 1 if True in wrong else 0


if __name__ == "__main__":
    sys.exit(main())
