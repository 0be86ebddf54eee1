#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.cuda.nvtx of the stock wheel under the preload: nvtx.py LIBTSCOPE TSCOPE-REPORT.

A training loop on the CPU marks its steps, phases and modules: the report must have them under the same names, and the
loop must run as without the preload.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment, run  # noqa: E402
from outcomes import SKIPPED, Skip, expect  # noqa: E402
from read_trace import ENUMS  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

STEPS = 12
PROGRAM = """
import os, subprocess, sys, time, torch
from torch.cuda import nvtx
try:
    nvtx.range_push("probe"); nvtx.range_pop()
except RuntimeError:
    raise SystemExit(77)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.ones(1, requires_grad=True).sum().backward()
levels = []
for step in range(%d):
    levels.append(nvtx.range_push(f"iteration {step}"))
    with nvtx.range("data loading"):
        batch = torch.randn(16, 32)
    nvtx.range_push("forward")
    for i, layer in enumerate(model):
        nvtx.range_push(f"layer.{i}")
        batch = layer(batch)
        nvtx.range_pop()
    loss = batch.square().mean()
    nvtx.range_pop()
    with nvtx.range("backward"):
        loss.backward()
    with nvtx.range("optimizer step"):
        optimizer.step()
    optimizer.zero_grad()
    levels.append(nvtx.range_pop())
handle = nvtx.range_start("evaluation")
time.sleep(0.02)
nvtx.range_end(handle)
nvtx.mark("done")
names = [name for name in os.environ if "NVTX" in name]
child = subprocess.run(["env"], capture_output=True, text=True).stdout
print(loss.item(), sorted(set(levels)), names, "NVTX" in child)
""" % STEPS


def printed(python, library, directory):
    done = run(python, "-c", PROGRAM, ok=(0, SKIPPED), env=observed_environment(library, directory, OMP_NUM_THREADS="1"))
    if done.returncode == SKIPPED:
        raise Skip("this PyTorch is built without NVTX")
    return done.stdout


def check_trace(trace):
    expect([step.number for step in trace.records["StepRange"]] == list(range(STEPS)), "steps")
    phases = ENUMS["PHASES"]
    for name, text in (("DATA", "data loading"), ("FORWARD", "forward"), ("BACKWARD", "backward"),
                       ("OPTIMIZER", "optimizer step")):
        marked = [phase for phase in trace.records["Phase"]
                  if phase.tag == phases[name] and trace.strings[phase.name] == text]
        expect(len(marked) == STEPS, f"{len(marked)} {text}")
    ranges = trace.records["Range"]
    layers = [one for one in ranges if trace.strings[one.name] == "layer"]
    expect([one.number for one in layers] == [0, 1, 2] * STEPS, "modules, by their number")
    free = [one for one in ranges if one.tag == ENUMS["RANGES"]["FREE"]]
    expect(len(free) == 1 and trace.strings[free[0].name] == "evaluation" and
           trace.seconds(free[0].dur) >= 0.02, f"{free}")
    marks = [trace.strings[one.name] for one in ranges if one.tag == ENUMS["RANGES"]["MARK"]]
    expect(marks == ["done"], f"{marks}")


def check_report(found):
    expect(found["steps"]["method"] == "NVTX ranges" and found["steps"]["count"] == STEPS,
           f"{found['steps']}")
    ranges = {one["name"]: one for one in found["ranges"]}
    expect(ranges["layer"]["count"] == 3 * STEPS and ranges["evaluation"]["sum_ms"] >= 20,
           f"{found['ranges']}")
    for phase in ("data_ms", "forward_ms", "backward_ms", "optimizer_ms"):
        expect(found["phases"][phase] > 0, f"{found['phases']}")


def main():
    library, tool = sys.argv[1:3]
    python = python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-nvtx-") as scratch:
        bare = printed(python, None, scratch)
        expect(printed(python, library, scratch) == bare, "the same without and with the shim")
        trace, = read_trace.read_all(scratch)
        check_trace(trace)
        check_report(report_on(tool, scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
