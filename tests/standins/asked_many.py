#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All ranks of a large job answer who asks for their stacks: asked_many.py BUILD [RANKS [TIMES]]. One rank hangs, the
others wait for it. Asked as from another host where that is possible, so that nothing is read from outside."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built  # noqa: E402
from outcomes import wait_until  # noqa: E402
from processes import as_on_another_host  # noqa: E402
from read_trace import paths_under  # noqa: E402
from standin_job import StandinJob  # noqa: E402

BUILD = os.path.realpath(sys.argv[1])
RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 64
TIMES = int(sys.argv[3]) if len(sys.argv) > 3 else 3


def ask(where, folder):
    program = built(BUILD, "tscope-stacks")
    done = subprocess.run([*where, program, folder], capture_output=True, text=True, check=True)
    answered = {int(rank) for rank in re.findall(r"^rank (\d+)  now  ", done.stdout, re.M)}
    assert answered == set(range(RANKS)), (sorted(set(range(RANKS)) - answered), done.stdout[-500:], done.stderr)


def main():
    elsewhere = as_on_another_host()
    with tempfile.TemporaryDirectory(prefix="tscope-many-") as folder:
        job = StandinJob(BUILD, folder, "--steps", "1000", "--layers", "1", "--fault", "1", "--fault-rank", "5", "--fault-step", "2",
                  ranks=RANKS)
        try:
            wait_until("the traces of all ranks", lambda: len(paths_under(job.traces)) == RANKS)
            assert all(rank.poll() is None for rank in job.ranks)
            for _ in range(TIMES):
                ask(elsewhere or [], job.traces)
        finally:
            job.end()
    print(f"{RANKS} ranks answered {TIMES} times" + ("" if elsewhere else "; no right to be another host"))


main()
