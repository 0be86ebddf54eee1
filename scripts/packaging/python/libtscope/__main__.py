# SPDX-License-Identifier: MIT
"""python -m libtscope COMMAND [ARGUMENT]...: the same as tscope COMMAND [ARGUMENT]..."""
import os
import signal
import sys

from libtscope import program

# Python ignores these signals; the job must not inherit that.
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execv(program("tscope"), ["tscope", *sys.argv[1:]])
