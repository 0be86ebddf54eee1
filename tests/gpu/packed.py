#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What scripts/gpu-check --pack packs can run where nothing else of the project is: packed.py SOURCE BUILD."""
import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(os.path.realpath, sys.argv[1:3])

with tempfile.TemporaryDirectory(prefix="tscope-packed-") as folder:
    package = os.path.join(folder, "package.tgz")
    subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "gpu-check"), "--pack", package, "--build", BUILD], check=True)
    subprocess.run(["tar", "-x", "-f", package, "-C", folder], check=True)
    program = os.path.join(folder, "tscope", "scripts", "gpu-check")
    said = subprocess.run([sys.executable, program, "--help"], check=True, capture_output=True, text=True, cwd="/").stdout
    assert "gpt_flops" in said, said
