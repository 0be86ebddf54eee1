#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Extracts the examples from docs/adding-a-hook.md: hooks_page.py PAGE HEADER

It writes PAGE_HOOKS(HOOK), the lines that the page adds to a registry, and PAGE_RECORDERS, the recorders on the page,
which are to be expanded once, into HEADER.
"""
import re
import sys


def blocks(page, kind):
    return re.findall(rf"^```c {kind}\n(.*?)^```$", page, re.S | re.M)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    registry, recorders = blocks(page, "registry"), blocks(page, "recorder")
    if len(registry) != 2 or len(recorders) != 1:
        print(f"{sys.argv[1]}: expected two registry lines and a recorder, "
              f"found {len(registry)} and {len(recorders)}", file=sys.stderr)
        return 1
    lines = "".join(registry).rstrip().replace("\n", " \\\n")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f"#define PAGE_HOOKS(HOOK) \\\n{lines}\n"
                   f"#ifdef PAGE_RECORDERS\n{recorders[0]}#endif\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
