#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the page's scripts and style with a few rules: lint.py FOLDER [SOURCE...].

The rules are about what a page with hostile strings must never do (make markup or code from text, use the network),
about unused code, and about layout. node checks the syntax if it is installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys

LINE = 100
FORBIDDEN = {
    r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment":
        "takes markup out of text; use el() and svg()",
    r"\beval\b|new Function|setTimeout\(\s*['\"]": "runs text as code",
    r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\(": "asks the network",
    r"localStorage|sessionStorage|indexedDB|document\.cookie": "keeps something in the browser",
    r"setAttribute\(\s*['\"](style|on\w+)['\"]": "the page's policy forbids it; use css: and listeners",
    r"\bvar\s": "use const or let",
    r"[^=!]==[^=]|!=[^=]": "use === and !==",
    r"console\.": "says something to nobody",
    r"\bdebugger\b|TODO|FIXME|XXX": "is not finished",
}


def without_strings_and_comments(line):
    line = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", line)
    return re.sub(r"//.*", "", line)


def problems_of(path, text):
    if "SPDX-License-Identifier: MIT" not in text.split("\n", 1)[0]:
        yield f"{path}:1: no licence"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LINE and path.suffix == ".js":
            yield f"{path}:{number}: {len(line)} columns, {LINE} at most"
        if "\t" in line or line.rstrip() != line:
            yield f"{path}:{number}: tab, or blanks at the end"
        if path.suffix != ".js":
            continue
        code = without_strings_and_comments(line)
        for pattern, why in FORBIDDEN.items():
            if re.search(pattern, code):
                yield f"{path}:{number}: {why}: {line.strip()}"


def unused(scripts):
    """Top-level names that are used nowhere except in their definition."""
    everything = "\n".join(scripts.values())
    for path, text in scripts.items():
        for name in re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.M):
            if len(re.findall(rf"\b{name}\b", everything)) < 2:
                yield f"{path}: {name} is not used"


def unused_style(style, scripts, page):
    """Classes that no element has."""
    everything = "\n".join(scripts.values()) + page
    for name in sorted(set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"\{[^}]*\}", "{}", style)))):
        begin = name.split("-")[0]
        if not re.search(rf"\b{name}\b", everything) and f"'{begin}-'" not in everything:
            yield f"style.css: .{name} is not used"


def main():
    folder = pathlib.Path(sys.argv[1])
    scripts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("**/*.js"))}
    style_path, = folder.glob("*.css")
    page_path, = folder.glob("*.html")
    style, page = style_path.read_text(encoding="utf-8"), page_path.read_text(encoding="utf-8")
    found = [problem for path, text in scripts.items() for problem in problems_of(path, text)]
    found += problems_of(style_path, style)
    found += unused(scripts)
    sources = "".join(pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[2:])
    found += unused_style(style, scripts, page + sources)
    node = shutil.which("node")
    if not node:
        print("no node here: the syntax of the scripts is left to the tests in a browser")
    for path in scripts if node else []:
        done = subprocess.run([node, "--check", path], capture_output=True, text=True)
        if done.returncode:
            found.append(done.stderr)
    print("\n".join(found) if found else f"{len(scripts)} scripts, no problem")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
