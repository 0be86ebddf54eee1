#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs on the stand-in cluster, under the shim, in which one rank does not do what the others do: what
the report says while they hang, and after they were killed.

    hang.py --build BUILD [--only NAME]
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from summaries import report_on  # noqa: E402

RANKS = 4
AT_ONCE = 4
DEADLINE_S = 60

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


def start(build, folder, fault, options, more=None):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("TSCOPE", "STANDIN", "SKEW", "RANK"))}
    env.update({"LD_PRELOAD": os.path.join(build, "preload", "libtscope.so"),
                "TSCOPE_DIR": os.path.join(folder, "traces"), "TSCOPE_RUN": "hang",
                "STANDIN_RENDEZVOUS": folder, "WORLD_SIZE": str(RANKS),
                "STANDIN_LINK_GBPS": "0.5", "STANDIN_LATENCY_US": "20", **(more or {})})
    command = [os.path.join(build, "tests", "standins", "train"), "--steps", "100000", "--fault",
               fault, "--fault-rank", "1", *options]
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(RANKS)]


def output(build, folder, program, *options):
    done = subprocess.run([os.path.join(build, "analyzer", program), *options, os.path.join(folder, "traces")],
                          capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    return done.stdout if done.returncode == 0 else None


def document(build, folder, *program):
    text = output(build, folder, *(program or ("tscope-report",)), "--format", "json")
    return json.loads(text) if text else None


def report(build, folder):
    return document(build, folder)


def after_all(build, folder):
    return report_on(os.path.join(build, "analyzer", "tscope-report"), os.path.join(folder, "traces"))


def end_all(ranks):
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
    for rank in ranks:
        rank.wait()


def ranks_of_findings(document, name):
    return [f["ranks"] for f in document["findings"] if f["id"] == name] if document else []


def check(name, build, folder):
    fault, options, wanted, more = JOBS[name]
    ranks = start(build, folder, fault, options)
    try:
        # read the report until the shim has recorded the hang for long enough
        end = time.monotonic() + DEADLINE_S
        document = None
        while time.monotonic() < end:
            document = report(build, folder)
            if ranks_of_findings(document, "DIST.HANG") + ranks_of_findings(document, "DIST.DESYNC") and \
                    (document["collective_check"]["pending_s"] or 9) > 4:
                break
            time.sleep(0.3)
        going = document
    finally:
        end_all(ranks)
    for when, one in (("while it hangs", going), ("after it was killed", after_all(build, folder))):
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
    ranks = start(build, folder, "0", [], {"STANDIN_ASYNC_ERROR": failure, "TSCOPE_STALL": str(STALL_S)})
    try:
        end = time.monotonic() + DEADLINE_S
        one = {"collective_check": {"nccl_ranks": None}}
        while time.monotonic() < end and (one is None or one["collective_check"]["nccl_ranks"] != RANKS):
            time.sleep(0.3)
            one = report(build, folder)
        page, top = output(build, folder, "tscope-top", "--once"), document(build, folder, "tscope-top", "--once")
    finally:
        end_all(ranks)
    for when, one in (("while it hangs", one), ("after it was killed", after_all(build, folder))):
        check_of = one["collective_check"]
        assert check_of["nccl"] == words and ranks_with_nccl_error(one) == on_ranks, (when, check_of)
        assert [s["rank"] for s in check_of["suspects"]] == wanted, (when, check_of)
        assert ranks_of_findings(one, "DIST.HANG") == ([wanted] if wanted else []), (when, one["findings"])
        evidence = [finding["evidence"] for finding in one["findings"]
                    if finding["id"] in ("DIST.HANG", "DATA.UNDECIDED")]
        assert any(words.rstrip(".") in text for text in evidence), (when, evidence)
        stalled = {rank["rank"]: rank["nccl"] for rank in one["stalls"]["ranks"]}
        assert sorted(rank for rank, nccl in stalled.items() if nccl) == on_ranks, (when, stalled)
    report_text = " ".join(output(build, folder, "tscope-report", "--width", "120").split())
    assert words in report_text, report_text
    assert [rank["rank"] for rank in top["ranks"] if rank["nccl_error"]] == on_ranks, top["ranks"]
    assert (words.rstrip(".") in page) == bool(on_ranks), page


def healthy(build, folder):
    """A report of a healthy run that goes on has calls in flight, but no hang."""
    ranks = start(build, folder, "0", [])
    reports = 0
    try:
        end = time.monotonic() + DEADLINE_S
        while reports < 3 and time.monotonic() < end:
            document = report(build, folder)
            if document and document["steps"]["count"]:
                assert not ranks_of_findings(document, "DIST.HANG"), document["collective_check"]
                reports += 1
            time.sleep(0.3)
    finally:
        end_all(ranks)
    assert reports == 3
    assert not ranks_of_findings(report(build, folder), "DIST.HANG")


def passes(name, build):
    folder = tempfile.mkdtemp(prefix="tscope-hang-")
    try:
        if name == "healthy":
            healthy(build, folder)
        elif name in STUCK:
            check_stuck(name, build, folder)
        else:
            check(name, build, folder)
        print(f"ok     {name}", flush=True)
        return True
    except AssertionError as error:
        print(f"FAILED {name}: {error}", flush=True)
        return False
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--only")
    options = parser.parse_args()
    hanging = [name for name in [*JOBS, *STUCK] if options.only in (None, name)]
    # a job that hangs only waits, so several can run at once
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        good = list(pool.map(lambda name: passes(name, options.build), hanging))
    if options.only in (None, "healthy"):
        good.append(passes("healthy", options.build))
    return good.count(False)


sys.exit(main())
