#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Schedules of torch.distributed.pipelining over gloo, with a slow part of the model: how many stages, micro-batches and
chunks there are, and which stage is slow, at which line. Where threads have no core, messages of 256 bytes take as long as the
work of a stage: a slow stage that is worth less than the 5 % from which on the report names stages is not named then.

    schedules.py LIBTSCOPE TSCOPE-REPORT [SCHEDULE...]
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from outcomes import Skip, expect  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402
from training import Job  # noqa: E402

# How many chunks a stage has.
SCHEDULES = {"ScheduleGPipe": 1, "Schedule1F1B": 1, "ScheduleInterleaved1F1B": 2, "ScheduleLoopedBFS": 2,
             "ScheduleInterleavedZeroBubble": 2, "ScheduleZBVZeroBubble": 2, "ScheduleDualPipeV": 2}
MICRO_BATCHES, STAGES, SLOW_STAGE = 4, 2, 1
WORTH_NAMING = 0.05


def check(name, document):
    pipeline = document["pipeline"]
    print(name, {key: pipeline[key] for key in ("stages", "microbatches", "chunks", "bubble", "inherent")})
    expect((pipeline["stages"], pipeline["microbatches"], pipeline["chunks"]) == (STAGES, MICRO_BATCHES, SCHEDULES[name]), pipeline)
    found = [one for one in document["findings"] if one["id"] == "DIST.PIPELINE_BUBBLE"]
    if found and not found[0]["ranks"] and any(one["id"] == "HOST.OVERSUBSCRIBED" for one in document["findings"]):
        work = [stage["work_ms"] for stage in pipeline["by_stage"]]
        print(f"{name}: no stage is named: {work} ms of work")
        saves = {row["change"]: row["saving_fraction"] for row in document["critical_path"]["what_if"]}
        expect(saves[f"stage {SLOW_STAGE} as fast as the others"] < WORTH_NAMING, f"{work} {saves}")
        return
    expect(len(found) == 1 and found[0]["ranks"] == [SLOW_STAGE], f"{name}: {document['findings']}")
    expect("schedule_rank.py:" in found[0]["title"] and "(Part.forward" in found[0]["action"], found[0])


def main():
    library, report = sys.argv[1:3]
    python = python_or_skip()
    checked = 0
    for name in sys.argv[3:] or SCHEDULES:
        with tempfile.TemporaryDirectory(prefix="torch-schedules-") as scratch:
            job = Job(python, library, scratch, "job")
            if "no such schedule" in job.run(name, script="schedule_rank.py", ranks=STAGES):
                print(f"left out: this PyTorch has no {name}")
                continue
            check(name, report_on(report, job.directory))
            checked += 1
    if not checked:
        raise Skip("this PyTorch has none of the schedules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
