#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A CUPTI client that finds CUPTI by name gets the same records with and without the shim, and the
trace says when the shim left CUPTI to the client.

    check_cupti_client.py LIBTSCOPE TSCOPE-REPORT PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    libtscope, report, program = sys.argv[1:]
    env = {key: value for key, value in os.environ.items() if not key.startswith("TSCOPE")}
    bare = subprocess.run([program], env=env, stdout=subprocess.PIPE, check=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="tscope-client-") as directory:
        env.update({"LD_PRELOAD": libtscope, "TSCOPE_DIR": directory, "TSCOPE_RUN": "client"})
        shimmed = subprocess.run([program], env=env, stdout=subprocess.PIPE, check=True,
                                 text=True).stdout
        out = subprocess.run([report, "--format", "json", directory], stdout=subprocess.PIPE,
                             check=True).stdout
    quality = json.loads(out)["quality"]
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
