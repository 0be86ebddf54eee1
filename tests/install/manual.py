# SPDX-License-Identifier: MIT
"""The pages of the manual. Each program that `meson install` puts into bin has one."""
import os


def pages_of(source):
    return os.listdir(os.path.join(source, "docs", "man"))


def programs_of(source):
    programs = sorted(page.removesuffix(".1") for page in pages_of(source) if page.endswith(".1"))
    assert len(programs) >= 5, programs
    return programs


def check_each_starts(folder, source, run):
    """Without anything in its environment."""
    for program in programs_of(source):
        said = run(os.path.join(folder, program), "--version", env={})
        assert said.startswith(program + " "), said
