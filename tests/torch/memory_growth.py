#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training that keeps a tensor in each step, and one that does not: memory_growth.py LIBTSCOPE REPORT.

On the CPU, from tscope's own records. The report names the line that keeps the tensor. The loss is read from the output
of the program.
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from findings import findings_of, ids_of  # noqa: E402
from marks import line_of  # noqa: E402
from observed import observed_environment, run  # noqa: E402
from outcomes import expect  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

STEPS, FLOATS = 40, 500_000
SMALL_STEPS, SMALL_FLOATS = 1000, 20_000  # below 1 MiB, where only samples know the line
PROGRAM = """
import sys, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
optimizer, kept = torch.optim.AdamW(model.parameters(), lr=1e-3), []
for step in range(int(sys.argv[1])):
    x = torch.randn(64, 256)
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(torch.zeros(int(sys.argv[2])))  # KEPT
    print({"loss": loss.item(), "learning_rate": 1e-3})
"""


def report_of(python, library, program, folder, steps, floats):
    script = os.path.join(os.path.dirname(folder), "train.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    done = run(python, script, steps, floats, env=observed_environment(library, folder, TSCOPE_SCALARS="stdout"))
    printed = [json.loads(line.replace("'", '"'))["loss"] for line in done.stdout.splitlines()]
    return report_on(program, folder), printed


def main():
    library, program = sys.argv[1:3]
    python = python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-growth-") as scratch:
        for steps, floats, grows in ((STEPS, FLOATS, True), (STEPS, 1, False), (SMALL_STEPS, SMALL_FLOATS, True)):
            document, printed = report_of(python, library, program, os.path.join(scratch, str(floats)), steps, floats)
            memory, found = document["memory"], ids_of(document)
            expect(("MEMORY.GROWTH" in found) == grows, f"{floats}: {found}")
            if grows:
                expect(memory["growth_bytes_per_step"] == 4 * floats, f"{memory['growth_bytes_per_step']}")
                line = line_of(os.path.join(scratch, "train.py"), "KEPT")
                expect(memory["growth_source"].endswith(f"train.py:{line} (<module>)"), f"{memory['growth_source']}")
                title, = (f["title"] for f in findings_of(document, "MEMORY.GROWTH"))
                expect(f"train.py:{line}" in title, title)
                samples = memory["growth_samples"]
                expect(samples >= 5 if floats == SMALL_FLOATS else samples is None, f"{floats}: {samples} samples")
            categories = {row["category"] for row in memory["live_by_category"]}
            expect({"optimizer", "backward"} <= categories, f"{categories}")
            loss, = (row for row in document["convergence"]["series"] if row["role"] == "loss")
            expect(loss["values"] == steps and loss["best"] == float(f"{min(printed):.9g}"),
                   f"the loss as printed: {loss}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
