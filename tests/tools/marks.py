# SPDX-License-Identifier: MIT
"""Lines of a job that a test must find again: each ends in a comment with its mark."""
import os


def lines_of(path, begin=""):
    """{mark: number} of those whose mark begins so; without that."""
    with open(path, encoding="utf-8") as file:
        found = [(line.rstrip().rpartition("# " + begin), number) for number, line in enumerate(file, 1)]
    return {mark: number for (_, is_marked, mark), number in reversed(found) if is_marked}


def line_of(path, mark):
    return lines_of(path)[mark]


def place_of(path, mark):
    """As tscope shows it: file and line."""
    return f"{os.path.basename(path)}:{line_of(path, mark)}"
