#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every C file is formatted by clang-format 14 with the project's .clang-format. What clang-format does not check:
sizeof has parentheses, and no comment is a line of dashes; the larger of two values and the length of an array are
asked for in one way, so is a number in a text, in the analyzer also the beginning of a text and the members of a collective. (The stand-ins and the programs of tests/hazards
are what the product meets; of these only the first two rules hold.) format.py SOURCE."""
import re
import subprocess
import sys

from tree import Skip, in_git, text_of

VERSION = "14"
RULES = {"sizeof without parentheses": re.compile(r"\bsizeof [^(]"),
         "a comment that is a line": re.compile(r"/\* ?[-=*]{3,}(?!\w)")}
VALUE = r"([\w.\[\]]+(?:->[\w.\[\]]+)*)"
RULES_OF_PRODUCT = {
    "MIN() or MAX() of format/values.h":
        re.compile(rf"(?<!&& )(?<!\|\| )(?<![.>])\b{VALUE} [<>]=? {VALUE} \? (?:\1 : \2|\2 : \1)(?=[;,)])"),
    "LENGTH_OF() of format/values.h": re.compile(r"\bsizeof\(([\w.>-]+)\) / sizeof\((?:\*\1|\1\[0\])\)")}
NUMBER = "leading_number() of format/text_parts.h"
RULES_OF_SHIM = {NUMBER: re.compile(r"\bato(?:i|l|ll)\(|\bstrtou?ll?\([^;\n]*, NULL, 10\)")}
RULES_OF_ANALYZER = {
    "text_starts_with() of base/texts.h": re.compile(r"\bstrncmp\([^,\n]+, \"[^\"\n]*\", \d+\)"),
    NUMBER: re.compile(r"\b(?:strtou?ll?|ato(?:i|l|ll))\("),
    "members_of() of model/model.h": re.compile(r"(?<!return &model->)\barrivals\[[^\]\n]*first_arrival")}


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        try:
            said = subprocess.run([name, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if re.search(rf"version {VERSION}\.", said):
            return name
    return None


def rules_of(name):
    of_product = {} if name.startswith(("tests/standins/", "tests/hazards/")) else RULES_OF_PRODUCT
    of_half = (RULES_OF_ANALYZER if name.startswith("analyzer/") else {} if name.startswith("tests/") else RULES_OF_SHIM)
    return {**RULES, **of_product, **of_half}


def main():
    source = sys.argv[1]
    tool = clang_format()
    if not tool:
        raise Skip(f"no clang-format {VERSION} here (scripts/setup test)")
    files = in_git(source, "*.c", "*.h")
    said = subprocess.run([tool, "-n", *files], cwd=source, stderr=subprocess.PIPE, text=True, check=False).stderr
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", said, re.M)))
    for name in wrong:
        print(f"{name}: clang-format -i changes it")
    against = [(name, rule) for name in files for rule, pattern in rules_of(name).items()
               if pattern.search(text_of(source, name))]
    for name, rule in against:
        print(f"{name}: {rule}")
    print(f"{len(files)} files, {len(wrong)} not formatted, {len(against)} against another rule")
    return 1 if wrong or against else 0


if __name__ == "__main__":
    sys.exit(main())
