# SPDX-License-Identifier: MIT
"""EMULATOR is the prefix with which a test runs a program of the build. It is empty, except in a build for
another machine: then it is the command of the emulator (tests/meson.build).
"""
import os
import shlex

EMULATOR = shlex.split(os.environ.get("TSCOPE_EMULATOR", ""))
