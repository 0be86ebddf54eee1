#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy 14 with the project's .clang-tidy finds nothing in the shim and the analyzer: tidy.py
SOURCE BUILD."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

from tree import Skip, below

AT_ONCE = 8


def clang_tidy():
    for name in ("clang-tidy-14", "clang-tidy"):
        path = shutil.which(name)
        if path and re.search(r"version 14\.", subprocess.run([path, "--version"], stdout=subprocess.PIPE,
                                                              text=True, check=False).stdout):
            return path
    return None


def main():
    source, build = sys.argv[1:]
    tool = clang_tidy()
    if not tool:
        raise Skip("no clang-tidy 14 here (scripts/setup test)")
    if not os.path.exists(os.path.join(build, "compile_commands.json")):
        raise Skip("the build has no compile_commands.json")
    files = sorted(os.path.join(source, name) for half in ("preload", "analyzer", "format") for name in below(source, half, ".c"))
    groups = [files[i:i + AT_ONCE] for i in range(0, len(files), AT_ONCE)]

    def look(group):
        said = subprocess.run([tool, "-p", build, "--quiet", *group], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False).stdout
        # A build with werror turns clang's own warnings into errors; they are not checked here.
        return re.findall(r"^.*(?:warning|error):.*\[(?!clang-diagnostic)[\w.,-]+\]$", said, re.M)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = sorted({line for lines in pool.map(look, groups) for line in lines})
    print("\n".join(found))
    print(f"{len(files)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
