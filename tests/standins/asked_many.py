#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All ranks of a large job answer who asks for their stacks: asked_many.py BUILD [RANKS [TIMES]]. One rank hangs, the
others wait for it. Asked as from another host where that is possible, so that nothing is read from outside."""
import os
import re
import subprocess
import sys
import tempfile
import time

BUILD = os.path.realpath(sys.argv[1])
RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 64
TIMES = int(sys.argv[3]) if len(sys.argv) > 3 else 3
DEVICES = 8  # of a host
PATIENCE_S = 100
ELSEWHERE = ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"]


def start(folder, rank):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TSCOPE_", "LD_PRELOAD"))}
    command = [os.path.join(BUILD, "tests", "standins", "train"), "--steps", "1000", "--layers", "1", "--fault", "1",
               "--fault-rank", "5", "--fault-step", "2"]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL,
        env={**clean, "RANK": str(rank), "LOCAL_RANK": str(rank % DEVICES), "WORLD_SIZE": str(RANKS),
             "STANDIN_RENDEZVOUS": folder, "TSCOPE_DIR": folder, "TSCOPE_RUN": "run",
             "LD_PRELOAD": os.path.join(BUILD, "preload", "libtscope.so")})


def traces(folder):
    run = os.path.join(folder, "run")
    return [name for name in (os.listdir(run) if os.path.isdir(run) else []) if name.endswith(".tscope")]


def ask(where, folder):
    program = os.path.join(BUILD, "analyzer", "tscope-stacks")
    done = subprocess.run([*where, program, folder], capture_output=True, text=True, check=True)
    answered = {int(rank) for rank in re.findall(r"^rank (\d+)  now  ", done.stdout, re.M)}
    assert answered == set(range(RANKS)), (sorted(set(range(RANKS)) - answered), done.stdout[-500:], done.stderr)


def main():
    elsewhere = subprocess.run([*ELSEWHERE, "true"], capture_output=True, check=False).returncode == 0
    with tempfile.TemporaryDirectory(prefix="tscope-many-") as folder:
        jobs = [start(folder, rank) for rank in range(RANKS)]
        try:
            until = time.monotonic() + PATIENCE_S
            while len(traces(folder)) < RANKS:
                assert time.monotonic() < until and all(job.poll() is None for job in jobs), traces(folder)
                time.sleep(0.2)
            for _ in range(TIMES):
                ask(ELSEWHERE if elsewhere else [], folder)
        finally:
            for job in jobs:
                job.kill()
            for job in jobs:
                job.wait()
    print(f"{RANKS} ranks answered {TIMES} times" + ("" if elsewhere else "; no right to be another host"))


main()
