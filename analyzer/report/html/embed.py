#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes C of a page: embed.py NAME HEADER PAGE STYLE OUTPUT SCRIPT...

The C defines NAME_before_data and NAME_after_data, which HEADER declares.

The scripts become one, in the order given, in a function of their own. The page's security policy
names its style and its script by their hashes, so that nothing else runs: whatever the data hold.
"""
import base64
import hashlib
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_licence(text, begin):
    """The page says once under which licence it is."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith(begin) and "SPDX" in first else text


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def c_string(text):
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        escaped = escaped.replace("?", "\\?")  # no trigraphs
        lines.append("".join(c if c.isascii() else "".join(f"\\{byte:03o}" for byte in c.encode())
                             for c in escaped))
    return "\n".join(f'    "{line}"' for line in lines)


def main():
    name, header, page, style, output, *scripts = sys.argv[1:]
    style = without_licence(read(style), "/*")
    script = "(function () {\n'use strict';\n" + "\n".join(
        without_licence(read(path), "//") for path in scripts) + "})();\n"
    for text in (style, script):
        if "</" in text:
            sys.exit("embed.py: a style or script must not hold '</', which could end it")
    page = read(page)
    for mark, text in (("@STYLE_HASH@", hash_of(style)), ("@SCRIPT_HASH@", hash_of(script)),
                       ("@STYLE@", style), ("@SCRIPT@", script)):
        if page.count(mark) != 1:
            sys.exit(f"embed.py: the page must hold {mark} once")
        page = page.replace(mark, text)
    before, mark, after = page.partition("@DATA@")
    if not mark or "@DATA@" in after:
        sys.exit("embed.py: the page must hold @DATA@ once")
    with open(output, "w", encoding="ascii") as file:
        file.write('/* SPDX-License-Identifier: MIT\n *\n * Made by embed.py. */\n'
                   f'#include "{header}"\n\n'
                   f"const char {name}_before_data[] =\n{c_string(before)};\n"
                   f"const char {name}_after_data[] =\n{c_string(after)};\n")


if __name__ == "__main__":
    main()
