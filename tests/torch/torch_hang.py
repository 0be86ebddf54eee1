#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stock PyTorch jobs on gloo that hang, under the preload: torch_hang.py LIBTSCOPE TSCOPE-REPORT. The
report names the rank that did something else, while the job hangs and after it was killed."""
import os
import pickle
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from observed import json_so_far, observed_environment  # noqa: E402
from outcomes import expect, wait_until  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

RANKS = 3


def hang(document):
    found = [f["ranks"] for f in document["findings"] if f["id"] == "DIST.HANG"] if document else []
    return found[0] if found else None


def run(python, library, program, fault, scratch):
    folder = os.path.join(scratch, fault)
    os.mkdir(folder)
    traces = os.path.join(folder, "traces")
    env = observed_environment(library, traces, OMP_NUM_THREADS="1", TSCOPE_RUN="hang", WORLD_SIZE=str(RANKS))
    command = [python, os.path.join(HERE, "jobs", "hanging_gloo.py"),
               os.path.join(folder, "store"), fault]
    ranks = []
    for r in range(RANKS):
        ranks.append(subprocess.Popen(
            command, env={**env, "RANK": str(r), "LOCAL_RANK": str(r)}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.setpgid(0, ranks[0].pid if ranks else 0)))

    def told():
        document = json_so_far(program, traces)
        return document if hang(document) else None
    try:
        document = wait_until("the hang is reported", told, each=0.5)
    finally:
        # All at once: if one dies alone, its peers get errors and do not hang any more.
        os.killpg(ranks[0].pid, signal.SIGKILL)
        for rank in ranks:
            rank.wait()
    for when, one in (("while it hangs", document), ("after", report_on(program, traces))):
        expect(hang(one) == [1], f"{fault}, {when}: {hang(one)}, {one['collective_check']}")
    beside = json_so_far(program, traces, *empty_dumps(folder))
    expect(hang(beside) == [1], f"{fault}, with dumps that have no calls: {hang(beside)}")
    return document["collective_check"]["suspects"][0]


def empty_dumps(folder):
    """As PyTorch 2.11 writes them of messages over gloo."""
    for rank in range(RANKS):
        path = os.path.join(folder, f"nccl_trace_rank_{rank}")
        with open(path, "wb") as file:
            pickle.dump({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": []}, file)
        yield path


def main():
    python = python_or_skip()
    with tempfile.TemporaryDirectory(prefix="tscope-hang-") as scratch:
        for fault in ("sleep", "other"):
            suspect = run(python, *sys.argv[1:], fault, scratch)
            print(fault, "-", suspect["reason"], "-", suspect["evidence"])
    return 0


sys.exit(main())
