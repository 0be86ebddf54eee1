#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stock PyTorch jobs on gloo that hang, under the preload: torch_hang.py --build BUILD [FAULT...]. The
report names the rank that did something else, while the job hangs and after it was killed."""
import os
import pickle
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from built import built  # noqa: E402
from findings import ranks_of  # noqa: E402
from observed import json_so_far  # noqa: E402
from outcomes import expect, wait_until  # noqa: E402
from repeated import main  # noqa: E402
from standin_job import StandinJob  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

RANKS = 3


def hang(document):
    found = ranks_of(document, "DIST.HANG") if document else []
    return found[0] if found else None


def check(fault, build, folder):
    program = built(build, "tscope-report")
    job = StandinJob(build, folder, command=[python_or_skip(), os.path.join(HERE, "jobs", "hanging_gloo.py"),
                                      os.path.join(folder, "store"), fault],
              run="hang", ranks=RANKS, together=True, OMP_NUM_THREADS="1")

    def told():
        document = json_so_far(program, job.traces)
        return document if hang(document) else None
    try:
        document = wait_until("the hang is reported", told, each=0.5)
    finally:
        job.end()
    for when, one in (("while it hangs", document), ("after", report_on(program, job.traces))):
        expect(hang(one) == [1], f"{when}: {hang(one)}, {one['collective_check']}")
    beside = json_so_far(program, job.traces, *empty_dumps(folder))
    expect(hang(beside) == [1], f"with dumps that have no calls: {hang(beside)}")


def empty_dumps(folder):
    """As PyTorch 2.11 writes them of messages over gloo."""
    for rank in range(RANKS):
        path = os.path.join(folder, f"nccl_trace_rank_{rank}")
        with open(path, "wb") as file:
            pickle.dump({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": []}, file)
        yield path


if __name__ == "__main__":
    main(["sleep", "other"], check)
