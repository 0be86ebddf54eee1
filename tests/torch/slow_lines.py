#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch jobs over gloo with a slow line, or with a line that keeps memory. The line must be named by the finding
about their input, about the rank that keeps the others waiting, or about growing memory, and by tscope-stacks while
they run; for a rank that keeps the others waiting, by tscope-top too.

    slow_lines.py --build BUILD [--repeat N] [SCENARIO...]
    slow_lines.py --list
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from built import built  # noqa: E402
from findings import findings_of  # noqa: E402
from marks import place_of  # noqa: E402
from observed import json_so_far  # noqa: E402
from outcomes import expect  # noqa: E402
from processes import children_of  # noqa: E402
from repeated import main  # noqa: E402
from standin_job import StandinJob  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

RANKS, CULPRIT, STEPS = 3, 1, 120
JOB = os.path.join(HERE, "jobs", "slow_lines_job.py")
LIBRARY = os.path.join(HERE, "jobs", "site-packages", "fitter", "loop.py")

# `line` is a mark in slow_lines_job.py, or in the file that is named.
SCENARIOS = {
    "input": {"finding": "TIMING.DATALOADER_BOUND", "line": "the decoder"},
    "workers": {"finding": "TIMING.DATALOADER_BOUND", "line": "the decoder"},
    "straggling-input": {"finding": "DIST.STRAGGLER", "line": "the decoder", "rank": CULPRIT},
    "straggling-loop": {"finding": "DIST.STRAGGLER", "line": "the loop", "rank": CULPRIT},
    # One line of the program calls a library that trains: a line of that library is slow.
    "straggling-library": {"finding": "DIST.STRAGGLER", "line": "the library's loop", "rank": CULPRIT,
                           "file": LIBRARY},
    # This line takes no time, so it cannot be seen while the job runs.
    "leak": {"finding": "MEMORY.GROWTH", "line": "the leak", "live": False},
    # Batches of workers come in shared memory, whose allocator says that nothing is allocated.
    "leak-beside-workers": {"finding": "MEMORY.GROWTH", "line": "the leak", "live": False},
}


def shown_place(scenario):
    """The last two names of the file, as installed packages are shown, or the job's alone."""
    path = scenario.get("file", JOB)
    return ("" if path == JOB else path.split("/")[-2] + "/") + place_of(path, scenario["line"])


def shown(build, traces, ranks, place):
    """Whether tscope-stacks shows the line, of the run or of one of its processes, which may be workers of data loaders."""
    program = built(build, "tscope-stacks")
    for subject in [traces, *(str(pid) for rank in ranks for pid in (rank.pid, *children_of(rank.pid)))]:
        said = subprocess.run([program, subject], capture_output=True, check=False, text=True).stdout
        if place in said:
            return True
    return False


def late_at(build, traces):
    """By rank, what tscope-top says of the ranks that are late."""
    program = built(build, "tscope-top")
    said = json_so_far(program, "--once", traces) or {"ranks": []}
    return {rank["rank"]: rank["late_at"] for rank in said["ranks"] if rank["late_at"]}


def run(name, build, folder, place):
    traces = os.path.join(folder, "traces")
    command = [python_or_skip(), JOB, name, str(CULPRIT), str(STEPS), os.path.join(folder, "store")]
    job = StandinJob(build, folder, command=command, run="end", ranks=RANKS, stderr=None, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    ranks = job.ranks
    try:
        seen, late = not SCENARIOS[name].get("live", True), {}
        wanted = SCENARIOS[name].get("rank")
        while (not seen or (wanted is not None and not late)) and ranks[CULPRIT].poll() is None:
            time.sleep(0.2)
            seen = seen or shown(build, traces, ranks, place.split("/")[-1])
            late = late_at(build, traces) if wanted is not None else {}
        expect(not any(job.wait(200)), "a rank failed")
        expect(seen, f"while it runs: {place}")
        expect(wanted is None or (list(late) == [wanted] and place in late[wanted]), f"tscope-top: {late}")
    finally:
        job.end()


def check(name, build, folder):
    expected = SCENARIOS[name]
    place = shown_place(expected)
    run(name, build, folder, place)
    program = built(build, "tscope-report")
    document = report_on(program, os.path.join(folder, "traces"))
    found = findings_of(document, expected["finding"])
    expect(found, [f["title"] for f in document["findings"]])
    expect(place in found[0]["title"], found[0]["title"], found[0]["evidence"])
    expect("rank" not in expected or found[0]["ranks"] == [expected["rank"]], found[0]["ranks"])
    expect("rank" not in expected or found[0]["action"].startswith("Look at ") and place in found[0]["action"], found[0]["action"])
    if not expected.get("live", True):
        return
    rows = [row for row in document["lines"]["lines"] if row["place"].endswith(place)]
    expect(rows and (rows[0]["host_ms"] > 0 or rows[0]["worker_ms"] > 0), rows)


if __name__ == "__main__":
    main(SCENARIOS, check)
