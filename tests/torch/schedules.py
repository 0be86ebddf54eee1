#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Schedules of torch.distributed.pipelining over gloo, with a slow part of the model: how many stages, micro-batches and
chunks there are, and which stage is slow, at which line. Where threads have no core, messages of 256 bytes take as long as the
work of a stage: a slow stage that is worth less than the 5 % from which on the report names stages is not named then.

    schedules.py --build BUILD [SCHEDULE...]
"""
from torch_job import TorchJob
from findings import findings_of
from outcomes import Skip, expect
from repeated import main

# How many chunks a stage has.
SCHEDULES = {"ScheduleGPipe": 1, "Schedule1F1B": 1, "ScheduleInterleaved1F1B": 2, "ScheduleLoopedBFS": 2,
             "ScheduleInterleavedZeroBubble": 2, "ScheduleZBVZeroBubble": 2, "ScheduleDualPipeV": 2}
MICRO_BATCHES, STAGES, SLOW_STAGE = 4, 2, 1
WORTH_NAMING = 0.05


def judge(name, document):
    pipeline = document["pipeline"]
    print(name, {key: pipeline[key] for key in ("stages", "microbatches", "chunks", "bubble", "inherent")})
    expect((pipeline["stages"], pipeline["microbatches"], pipeline["chunks"]) == (STAGES, MICRO_BATCHES, SCHEDULES[name]), pipeline)
    found = findings_of(document, "DIST.PIPELINE_BUBBLE")
    if found and not found[0]["ranks"] and findings_of(document, "HOST.OVERSUBSCRIBED"):
        work = [stage["work_ms"] for stage in pipeline["by_stage"]]
        print(f"{name}: no stage is named: {work} ms of work")
        saves = {row["change"]: row["saving_fraction"] for row in document["critical_path"]["what_if"]}
        expect(saves[f"stage {SLOW_STAGE} as fast as the others"] < WORTH_NAMING, f"{work} {saves}")
        return
    expect(len(found) == 1 and found[0]["ranks"] == [SLOW_STAGE], f"{name}: {document['findings']}")
    expect("schedule_rank.py:" in found[0]["title"] and "(Part.forward" in found[0]["action"], found[0])


def check(name, build, folder):
    job = TorchJob(build, folder, "job")
    if "no such schedule" in job.run(name, script="schedule_rank.py", ranks=STAGES):
        raise Skip(f"this PyTorch has no {name}")
    judge(name, job.report())


if __name__ == "__main__":
    main(SCHEDULES, check)
