#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values with a table of names are compared by their enum, never by their text: meaning_by_text.py SOURCE.

Collects the words of every name table of the analyzer (words.def, findings, categories of kernels and of allocations,
roles of values). It fails if code of the analyzer compares a text with one of them, contains the id of a finding, or
looks for words in a text of a result for people (its reason, its evidence and so on)."""
import os
import re
import sys

from tree import in_git, text_of

# People write options and values of the environment as text; readers of files compare the contents of files.
READ_AS_TEXT = ("analyzer/import/", "analyzer/report/options.c", "analyzer/report/gate/gate_rules.c", "analyzer/report/backends.c", "analyzer/top/top_options.c")


# Members of results that are sentences for people: code that needs their meaning must use an enum next to them.
SENTENCES = r"(?:->|\.)(?:reason|evidence|what|words|why|category|cannot_tell|title|action)\b"


def tables(source, paths):
    """The words of the tables, and the ids of findings."""
    words, ids = set(), set()
    for path in paths:
        name = os.path.basename(path)
        text = text_of(source, path)
        if name == "words.def":
            words.update(re.findall(r'^WORD\(\w+, "([^"]+)"\)', text, re.M))
        elif name in ("categories.def", "allocation_category.h"):
            words.update(re.findall(r'\bC\(\w+, "([^"]+)"', text))
        elif name == "scalar_words.def":
            words.update(re.findall(r'\bR\(\w+, "([^"]+)"', text))
        elif name in ("findings.def", "diff_findings.def"):
            ids.update(".".join(pair) for pair in re.findall(r"\bF\((\w+), (\w+), ", text))
    return words, ids


def main():
    source = sys.argv[1]
    paths = in_git(source, "analyzer/*.c", "analyzer/*.h", "analyzer/*.def", "format/*.def")
    words, ids = tables(source, paths)
    if len(words) < 100 or len(ids) < 30:
        print(f"only {len(words)} words and {len(ids)} findings: the tables are not read any more")
        return 1
    wrong = 0
    for path in paths:
        if path.startswith(READ_AS_TEXT) or not path.endswith((".c", ".h")):
            continue
        text = text_of(source, path)
        for match in re.finditer(r'\bstrn?(?:case)?cmp\([^;{]*?"([^"]*)"', text):
            if match[1] in words | ids:
                wrong += 1
                print(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: compares with \"{match[1]}\": use its enum")
        for match in re.finditer(r'\bstr(?:str|casestr|n?(?:case)?cmp)\([^;{"]*?' + SENTENCES + r'[^;{"]*"[^"]+"', text):
            wrong += 1
            print(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: looks for words in a sentence: use an enum")
        for match in re.finditer(r'"([A-Z]+\.[A-Z_]+)"', text):
            if match[1] in ids:
                wrong += 1
                print(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: writes the id {match[1]}: use FINDING_…")
    print(f"{len(words)} words, {len(ids)} findings, {wrong} used as text")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
