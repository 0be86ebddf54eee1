#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what `scripts/test all` saw to docs/validation/test-all.md: test_record.py ROOT RESULT."""
import datetime
import os
import subprocess
import sys


def main():
    root, result = sys.argv[1:]
    git = lambda *words: subprocess.run(["git", "-C", root, *words], stdout=subprocess.PIPE,
                                        text=True, check=False).stdout.strip()
    changed = " with changes that are not committed" if git("status", "--porcelain") else ""
    with open(result, encoding="utf-8") as file:
        lines = file.read().rstrip()
    today = datetime.date.today().isoformat()
    with open(os.path.join(root, "docs", "validation", "test-all.md"), "w", encoding="utf-8") as page:
        page.write("# The whole set of tests\n\nWhat `scripts/test all` said last, on "
                   f"{today}, on commit {git('rev-parse', '--short', 'HEAD')}{changed}, on "
                   f"{os.cpu_count()} cores:\n\n```\n{lines}\n```\n")


if __name__ == "__main__":
    main()
