# SPDX-License-Identifier: MIT
"""EMULATOR is what a test puts in front of a program that was built: nothing, but in a build for
another machine the command that runs its programs (tests/meson.build).
"""
import os
import shlex

EMULATOR = shlex.split(os.environ.get("TSCOPE_EMULATOR", ""))
