#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A CUPTI client that finds CUPTI by name gets the same records with and without the shim, and the
trace says when the shim left CUPTI to the client.

    check_cupti_client.py LIBTSCOPE TSCOPE-REPORT PROGRAM
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from observed import clean_environment, json_of, observed_environment, run  # noqa: E402


def main():
    libtscope, report, program = sys.argv[1:]
    bare = run(program, env=clean_environment()).stdout
    with tempfile.TemporaryDirectory(prefix="tscope-client-") as directory:
        shimmed = run(program, env=observed_environment(libtscope, directory)).stdout
        quality = json_of(report, directory)["quality"]
    print(bare, shimmed, json.dumps(quality, indent=1), sep="\n")
    wrong = bare != shimmed or "kernels 7, others 0, unfinished 0, foreign buffers 0" not in bare
    # left to the client, used again, left to the client, and used again if there was time
    changes = "changed 4 times" in quality["gpu_timing"]
    wrong |= not changes and "changed 3 times" not in quality["gpu_timing"]
    # of 36 kernels, 5 have no times and 7 and 13 were the client's; the report must say that 11 are left
    share = quality["coverage"]["kernel times"]["share"]
    wrong |= not 11 / 36 - 0.01 <= share <= 16 / 36 + 0.01
    print("as it should" if not wrong else "<-- wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
