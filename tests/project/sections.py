#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Findings and panels name sections of the one table: sections.py ROOT. Each section named in the tables of findings, and in
a panel of the page, is one of sections.def; and each section of the report has a panel."""
import re
import sys

from tree import below, text_of, without_comments


def main():
    def read(path):
        return without_comments(text_of(sys.argv[1], path))

    findings = "analyzer/analyses/findings/"
    judged = set(re.findall(r"\bIN\((\w+)\)", read(findings + "findings.def") + read(findings + "diff_findings.def")))
    sections = set(re.findall(r"\bS\((\w+), \"", read("analyzer/report/sections.def")))
    panels = set()
    for path in below(sys.argv[1], "analyzer/report/html/script", ".js"):
        for listed in re.findall(r"^\s*sections: \[(.*?)\]", read(path), re.M | re.S):
            panels |= set(re.findall(r"'(\w+)'", listed))
    assert len(judged) > 15 and len(panels) > 15 and len(sections) > 25, (judged, panels, sections)
    wrong = [f"{name}: a finding names it, and it is no section" for name in sorted(judged - sections)]
    wrong += [f"{name}: a panel names it, and it is no section" for name in sorted(panels - sections)]
    wrong += [f"{name}: no panel of the page shows it" for name in sorted(sections - panels)]
    print("\n".join(wrong) or f"{len(sections)} sections, each in a panel")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
