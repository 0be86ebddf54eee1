#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rows of scripts/gpu-check about the GPT (rows_gpt.py), on a training that ran on a real GPU and was recorded:
recorded.py TSCOPE-REPORT RECORDING.tar.xz.

A recording has the traces and what the program printed: its own times, PyTorch's figures, operations in closed form.
`gpt.py fused` and `gpt.py graphed` on an H100 (driver 580, CUDA 13.0, PyTorch 2.11), 2026-11-26, beside other programs on
the same GPU."""
import json
import os
import sys
import tarfile
import tempfile
import types

import rows_gpt
from machine import Failed
from observed import json_of

ROWS = {"fused": (rows_gpt.gpt_steps, rows_gpt.gpt_flops, rows_gpt.gpt_utilisation, rows_gpt.gpt_kernels,
                  rows_gpt.gpt_memory, rows_gpt.gpt_times_add_up, rows_gpt.gpt_findings),
        "graphed": (rows_gpt.gpt_graphed,)}
TIED = ("launch calls", "GEMMs", "kernel times", "ends of steps on the GPU")


class Recorded:
    """In place of a machine: the recorded run and reports on it."""
    real = True
    gpus = ["NVIDIA H100 80GB HBM3"]

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        with open(os.path.join(folder, "said.json"), encoding="utf-8") as file:
            self.said = json.load(file)

    def keep(self, name, run):
        pass

    def run(self, _script, variant, *_arguments, **_settings):
        if self.said["variant"] != variant:
            raise Failed(f"the recording is of {self.said['variant']}, not of {variant}")
        return types.SimpleNamespace(result=self.said, folder=os.path.join(self.folder, "traces"))

    def report(self, run, *options):
        return json_of(self.tool, run.folder, *options)


def main():
    tool, recording = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        with tarfile.open(recording) as archive:  # not every machine has the program xz
            archive.extractall(folder)
        machine = Recorded(tool, folder)
        variant = machine.said["variant"]
        rows_gpt.VARIANTS = (variant,)
        for row in ROWS[variant]:
            print(f"{row.__name__}: {row(machine)}")
        coverage = machine.report(machine.run("", variant))["quality"]["coverage"]
        for name in TIED:
            if coverage[name]["share"] != 1:
                raise Failed(f"{name}: {coverage[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
