#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that run no optimizer: the report finds their steps by what comes again and again, and says so; where nothing
does, it finds none.

    unmarked.py --build BUILD [JOB...]
"""
from torch_job import CudaJob, TorchJob
from outcomes import expect
from repeated import main

# The job, where it runs, and how its steps are found; None: they are not.
JOBS = {"by-hand": ("by_hand", "cpu", "backward passes"), "accumulated": ("accumulated", "cpu", "backward passes"),
        "by-hand-cuda": ("by_hand", "cuda", "backward passes"), "inference": ("inference", "cuda", "repeated launches"),
        "answers": ("answers", "cuda", None)}
STEPS = 40


def judge(document, out, method):
    steps = document["steps"]
    if method is None:
        expect(steps["method"] == "none" and steps["count"] == 0, f"no steps: {steps}")
        return
    count, took_ms = map(float, out.split())
    expect(steps["method"] == method, f"found by {method}: {steps}")
    expect(abs(steps["count"] - count) <= 1, f"{count} steps: {steps}")
    # What a job that is not alone on its cores measures of itself is not exact either.
    expect(abs(steps["median_ms"] / took_ms - 1) < 0.15, f"{took_ms} ms: {steps}")


def check(name, build, folder):
    script, device, method = JOBS[name]
    job = (CudaJob if device == "cuda" else TorchJob)(build, folder, name)
    if device == "cuda":
        job.environment["RANK"] = "0"
    out = job.run(script, device, str(STEPS), script="unmarked_job.py", ranks=0)
    document = job.report()
    print(name, out.strip(), document["steps"]["method"], document["steps"]["count"], document["steps"]["median_ms"])
    judge(document, out, method)


if __name__ == "__main__":
    main(JOBS, check)
