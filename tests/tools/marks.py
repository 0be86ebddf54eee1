# SPDX-License-Identifier: MIT
"""Lines of a job that a test must find again: each ends in a comment with its mark."""
import os


def line_of(path, mark):
    with open(path, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith("# " + mark))


def place_of(path, mark):
    """As tscope shows it: file and line."""
    return f"{os.path.basename(path)}:{line_of(path, mark)}"
