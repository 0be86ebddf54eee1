#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cuts the examples out of docs/adding-a-hook.md: hooks_page.py PAGE HEADER

The header gets PAGE_HOOKS(HOOK), the lines that the page would add to a registry, and
PAGE_RECORDERS, the recorders that it shows, to be expanded once.
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
