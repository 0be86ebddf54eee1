#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of the code into documents and manual pages: doc_tables.py PRINT_TABLES [--check].

PRINT_TABLES is BUILD/tests/project/print_tables. In a document a table is between <!-- table: NAME --> and <!-- end of
table -->; in a manual page the same words are in comments of roff. Under a heading, the text before the rows is written
by hand and is kept. --check writes nothing, and fails if a page would change.
"""
import difflib
import os
import re
import subprocess
import sys

DOCS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "docs")
PAGES = {"configuration.md": ["variables"], "trace-format.md": ["records", "values"],
         "outputs/report-json.md": ["fields"], "inputs.md": ["inputs"], "hosts.md": ["hosts"], "findings.md": ["findings"],
         "man/tscope.7": ["settings"], "man/tscope-report.1": ["report-options"],
         "man/tscope-top.1": ["top-options"], "man/tscope-reduce.1": ["reduce-options"],
         "man/tscope-stacks.1": ["stacks-options"]}


def printed(program, table):
    return subprocess.run([program, table], stdout=subprocess.PIPE, text=True, check=True).stdout


def by_heading(text):
    """{heading's first words: its lines}, with "" for the lines before the first."""
    parts = {"": []}
    at = parts[""]
    for line in text.splitlines():
        if line.startswith("### "):
            at = parts.setdefault(re.match(r"### (`\w+`|.*)", line)[1], [])
        at.append(line)
    return parts


def with_text_of(old, new):
    """The new table, with the text that was written by hand below each heading of the old one."""
    kept = by_heading(old)
    whole = []
    for heading, lines in by_heading(new).items():
        rows = next((i for i, line in enumerate(lines) if line.startswith("|")), len(lines))
        own = [line for line in kept.get(heading, [])
               if heading and not line.startswith(("|", "### ")) and not re.match(r"\d+ bytes: ", line)]
        text = "\n".join(own).strip("\n")
        if text:
            head = "\n".join(lines[:rows]).rstrip("\n")
            lines = [head, *([""] if rows == 2 else []), *text.split("\n"), "", *lines[rows:]]
        whole += lines
    return "\n".join(whole).strip("\n")


def renewed(name, page, table, new):
    begin, end = f"<!-- table: {table} -->\n\n", "\n\n<!-- end of table -->"
    if name.startswith("man/"):
        begin, end = f'.\\" table: {table}\n', '\n.\\" end of table'
    found = re.search(f"({re.escape(begin)})(.*?)({re.escape(end)})", page, re.S)
    if not found:
        sys.exit(f"docs/{name} has no {begin.strip()} ... {end.strip()}")
    return page[:found.start(2)] + with_text_of(found[2], new) + page[found.end(2):]


def main():
    program, check = sys.argv[1], "--check" in sys.argv[2:]
    wrong = 0
    for name, tables in PAGES.items():
        path = os.path.join(DOCS, name)
        with open(path, encoding="utf-8") as file:
            old = file.read()
        page = old
        for table in tables:
            page = renewed(name, page, table, printed(program, table))
        if check:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), page.splitlines(True),
                                                       f"docs/{name}", "the code's tables", n=0))
            wrong += page != old
        elif page != old:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
            print(f"docs/{name} written")
    version = printed(program, "version").strip()
    with open(os.path.join(DOCS, "trace-format.md"), encoding="utf-8") as file:
        if f"\n| {version} | " not in file.read().partition("\n## Versions\n")[2]:
            print(f"docs/trace-format.md: version {version} is not under Versions")
            wrong += 1
    if check and wrong:
        print("These pages differ from the code's tables. Run scripts/doc_tables.py "
              "BUILD/tests/project/print_tables.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
