#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs whose ranks each have the optimizer's state for some whole tensors: of tensors of very different size one rank
has most, is slow for that, and the report says so. Of even ones nobody's part is larger.

    parts.py --build BUILD [JOB...]
"""
from torch_job import TorchJob
from outcomes import expect
from repeated import main

LARGER = "Its part of what the ranks share is larger"


def check(name, build, folder):
    job = TorchJob(build, folder, name)
    job.run(name, script="parts_rank.py", ranks=3)
    document = job.report()
    told = [one for one in document["findings"] if LARGER in one["evidence"]]
    print(name, [(one["title"], one["evidence"]) for one in told])
    expect([one["ranks"] for one in told] == ([[0]] if name == "uneven" else []), document["findings"])
    expect(all(one["action"].startswith("Divide what the ranks share by size") for one in told), told)


if __name__ == "__main__":
    main(["uneven", "even"], check)
