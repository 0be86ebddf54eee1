#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stock PyTorch jobs on gloo that hang, under the preload: torch_hang.py LIBTSCOPE TSCOPE-REPORT. The
report names the rank that did something else, while the job hangs and after it was killed."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import training

RANKS = 3
DEADLINE_S = 60


def report(program, folder):
    done = subprocess.run([program, "--format", "json", folder], capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def hang(document):
    found = [f["ranks"] for f in document["findings"] if f["id"] == "DIST.HANG"] if document else []
    return found[0] if found else None


def run(python, library, program, fault, scratch):
    folder = os.path.join(scratch, fault)
    os.mkdir(folder)
    traces = os.path.join(folder, "traces")
    env = dict(os.environ, OMP_NUM_THREADS="1", TSCOPE_DIR=traces, TSCOPE_RUN="hang",
               LD_PRELOAD=library, WORLD_SIZE=str(RANKS))
    command = [python, os.path.join(training.HERE, "jobs", "hanging_gloo.py"),
               os.path.join(folder, "store"), fault]
    ranks = []
    for r in range(RANKS):
        ranks.append(subprocess.Popen(
            command, env={**env, "RANK": str(r), "LOCAL_RANK": str(r)}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.setpgid(0, ranks[0].pid if ranks else 0)))
    document = None
    try:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end and not hang(document):
            time.sleep(0.5)
            document = report(program, traces)
    finally:
        # All at once: if one dies alone, its peers get errors and do not hang any more.
        os.killpg(ranks[0].pid, signal.SIGKILL)
        for rank in ranks:
            rank.wait()
    for when, one in (("while it hangs", document), ("after", training.report_on(program, traces))):
        training.expect(hang(one) == [1], f"{fault}, {when}: {hang(one)}, {one['collective_check']}")
    return document["collective_check"]["suspects"][0]


def main():
    python = training.python_with_torch()
    if not python:
        print("skipped: no Python with PyTorch 2")
        return training.SKIPPED
    with tempfile.TemporaryDirectory(prefix="tscope-hang-") as scratch:
        for fault in ("sleep", "other"):
            suspect = run(python, *sys.argv[1:], fault, scratch)
            print(fault, "-", suspect["reason"], "-", suspect["evidence"])
    return 0


sys.exit(main())
