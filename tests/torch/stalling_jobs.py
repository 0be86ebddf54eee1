#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch jobs over gloo that stall, each for a known reason: which line of which rank the report names after the
job was killed.

    stalling_jobs.py --build BUILD [--repeat N] [SCENARIO...]
    stalling_jobs.py --list
"""
import contextlib
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import observed  # noqa: E402
import read_trace  # noqa: E402
from built import built  # noqa: E402
from marks import line_of, place_of  # noqa: E402
from outcomes import expect, wait_until  # noqa: E402
from processes import WITHOUT_PTRACE  # noqa: E402
from repeated import main  # noqa: E402
from standin_job import StandinJob  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

RANKS, CULPRIT, STALL_S = 4, 2, 3
JOB = os.path.join(HERE, "jobs", "stalling_rank.py")
LIBRARY = os.path.join(HERE, "jobs", "site-packages", "fitter", "loop.py")

# What rank CULPRIT does instead of the next collective, and what the report says about it. `line` is a mark in
# stalling_rank.py, or in the library `file`, which the program calls.
SCENARIOS = {
    "checkpoint": {"what": "waits for data", "line": "the write", "function": "save"},
    "python-lock": {"what": "waits for a lock or an event", "line": "the second lock", "function": "update"},
    "gil": {"what": "waits for the GIL", "line": "the library", "function": "work_without_end"},
    "busy": {"what": "runs", "line": "the loop", "function": "spin"},
    "left-out": {"what": "sleeps", "line": "the nap", "function": "other_branch"},
    "file-lock": {"what": "waits for a lock or an event", "line": "the file lock", "function": "lock_checkpoint",
                  "says": "checkpoint.lock"},
    "device": {"what": "input or output", "line": "the child", "function": "wait_for_child", "says": "(D)"},
    # It cannot write anything itself.
    "stopped": {"what": "stopped", "line": "the stop", "function": "stopped", "says": "SIGSTOP", "silent": True},
    # As stragglers do, hangs name the library's line and where the program calls it.
    "library": {"what": "sleeps", "line": "the library's nap", "function": "Fitter.fit", "file": LIBRARY,
                "others": "the library's backward pass"},
    # Ctrl-C: the collective of the others fails when their peers end, so nothing is pending any more.
    "interrupted": {"job": "python-lock", "what": "waits for a lock or an event", "line": "the second lock",
                    "function": "update", "end": signal.SIGINT, "finding": "RUN.STALLED"},
}


def place_stalled(expected):
    return place_of(expected.get("file", JOB), expected["line"])


def stalled(folder):
    """Ranks whose stall still goes on and is recorded completely. They must have trained before, because on a busy
    machine the start of a job can look like a stall too."""
    found = set()
    for trace in read_trace.read_all(folder):
        last = trace.records["Stall"][-1] if trace.records["Stall"] else None
        ended = {end.stall for end in trace.records["StallEnd"]}
        trained = [phase for phase in trace.phases("OPTIMIZER") if last and phase.time < last.time]
        if trained and last.stall not in ended:
            found.add(trace.rank)
    return found


def is_seen_by_peers(folder):
    """Whether a rank has recorded that another process is stopped."""
    return any(chr(peer.tag) in "Tt" for trace in read_trace.read_all(folder) for peer in trace.records["PeerState"])


def end(job, how):
    """Other signals than SIGKILL go to one after the other, as from launchers."""
    if how != signal.SIGKILL:
        job.send(how)
        for rank in job.ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.wait(timeout=10)
    job.end()


def run(scenario, build, folder, look, how=signal.SIGKILL, silent=frozenset()):
    """Starts the ranks, waits until all except those in `silent` have recorded that they stall, calls `look`, and
    kills them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts in the background ignore it
    job = StandinJob(build, folder, command=[python_or_skip(), JOB, scenario, str(CULPRIT), os.path.join(folder, "store")], run="end",
              ranks=RANKS, together=True, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", TSCOPE_STALL=str(STALL_S))
    traces = job.traces

    def all_stall():
        expect(all(rank.poll() is None for rank in job.ranks), "a rank has ended")
        return len(stalled(traces) - silent) == RANKS - len(silent) and (not silent or is_seen_by_peers(traces))
    try:
        wait_until("all ranks stall", all_stall, each=0.5)
        look(traces)
    finally:
        end(job, how)
    return traces


def judge(expected, document, text):
    # If a peer dies first, the collective of the others fails and is not pending any more: the finding is
    # RUN.STALLED.
    wanted = [expected["finding"]] if "finding" in expected else ["DIST.HANG", "RUN.STALLED"]
    found = [f for f in document["findings"] if f["id"] in wanted]
    place = place_stalled(expected)
    expect(found and found[0]["ranks"] == [CULPRIT], "findings", found)
    expect(place in (found[0]["title"] + found[0]["evidence"]), found[0])
    ranks = {rank["rank"]: rank for rank in document["stalls"]["ranks"]}
    expect(set(ranks) == set(range(RANKS)), "ranks", sorted(ranks))
    expect(ranks[CULPRIT]["what"] == expected["what"], ranks[CULPRIT])
    expect(expected["function"] in ranks[CULPRIT]["words"] or ranks[CULPRIT]["function"] == expected["function"],
           ranks[CULPRIT])
    expect(place in ranks[CULPRIT]["words"], place, ranks[CULPRIT]["words"])
    expect(expected.get("says", "") in ranks[CULPRIT]["words"], ranks[CULPRIT]["words"])
    if "file" in expected:
        call = f"{place_of(JOB, 'the call of the library')} in train_in_library"
        expect(all(said["loop"] == call and f", called from {call}" in said["words"] for said in ranks.values()), ranks)
    others = line_of(expected.get("file", JOB), expected.get("others", "the collective"))
    for rank, said in ranks.items():
        expect(rank == CULPRIT or said["line"] == others, said)
        expect(rank == CULPRIT or found[0]["id"] != "DIST.HANG" or said["what"] == "in a collective", said)
    leaves = [node for node in document["stalls"]["tree"] if node["place"].endswith(place)]
    expect("silent" in expected or leaves, place, document["stalls"]["tree"])
    expect(all(node["ranks"] == str(CULPRIT) for node in leaves), place, document["stalls"]["tree"])
    expect(place in text and "Where it stalls" in text, text)


def check(name, build, folder):
    expected = SCENARIOS[name]
    said = []

    def look(traces):
        """tscope-stacks, while the job stalls."""
        program = built(build, "tscope-stacks")
        said.append(subprocess.run([program, traces], capture_output=True, check=False, text=True).stdout)
        if os.geteuid() == 0:  # the kernel refuses root without this capability to read root's processes with it
            said.append(subprocess.run([*WITHOUT_PTRACE, program, traces], capture_output=True, check=False,
                                       text=True).stdout)
        else:
            print("skipped: not root, so what is shown where the kernel refuses is not tested")

    traces = run(expected.get("job", name), build, folder, look, expected.get("end", signal.SIGKILL),
                 {CULPRIT} if "silent" in expected else frozenset())
    live = [line for line in said[0].splitlines() if line.startswith(f"rank {CULPRIT} ")]
    expect(live and expected["what"] in live[0] and (place_stalled(expected) in live[0] or "file" in expected),
           "tscope-stacks", said[0])
    if len(said) > 1 and "silent" not in expected:  # ranks tell themselves
        live = [line for line in said[1].splitlines() if line.startswith(f"rank {CULPRIT}  now  ")]
        expect(live and expected["what"] in live[0] and (place_stalled(expected) in live[0] or "file" in expected),
               "without the right", said[1])
    program = built(build, "tscope-report")
    judge(expected, report_on(program, traces), observed.run(program, traces).stdout)


if __name__ == "__main__":
    main(SCENARIOS, check)
