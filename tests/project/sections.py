#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The text, the page and JSON judge the same sections by the same findings: sections.py ROOT. The tables of findings name
the sections; each of them is a section of the text and belongs to a panel of the page, and each section of a panel is
judged by some finding: a panel without findings would always look well."""
import glob
import os
import re
import sys


def main():
    root = sys.argv[1]

    def read(*path):
        with open(os.path.join(root, "analyzer", *path), encoding="utf-8") as file:
            return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)

    findings = os.path.join("analyses", "findings")
    judged = set(re.findall(r"\bIN\((\w+)\)", read(findings, "findings.def") + read(findings, "diff_findings.def")))
    text = set(re.findall(r"\bS\((\w+)\)", read("report", "text", "section.h"))) - {"S", "name"}
    panels = set()
    for path in glob.glob(os.path.join(root, "analyzer", "report", "html", "script", "*.js")):
        for listed in re.findall(r"^\s*sections: \[(.*?)\]", read(os.path.relpath(path, os.path.join(root, "analyzer"))), re.M | re.S):
            panels |= set(re.findall(r"'(\w+)'", listed))
    assert len(judged) > 15 and len(panels) > 15, (judged, panels)
    wrong = [f"{name}: no section of the text" for name in sorted(judged - text)]
    wrong += [f"{name}: no panel of the page shows its findings" for name in sorted(judged - panels - {"findings"})]
    wrong += [f"{name}: a panel of the page that no finding judges" for name in sorted(panels - judged)]
    print("\n".join(wrong) or f"{len(judged)} sections, judged alike")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
