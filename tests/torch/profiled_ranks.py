#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of PyTorch's own profiler on the CPU, of jobs whose last rank does more than its peers: the rank is
named, and the replay promises no more than the rank's own clock says that this costs.

    profiled_ranks.py BUILD
"""
import json
import os
import statistics
import sys
import tempfile

from torch_job import HERE, TorchJob
from built import built
from findings import findings_of
from marks import place_of
from observed import json_of
from outcomes import expect

EXTRA = place_of(os.path.join(HERE, "jobs", "profiled_rank.py"), "the other work")
JOBS = {"products": 2, "sort": 2, "plain": 3, "sleep": 2, "quiet": 3}


def check_quiet(own, core_ms, step_ms, document):
    """Nobody has more work. On a busy machine one may get less of it done all the same, by its own clock too. Or it goes on
    later after collectives than others: then it is late, but not for code of its own."""
    for finding in findings_of(document, "DIST.STRAGGLER"):
        rank, = finding["ranks"]
        goes_on_late = "its own code" not in finding["title"] and core_ms[rank] > min(core_ms.values())
        more_ms = own[rank] - statistics.median(ms for other, ms in own.items() if other != rank)
        small = finding["saving_s"] is not None and finding["saving_s"] < 0.03e-3 * step_ms * document["steps"]["training"]
        expect(goes_on_late or small or more_ms > 0.03 * step_ms,
               f"rank {rank} is named: {own} and {core_ms} of {step_ms} ms: {finding['title']}")


def waits_for_a_core(folder, rank):
    """How long after the end of its last collective of a step the rank goes on, in ms, by its recording: on a busy machine
    it has no core then. Nothing says whether it would have one earlier if its slow peer came earlier."""
    with open(os.path.join(folder, f"rank{rank}.json"), encoding="utf-8") as file:
        events = sorted((e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"), key=lambda event: event["ts"])
    main = next(e["tid"] for e in events if e["name"].startswith("ProfilerStep#"))
    late = []
    for step in (e for e in events if e["name"].startswith("ProfilerStep#")):
        inside = [e for e in events if step["ts"] < e["ts"] < step["ts"] + step["dur"]]
        ended = max((e["ts"] + e["dur"] for e in inside if e["name"].startswith("gloo:")), default=None)
        late += [next((e["ts"] - ended for e in inside if e["tid"] == main and e["ts"] > ended), 0)] if ended else []
    return statistics.mean(late) / 1e3


def check(kind, ranks, own, extra_ms, core_ms, document):
    """Whether all of it could be told: the recordings do not say that their ranks share a clock, and on a busy machine
    their collectives may not end so closely together that one can be found."""
    path, slow = document["critical_path"], ranks - 1
    if kind != "quiet" and "clocks are not on one axis" in (path["reason"] or ""):
        print(f"{kind}: cannot tell: {path['reason']}")
        expect(not path["what_if"], path)
        return False
    step_ms = document["distributed"]["mean_step_wall_ms"]
    saved = {row["change"]: step_ms - row["step_ms"] for row in path["what_if"]}
    costly = [finding for finding in document["findings"] if finding["id"] in ("DIST.STRAGGLER", "DIST.LOAD_IMBALANCE")]
    print(f"{kind}: {extra_ms:.1f} ms of {step_ms:.1f} ms; {saved}; {[one['title'] for one in costly]}")
    if kind == "quiet":
        check_quiet(own, core_ms, step_ms, document)
        return True
    # On a busy machine the other work is slowed and quickened too: of that, every rank as fast as the median saves a part.
    core_ms = max(core_ms[rank] for rank in range(slow))
    of_one, of_all = saved[f"rank {slow} as fast as its peers"], saved["every rank as fast as the median"]
    expect(-core_ms - 0.2 * step_ms < of_one - extra_ms < 0.2 * step_ms, f"{extra_ms} ms, {core_ms} ms: {saved}")
    expect(of_all > extra_ms - core_ms - 0.2 * step_ms, f"{extra_ms} ms, {core_ms} ms: {saved}")
    expect(document["distributed"]["stragglers"] == [slow], document["distributed"])
    expect(path["by_rank"][str(slow)] > 0.5 * path["length_ms"], path["by_rank"])
    straggler = findings_of(document, "DIST.STRAGGLER")[0]
    expect(straggler["title"].endswith(f"at {EXTRA}"), straggler)
    return True


def main():
    build, told = os.path.realpath(sys.argv[1]), 0
    for kind, ranks in JOBS.items():
        with tempfile.TemporaryDirectory(prefix="torch-profiled-") as scratch:
            out = TorchJob(build, scratch, kind, bare=True).run(scratch, kind, script="profiled_rank.py", ranks=ranks)
            document = json_of(built(build, "tscope-report"), scratch)
            core_ms = {rank: waits_for_a_core(scratch, rank) for rank in range(ranks)}
        first = document["steps"]["warmup_excluded"]
        judged = slice(first, first + document["steps"]["training"])
        took = {one["rank"]: one for one in map(json.loads, out.splitlines())}
        own = {rank: statistics.median(one["own"][judged]) for rank, one in took.items()}
        told += check(kind, ranks, own, statistics.mean(took[ranks - 1]["more"][judged]), core_ms, document)
    expect(told >= len(JOBS) - 1, f"{told} of {len(JOBS)} could be told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
