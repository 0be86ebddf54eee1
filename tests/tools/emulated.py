# SPDX-License-Identifier: MIT
"""How a test starts a program that was built, which in a cross build may be another machine's.

In such a build meson says in MESON_EXE_WRAPPER which command runs its programs.
"""
import os
import shlex

EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))


def command(program, *arguments):
    """The command that runs a program that was built, with its arguments."""
    return [*EMULATOR, program, *arguments]
