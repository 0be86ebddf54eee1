#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The build targets that the tests of some suites need: test_targets.py FOLDER [--no-suite NAME] --suite NAME...

Prints the files for ninja, so that a folder with few tests is not built completely.
"""
import json
import os
import subprocess
import sys


def introspect(folder, what):
    return json.loads(subprocess.run(["meson", "introspect", folder, what], check=True,
                                     stdout=subprocess.PIPE).stdout)


def main():
    folder = sys.argv[1]
    chosen, left_out = ({sys.argv[i + 1] for i, word in enumerate(sys.argv) if word == option}
                        for option in ("--suite", "--no-suite"))
    wanted = set()
    for test in introspect(folder, "--tests"):
        suites = {suite.rpartition(":")[2] for suite in test["suite"]}
        if chosen & suites and not left_out & suites:
            wanted.update(test["depends"])
    files = [name for target in introspect(folder, "--targets") if target["id"] in wanted
             for name in target["filename"]]
    top = os.path.realpath(folder)
    print("\n".join(sorted(os.path.relpath(os.path.realpath(name), top) for name in files)))


if __name__ == "__main__":
    main()
