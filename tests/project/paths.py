#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every relative link exists, and every path of this project that is in `code` or that a program of tests/ and scripts/
builds: paths.py SOURCE. A program that begins with #! is executable.

In docs/architecture.md the opposite is checked too: it names each folder, and each file in the top folders of the two
halves. docs/validation/audit.md names files of tests and the cases in them: these exist.
"""
import glob
import os
import re
import sys

from tree import below, python_files, text_of

SOURCE = os.path.realpath(sys.argv[1])
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
TOP = "preload|analyzer|format|scripts|tests|docs|\\.ci"


def anchors(text):
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def read(page):
    return text_of(SOURCE, page)


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


def missing_tests(page, text):
    """Files of tests without their folder, and cases of tests: words of three parts or more."""
    files = glob.glob(os.path.join(SOURCE, "tests", "**", "*.*"), recursive=True)
    programs = [path for path in files if path.endswith((".c", ".py", ".build"))]
    words = set(re.findall(r"\w+", " ".join(read(path) for path in programs)))
    for file in set(re.findall(r"`([\w-]+\.(?:c|py))`", text)) - {os.path.basename(path) for path in files}:
        yield f"{page}: {file}: no such file in tests/"
    for case in set(re.findall(r"\b[a-z]+(?:_[a-z0-9]+){2,}\b", text)) - words:
        yield f"{page}: {case}: no such case in tests/"


def not_executable(program, text):
    if text.startswith("#!") and not os.access(os.path.join(SOURCE, program), os.X_OK):
        yield f"{program}: begins with #! and is not executable"


def missing_in_program(program, text):
    """Paths of the source tree that a Python program builds from string constants."""
    for joined in re.findall(r'join\((?:SOURCE|source|ROOT|root), ((?:"[^"\n]+"(?:, )?)+)\)', text):
        path = os.path.join(*re.findall(r'"([^"]+)"', joined))
        if re.match(rf"(?:{TOP})/", path) and not glob.glob(os.path.join(SOURCE, path)):
            yield f"{program}: {path}: no such file"


def unnamed_folders(text):
    for top in ("preload", "analyzer", "tests"):
        for folder in sorted(os.listdir(os.path.join(SOURCE, top))):
            if os.path.isdir(os.path.join(SOURCE, top, folder)) and not folder.startswith(("_", ".")):
                if not re.search(rf"\b{folder}/", text):
                    yield f"docs/architecture.md: does not name {top}/{folder}/"


def main():
    pages = PAGES + sorted(below(SOURCE, "docs", ".md"))
    programs = list(python_files(SOURCE))
    wrong = []
    for page in pages:
        text = read(page)
        wrong += [*broken_links(page, text), *missing_paths(page, text)]
    for program in programs:
        wrong += [*missing_in_program(program, read(program)), *not_executable(program, read(program))]
    audit = "docs/validation/audit.md"
    wrong += missing_tests(audit, read(audit))
    wrong += unnamed_folders(read("docs/architecture.md"))
    print("\n".join(wrong) or f"{len(pages)} pages and {len(programs)} programs, every link and path exists")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
