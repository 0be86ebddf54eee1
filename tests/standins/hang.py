#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs on the stand-in cluster, under the shim, in which one rank does not do what the others do: what
the report says while they hang, and after they were killed.

    hang.py --build BUILD [--repeat N] [SCENARIO...]
    hang.py --list
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built  # noqa: E402
from findings import ranks_of  # noqa: E402
from observed import json_of, json_so_far, run  # noqa: E402
from outcomes import wait_until  # noqa: E402
from repeated import main  # noqa: E402
from standin_job import RANKS, StandinJob  # noqa: E402
from summaries import report_on  # noqa: E402

SLEEP, DIE, STOP, SKIP, HALF = "1", "2", "3", "4", "5"

# fault, options, the suspect ranks, and what else the report must say
JOBS = {
    "sleeps": (SLEEP, [], [1], {"reason": "absent"}),
    # The GPU of the dead rank had not done all its calls, so the others wait in an earlier collective.
    "dies": (DIE, [], [1], {"reason": "silent", "text": "last sign of life"}),
    "stops": (STOP, [], [1], {"reason": "silent", "text": "last sign of life"}),
    "sleeps-in-tensor-group": (SLEEP, ["--tensor", "2"], [1], {"reason": "absent"}),
    "sleeps-in-pipeline": (SLEEP, ["--pipeline", "2"], [1], {"reason": "absent"}),
    "sleeps-in-exchange": (SLEEP, ["--tensor", "4", "--experts", "1"], [1],
                           {"reason": "absent", "text": "all_to_all"}),
    "sleeps-beside-exchange": (SLEEP, ["--tensor", "2", "--experts", "1"], [1], {"reason": "absent"}),
    "skips": (SKIP, ["--steps", "16"], [1], {"desync": [1]}),
    "half": (HALF, ["--steps", "16"], [1], {"desync": [1]}),
}

# All ranks are in a collective that does not end: STANDIN_ASYNC_ERROR, the suspect ranks, the report's sentence
# about NCCL's errors, and the ranks that have an error.
REMOTE = "remote process exited or there was a network error"
STUCK = {
    "nccl-remote-error": ("1@60:6", [1], f"NCCL reports on rank 1: {REMOTE}.", [1]),
    "nccl-system-error": ("3@60:2", [3], "NCCL reports on rank 3: unhandled system error.", [3]),
    # An error that all ranks have does not point to one of them.
    "nccl-error-of-all": ("-1@60:6", [], f"NCCL reports on ranks 0-3: {REMOTE}.", [0, 1, 2, 3]),
    "nccl-no-error": ("1@60:0", [], "NCCL reports no error on the 4 ranks of which that is known.", []),
}
STALL_S = 3


def start(build, folder, fault, *options, **more):
    return StandinJob(build, folder, "--steps", "100000", "--fault", fault, "--fault-rank", "1", *options, run="hang", **more)


def report(build, job):
    return json_so_far(built(build, "tscope-report"), job.traces)


def after_all(build, job):
    return report_on(built(build, "tscope-report"), job.traces)


def ranks_of_findings(document, name):
    return ranks_of(document, name) if document else []


def check(name, build, folder):
    fault, options, wanted, more = JOBS[name]
    job = start(build, folder, fault, *options)

    def recorded_for_long_enough():
        one = report(build, job)
        hangs = ranks_of_findings(one, "DIST.HANG") + ranks_of_findings(one, "DIST.DESYNC")
        return one if hangs and (one["collective_check"]["pending_s"] or 9) > 4 else None
    try:
        going = wait_until("the hang is reported", recorded_for_long_enough, each=0.3)
    finally:
        job.end()
    for when, one in (("while it hangs", going), ("after it was killed", after_all(build, job))):
        hang, desync = ranks_of_findings(one, "DIST.HANG"), ranks_of_findings(one, "DIST.DESYNC")
        suspects = one["collective_check"]["suspects"]
        assert (hang or desync) == [wanted], (when, hang, desync, one["collective_check"])
        assert desync == ([more["desync"]] if "desync" in more else []), (when, desync)
        assert [s["rank"] for s in suspects] == wanted, (when, suspects)
        assert more.get("reason", "") in suspects[0]["reason"], (when, suspects)
        assert more.get("text", "") in suspects[0]["evidence"], (when, suspects)


def ranks_with_nccl_error(one):
    return sorted(error["rank"] for error in one["collective_check"]["nccl_errors"])


def check_stuck(name, build, folder):
    """The shim asks NCCL for errors when the ranks have not moved for STALL_S. The report and top show them."""
    failure, wanted, words, on_ranks = STUCK[name]
    job = start(build, folder, "0", STANDIN_ASYNC_ERROR=failure, TSCOPE_STALL=str(STALL_S))
    top = built(build, "tscope-top")

    def all_were_asked():
        one = report(build, job)
        return one if one and one["collective_check"]["nccl_ranks"] == RANKS else None
    try:
        going = wait_until("all ranks say what NCCL says", all_were_asked, each=0.3)
        page, seen = run(top, "--once", job.traces).stdout, json_of(top, "--once", job.traces)
    finally:
        job.end()
    for when, one in (("while it hangs", going), ("after it was killed", after_all(build, job))):
        check_of = one["collective_check"]
        assert check_of["nccl"] == words and ranks_with_nccl_error(one) == on_ranks, (when, check_of)
        assert [s["rank"] for s in check_of["suspects"]] == wanted, (when, check_of)
        assert ranks_of_findings(one, "DIST.HANG") == ([wanted] if wanted else []), (when, one["findings"])
        evidence = [finding["evidence"] for finding in one["findings"]
                    if finding["id"] in ("DIST.HANG", "DATA.UNDECIDED")]
        assert any(words.rstrip(".") in text for text in evidence), (when, evidence)
        stalled = {rank["rank"]: rank["nccl"] for rank in one["stalls"]["ranks"]}
        assert sorted(rank for rank, nccl in stalled.items() if nccl) == on_ranks, (when, stalled)
    report_text = " ".join(run(built(build, "tscope-report"), "--width", "120", job.traces).stdout.split())
    assert words in report_text, report_text
    assert [rank["rank"] for rank in seen["ranks"] if rank["nccl_error"]] == on_ranks, seen["ranks"]
    assert (words.rstrip(".") in page) == bool(on_ranks), page


def healthy(build, folder):
    """A report of a healthy run that goes on has calls in flight, but no hang."""
    job = start(build, folder, "0")

    def has_steps():
        one = report(build, job)
        return one if one and one["steps"]["count"] else None
    try:
        for _ in range(3):
            document = wait_until("steps", has_steps, each=0.3)
            assert not ranks_of_findings(document, "DIST.HANG"), document["collective_check"]
            time.sleep(0.3)  # so that the next report is of a later moment
    finally:
        job.end()
    assert not ranks_of_findings(after_all(build, job), "DIST.HANG")


def check_any(name, build, folder):
    if name == "healthy":
        healthy(build, folder)
    elif name in STUCK:
        check_stuck(name, build, folder)
    else:
        check(name, build, folder)


if __name__ == "__main__":
    # a job that hangs only waits, so several can run at once
    main([*JOBS, *STUCK, "healthy"], check_any, at_once=4)
