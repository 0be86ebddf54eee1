#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HOST.SYNC names a line at which waiting for the GPU costs time, with its saving, and no other line: host_sync.py
--build BUILD.

PyTorch's CUDA wheel on the stand-ins runs waiting_job.py twice. In the first run the host waits for the loss of each
step, and after that the GPU is idle for as long as the op log of the stand-in says. In the second the host waits too,
but for the step before, and the GPU always has work. The saving in the first report must be the time by which the second
run is shorter.
"""
import os

from torch_job import HERE, CudaJob
from findings import findings_of
from marks import lines_of
from outcomes import expect
from repeated import main

STEPS, KERNEL_US, SKIPPED_STEPS = 60, 800, 5
LINES = lines_of(os.path.join(HERE, "jobs", "waiting_job.py"), "LINE ")
LOSS_BYTES = 4


def run(case, build, folder):
    job = CudaJob(build, folder, case)
    job.environment.update(RANK="0", STANDIN_KERNEL_US=str(KERNEL_US))
    expect(job.run(case, str(STEPS), script="waiting_job.py", ranks=0) == f"steps={STEPS}\n", "its output")
    document = job.report()
    expect(document["quality"]["coverage"]["kernel times"]["share"] == 1, f"{document['quality']}")
    return job, document


def after_losses(job):
    """From the log: how long the GPU was idle after the copy of each step's loss, in ms; mean."""
    ran = sorted((op for op in job.operations(0) if op["kind"] in ("kernel", "copy", "fill")), key=lambda op: op["start"])
    gaps = [later["start"] - op["end"] for op, later in zip(ran, ran[1:])
            if op["kind"] == "copy" and op["bytes"] == LOSS_BYTES]
    gaps = gaps[SKIPPED_STEPS:]
    return sum(gaps) / len(gaps) / 1e6


def row_of(document, number):
    found = [row for row in document["lines"]["lines"]
             if row["file"].endswith("waiting_job.py") and row["line"] == number]
    expect(len(found) == 1, f"line {number}: {document['lines']['lines']}")
    return found[0]


def check(costing, free):
    (job, document), (free_job, free_document) = costing, free
    wait, later = LINES["wait"], LINES["wait of the step before"]
    idle_ms, free_ms = after_losses(job), after_losses(free_job)
    row, free_row = row_of(document, wait), row_of(free_document, later)
    print(f"after the wait the GPU idled {idle_ms:.2f} ms (log), {row['idle_ms']:.2f} ms (report); "
          f"in the other job {free_ms:.2f} ms, {free_row['idle_ms']:.2f} ms, of a wait of {free_row['wait_ms']:.2f} ms")
    # The report counts from the moment when the host woke up, a little after the copy.
    expect(abs(row["idle_ms"] / idle_ms - 1) < 0.2, f"{idle_ms} ms: {row}")
    found = findings_of(document, "HOST.SYNC")
    expect(len(found) == 1 and f"waiting_job.py:{wait} " in found[0]["title"], f"{found}")
    steps = document["steps"]
    gained_ms = steps["median_ms"] - free_document["steps"]["median_ms"]
    saving_ms = 1e3 * found[0]["saving_s"] / (steps["count"] - steps["warmup_excluded"])
    print(f"{found[0]['title']}: saving {saving_ms:.2f} ms a step; without the wait a step takes {gained_ms:.2f} ms less")
    expect(0.7 * gained_ms < saving_ms < 1.15 * gained_ms, f"{saving_ms} ms, in truth {gained_ms} ms: {found}")
    # The host waits there for a long time, but this costs nothing.
    expect(free_row["wait_ms"] > 0.1 * free_document["steps"]["median_ms"], f"{free_row}")
    expect(not findings_of(free_document, "HOST.SYNC"), free_document["findings"])


if __name__ == "__main__":
    main(["host-sync"], lambda name, build, folder: check(*(run(case, build, folder) for case in ("costs", "costs-nothing"))))
