#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every relative link, and every path of this project named in `code`, exists: paths.py SOURCE.

In docs/architecture.md the check goes the other way too: each folder and each file of the two
halves' top folders is named there.
"""
import glob
import os
import re
import sys

SOURCE = os.path.realpath(sys.argv[1])
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
TOP = "preload|analyzer|format|scripts|tests|docs|\\.ci"


def anchors(text):
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def read(page):
    with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
        return file.read()


def broken_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        where = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(os.path.join(SOURCE, where)):
            yield f"{page}: link to {target}: no such file"
        elif anchor and where.endswith(".md") and anchor not in anchors(read(where)):
            yield f"{page}: link to {target}: no such heading"


def missing_paths(page, text):
    named = re.findall(rf"(?<![\w/.$])((?:{TOP})/[\w./*{{}},-]*)", text)
    for path in sorted(set(named)):
        path = path.rstrip(".,")
        alternatives = re.search(r"\{([^}]*)\}", path)
        for one in alternatives[1].split(",") if alternatives else [None]:
            wanted = path if one is None else path.replace(alternatives[0], one)
            if not glob.glob(os.path.join(SOURCE, wanted)):
                yield f"{page}: {wanted}: no such file"


def unnamed_folders(text):
    for top in ("preload", "analyzer", "tests"):
        for folder in sorted(os.listdir(os.path.join(SOURCE, top))):
            if os.path.isdir(os.path.join(SOURCE, top, folder)) and not folder.startswith(("_", ".")):
                if not re.search(rf"\b{folder}/", text):
                    yield f"docs/architecture.md: does not name {top}/{folder}/"


def main():
    pages = PAGES + sorted(os.path.relpath(page, SOURCE) for page in glob.glob(os.path.join(SOURCE, "docs", "*.md")))
    wrong = []
    for page in pages:
        text = read(page)
        wrong += [*broken_links(page, text), *missing_paths(page, text)]
    wrong += unnamed_folders(read("docs/architecture.md"))
    print("\n".join(wrong) or f"{len(pages)} pages, every link and path exists")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
