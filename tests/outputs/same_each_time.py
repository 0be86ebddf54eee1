# SPDX-License-Identifier: MIT
"""The same input gives the same document each time, with any number of threads: same_each_time.py TSCOPE-REPORT FOLDER.
A sum in another order, or an entry in another row, is a difference."""
import difflib
import os
import subprocess
import sys

REPORT, FOLDER = sys.argv[1:3]


def document(threads):
    done = subprocess.run([REPORT, "--format", "json", "--threads", str(threads), FOLDER], capture_output=True, text=True,
                          check=True)
    return done.stdout


def main():
    if not os.path.isdir(FOLDER):
        print("not tested: there is no", FOLDER)
        return 77
    first = document(1)
    for threads in (2, 3, 4, 8, 2, 4):
        other = document(threads)
        if other != first:
            sys.stdout.writelines(list(difflib.unified_diff(first.splitlines(True), other.splitlines(True), "1 thread",
                                                            f"{threads} threads", n=2))[:60])
            return 1
    print(len(first), "bytes, the same on 1, 2, 3, 4 and 8 threads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
