#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A loaded library exports functions that start work and that tscope does not know: the report says so, and says
nothing of the sort of the libraries that it knows: check_unknown.py LIBTSCOPE REPORT TRAIN NEWER.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from observed import json_of, observed_environment, run  # noqa: E402


def findings(library, report, train, *more):
    with tempfile.TemporaryDirectory(prefix="standin-unknown-") as directory:
        run(train, "--ranks", "2", "--steps", "6", "--loss", "0", env=observed_environment(":".join([library, *more]), directory))
        return [one for one in json_of(report, directory)["findings"] if "does not know" in one["title"]]


def main():
    library, report, train, newer = map(os.path.abspath, sys.argv[1:5])
    none = findings(library, report, train)
    assert not none, none
    one, = findings(library, report, train, newer)
    print(one)
    assert one["title"] == "libnccl.so.9 has functions that tscope does not know", one
    assert "ncclAllShuffle" in one["evidence"] and "ncclCommSendAll" in one["evidence"], one
    assert "ncclCommAge" not in one["evidence"], one
    return 0


sys.exit(main())
