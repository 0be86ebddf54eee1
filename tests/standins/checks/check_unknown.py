#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A loaded library exports functions that start work and that tscope does not know: the report says so, and says
nothing of the sort of the libraries that it knows: check_unknown.py LIBTSCOPE REPORT TRAIN NEWER.
"""
import json
import os
import subprocess
import sys
import tempfile


def findings(library, report, train, *more):
    with tempfile.TemporaryDirectory(prefix="standin-unknown-") as directory:
        preload = ":".join([library, *more])
        subprocess.run([train, "--ranks", "2", "--steps", "6", "--loss", "0"], check=True, capture_output=True,
                       env={**os.environ, "LD_PRELOAD": preload, "TSCOPE_DIR": directory})
        done = subprocess.run([report, "--format", "json", directory], check=True, capture_output=True, text=True)
    return [one for one in json.loads(done.stdout)["findings"] if "does not know" in one["title"]]


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
