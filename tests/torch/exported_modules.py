#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/export_modules.py with the stock wheel: exported_modules.py SCRIPT TSCOPE-REPORT.

Compares the report on its document with PyTorch's own planner, and with counts made by hand.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import json_of, run  # noqa: E402
from outcomes import Skip, expect  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

JOB = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)
    def forward(self, x):
        return x + self.down(self.act(self.up(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(64, 100)
    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
def build():
    return Net(), torch.randint(0, 100, (8, 16)), lambda out: out.logsumexp(-1).mean()
"""

PLANNER = """
import json, sys
from torch.distributed._tools.ilp_utils import get_peak_memory_runtime_baseline, parse_module_info
with open(sys.argv[1]) as file:
    print(json.dumps(get_peak_memory_runtime_baseline(parse_module_info(json.load(file)))))
"""


def main():
    script, program = sys.argv[1:3]
    python = python_or_skip()
    if subprocess.run([python, "-c", "import torch.distributed._tools.mem_tracker"],
                      capture_output=True).returncode:
        raise Skip("this PyTorch has no memory tracker (2.5 or newer has)")
    with tempfile.TemporaryDirectory(prefix="tscope-modules-") as scratch:
        job, out = os.path.join(scratch, "job.py"), os.path.join(scratch, "modules.json")
        with open(job, "w", encoding="utf-8") as file:
            file.write(JOB)
        run(python, script, job + ":build", "-o", out)
        modules = json_of(program, out)["modules"]
        tree = {row["name"]: row for row in modules["tree"]}
        expect(modules["root"] == "Net" and modules["count"] == 15, f"{list(tree)}")
        expect(tree["Net.layers.1.up"]["parameter_bytes"] == 4 * (64 * 256 + 256), "a layer's parameters")
        expect(tree["Net.layers.1"]["parameter_bytes"] == 4 * (64 * 256 + 256 + 256 * 64 + 64), "a block's")
        expect(tree["Net.layers.1"]["activation_bytes"] == 4 * 2 * 8 * 16 * 256, "what a block keeps")
        expect(tree["Net.layers.1.up"]["parent"] == "Net.layers.1" and
               tree["Net.layers.1"]["parent"] == "Net", "the tree")
        expect(modules["parameter_bytes"] == 4 * (100 * 64 + 3 * (64 * 256 + 256 + 256 * 64 + 64) + 64 * 100 + 100),
               "the model's parameters")
        try:
            peak, milliseconds = json.loads(run(python, "-c", PLANNER, out).stdout)
        except AssertionError as error:
            if "No module named" not in str(error):
                raise
            print(f"PyTorch's planner is not there to compare with: {str(error).splitlines()[-1]}")
        else:
            expect(modules["plain_peak_bytes"] == peak, f"{modules['plain_peak_bytes']} {peak}")
            expect(abs(modules["plain_time_ms"] - milliseconds) < 1e-6 * milliseconds, "time")
        for name, row in tree.items():
            expect(row["forward_ms"] > 0 and row["backward_ms"] > 0, f"times of {name}")
            expect(row["forward_ms"] <= modules["forward_ms"], f"{name} lies inside the model")
        return 0


if __name__ == "__main__":
    sys.exit(main())
