#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shapes of a slow line (jobs/slow_shapes_job.py), and jobs without any: is the rank named, the line, and how much longer
it takes, within 20 % of what the job itself measured? Where ranks are slow by turns, the line of the last of each step.

    slow_shapes.py --build BUILD [--repeat N] [--keep DIR] [SHAPE...]
    slow_shapes.py --build BUILD --again DIR [SHAPE...]
    slow_shapes.py --list

writes a line for each run, and how often each shape was right (docs/validation/slow-lines.md). One process imports PyTorch
and forks the ranks of each job, so a run takes little more than its steps. --keep keeps the traces of each run and what its
ranks measured, with the load of the machine; --again judges those that were kept with the report of another build.
"""
import contextlib
import json
import os
import re
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from built import built  # noqa: E402
from findings import findings_of, ids_of  # noqa: E402
from marks import place_of  # noqa: E402
from observed import json_of, observed_environment  # noqa: E402
from outcomes import Skip, expect  # noqa: E402
from repeated import main  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

JOBS = [os.path.join(HERE, "jobs", name) for name in ("slow_shapes_job.py", "slow_calls_job.py", "slow_module.py")]
RANKS = 3

# name: class of rank 1 (or of each slow rank), ms that it is slow, steps, ms of a step; class of the other ranks
SHAPES = {
    "sleep": ("Sleep", 10, 60, 40),
    "loop": ("Loop", 10, 60, 40),
    "callee": ("Callee", 10, 60, 40),
    "callback": ("Callback", 12, 60, 40),
    "json": ("JsonCallback", 10, 60, 40),
    "hook": ("Hook", 10, 60, 40),
    "gradhook": ("BackwardHook", 10, 60, 40),
    "autograd": ("Autograd", 10, 60, 40),
    "generator": ("Generator", 10, 60, 40),
    "compiled": ("Compiled", 10, 60, 40),
    "extension": ("Extension", 15, 60, 40),
    "digest": ("Digest", 15, 60, 40),
    "regex": ("Regex", 15, 60, 40),
    "pool": ("Pool", 10, 60, 40),
    "lock": ("Lock", 10, 60, 40),
    "disk": ("Disk", 15, 60, 40),
    "network": ("Network", 10, 60, 40),
    "process": ("Process", 20, 60, 40),
    "gc": ("Collect", 20, 60, 40),
    "many": ("Many", 20, 60, 40),
    "async": ("Async", 10, 60, 40),
    "decorated": ("Decorated", 10, 60, 40),
    "recursive": ("Recursive", 10, 60, 40),
    "tensors": ("Tensors", 10, 60, 40),
    "print": ("Print", 10, 60, 40),
    "worker": ("Worker", 60, 60, 30),
    "tenth": ("Tenth", 40, 100, 40),
    "seventh": ("Seventh", 40, 98, 40),
    "sixteenth": ("Sixteenth", 60, 128, 40),
    "seventh-little": ("Seventh", 18, 98, 40),
    "tenth-little": ("Tenth", 18, 100, 40),
    "early": ("Early", 10, 60, 40),
    "middle": ("Middle", 15, 60, 40),
    "checkpoint": ("Checkpoint", 200, 100, 40),
    "two": ({1: "Sleep", 2: "Second"}, 10, 60, 40),
    "short": ("Sleep", 3, 200, 10),
    "long": ("Sleep", 100, 30, 500),
    "thread": ("InThread", 10, 60, 40),
    "property": ("Property", 10, 60, 40),
    "context": ("Context", 10, 60, 40),
    "retry": ("Retry", 10, 60, 40),
    "comprehension": ("Comprehension", 10, 60, 40),
    "signal": ("Signal", 10, 60, 40),
    "finalizer": ("Finalizer", 10, 60, 40),
    "alternate": ("Alternate", 10, 60, 40),
    "uneven": ("Uneven", 15, 80, 40),
    "growing": ("Growing", 10, 60, 40),
    "between": ("Between", 10, 60, 40),
    "parts": ("Parts", 20, 60, 40),
    "after": ("After", 10, 60, 40),
    "hog": ("Hog", 30, 60, 40),
    "collate": ("Collate", 10, 60, 40),
    "experts": ("SlowExpert", 10, 60, 40, "Experts"),
    "sharded": ("SlowShard", 10, 60, 40, "Sharded"),
    "local": ("SlowLocal", 5, 160, 20, "Local"),
    "polled": ("SlowPolled", 10, 60, 40, "Polled"),
    "polled-asleep": ("SlowPolledAsleep", 10, 60, 40, "PolledAsleep"),
    "polled-beside": ("SlowPolledBeside", 16, 60, 40, "PolledBeside"),
    "turns": ({}, 20, 90, 40, "Turns"),
    "lengths": ({}, 20, 90, 20, "Lengths"),
    "rank0": ({0: "Sleep"}, 10, 60, 40),
    "routed": ({}, 12, 60, 10, "Routed"),
    "items": ("Items", 10, 60, 40),
    "schedule": ("Schedule", 10, 60, 40),
    "sortkey": ("SortKey", 10, 60, 40),
    "logged": ("Logged", 10, 60, 40),
    "copied": ("Copied", 10, 60, 40),
    "dataclass": ("Dataclass", 10, 60, 40),
    "partial": ("Partial", 10, 60, 40),
    "recomputed": ("Recomputed", 20, 60, 40),
    "arrays": ("Arrays", 10, 60, 40),
    "fresh": ("Fresh", 15, 60, 40),
    "import": ("Import", 10, 60, 40),
    "made": ("Made", 10, 60, 40),
    "pickled": ("Pickled", 10, 60, 40, "Plain"),
    "statement": ("Statement", 10, 60, 40),
    "nested": ("Nested", 10, 60, 40),
    "quiet": ({}, 0, 60, 40),
    "quiet-short": ({}, 0, 200, 10),
}


# Other lines of the job that are right: where it waits for the slow one.
ALSO_RIGHT = {"pool": ["result"], "hog": ["waits"]}
# No rank is slow, but one in each step.
BY_TURNS = ("turns", "lengths")
# At one line in every n-th step.
PERIODS = {"tenth": 10, "tenth-little": 10, "seventh": 7, "seventh-little": 7, "sixteenth": 16, "checkpoint": 20}

# Ranks meet in every n-th step only, and are late there by what they took since the last.
MEETS = {"local": 8}
# The others wait without a call that waits: what they do then keeps nobody, so that most of what the rank is slow is saved. Not
# all of it where cores are shared: what the others do in the meantime takes longer than the same does on the slow rank. (Where
# they spin that is not compared: they take the cores from gloo's workers.)
POLLED = ("polled", "polled-asleep", "polled-beside")
# Slow between two collectives: late at the second.
AT_SECOND = ("between", "sharded")


def slow_place(mark):
    """File and line of what is slow."""
    for path in JOBS:
        with contextlib.suppress(KeyError):
            return place_of(path, "slow: " + mark)
    raise LookupError(mark)


def fork_ranks(name, folder):
    shape, slow_ms, steps, base_ms, *other = SHAPES[name]
    classes = {1: shape} if isinstance(shape, str) else shape
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.environ["TSCOPE_DIR"] = os.path.join(folder, "traces")
                os.environ["SLOW_DISK"] = folder
                import slow_shapes_job
                slow_shapes_job.run(rank, RANKS, os.path.join(folder, "store"), classes, slow_ms, steps, base_ms, *other)
                status = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def report_of(build, folder):
    return json_of(built(build, "tscope-report"), os.path.join(folder, "traces"))


def right_place(name, rank, text):
    if name == "many":
        return "many()" in text
    mark = "second" if name == "two" and rank == 2 else {"two": "sleep", "short": "sleep", "long": "sleep",
                                                         "thread": "sleep", "rank0": "sleep"}.get(name, name)
    mark = "tenth" if name in PERIODS and name != "checkpoint" else mark
    places = [mark, *ALSO_RIGHT.get(name, [])]
    return any(slow_place(place) in text for place in places)


def true_ms(name, folder, rank, ranks, first, stretches=()):
    """How much longer the rank took than its peers up to the collective, by its own clock: in the steps in which it was slow,
    or those that the report names; not in those before `first`, which the report leaves out as warm-up. Median and mean: on
    a busy machine a few steps are much longer, for other reasons than the slow line. What the line takes is nearer to the
    one, what the peers wait nearer to the other. Of what it does in every n-th step: how long that took."""
    own = []
    for one in range(RANKS):
        with open(os.path.join(folder, f"store-own-{one}"), encoding="utf-8") as file:
            measured = json.load(file)
        # Only what lies before the collective at which the rank is late.
        own.append(name in AT_SECOND and measured.get("between") or measured["own"])
    peers = [one for one in range(RANKS) if one not in ranks]
    steps = {"early": range(1, 21), "middle": range(20, 40), "checkpoint": range(20, 100, 20)}.get(name, range(max(1, first), len(own[rank])))
    if name in PERIODS and name != "checkpoint":
        return [slow_ms(folder, rank, range(PERIODS[name] - 1, len(own[rank]), PERIODS[name]))]
    if stretches and name not in ("early", "middle"):
        steps = [s for begin, end in stretches for s in range(int(begin), int(end) + 1)]
    more = [own[rank][s] - statistics.mean(own[p][s] for p in peers) for s in steps]
    each = MEETS.get(name, 1)
    more = [1e3 * sum(more[i:i + each]) / each for i in range(0, len(more) - each + 1, each)]
    return [statistics.median(more), statistics.mean(more)]


def slow_ms(folder, rank, steps):
    """The mean of what its slow part took, by its own clock."""
    with open(os.path.join(folder, f"store-own-{rank}"), encoding="utf-8") as file:
        slow = json.load(file)["slow"]
    return 1e3 * statistics.mean(slow[s] for s in steps)


def is_right(ms, *true):
    return 0.8 * min(true) <= ms <= 1.2 * max(true)


def judge_turns(name, document, folder):
    """The line is named that the last rank of each step runs, with how long it takes there, and no rank."""
    took = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"store-own-{rank}"), encoding="utf-8") as file:
            took.append(json.load(file)["slow"][1:])
    true = 1e3 * statistics.mean(max(of_step) for of_step in zip(*took))
    found = {f["id"]: f for f in document["findings"]}
    said = "; ".join(f["title"] for f in document["findings"] if f["id"].startswith("DIST."))
    imbalance = found.get("DIST.LOAD_IMBALANCE")
    if not imbalance or not right_place(name, None, imbalance["title"]):
        return "line", said
    ms = float(re.search(r"whichever it is, is at .*? for ([\d.]+) ms, the others", imbalance["evidence"])[1])
    if not is_right(ms, true):
        return f"amount {ms:.3g} ms, not {true:.3g} ms", said
    return "innocent" if "DIST.STRAGGLER" in found else None, said


def saved_ms(document, change):
    """What the replay saves of a step; 0 if it was not asked."""
    rows = [row for row in document["critical_path"]["what_if"] if row["change"].startswith(change)]
    return sum(row["step_ms"] * row["saving_fraction"] / (1 - row["saving_fraction"]) for row in rows)


def judge_routed(document, folder):
    """No rank is slower than its peers: equal work between two exchanges saves what the longest has more than the mean."""
    parts = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"store-own-{rank}"), encoding="utf-8") as file:
            parts.append(json.load(file)["parts"][1:])
    steps = [[max(part) - statistics.mean(part) for part in zip(*of_step)] for of_step in zip(*parts)]
    true = 1e3 * statistics.mean(map(sum, steps))
    found = ids_of(document)
    saves = saved_ms(document, "every rank")
    said = f"every rank: saves {saves:.3g} ms, of {true:.3g} ms"
    if not is_right(saves, true):
        return "amount", said
    return "innocent" if "DIST.STRAGGLER" in found else None if "DIST.LOAD_IMBALANCE" in found else "not told", said


def judge(name, document, folder):
    """What is wrong with the report; None if nothing is. And what it says, for the table."""
    shape = SHAPES[name][0]
    first = document["steps"]["warmup_excluded"]
    stragglers = {rank: f for f in findings_of(document, "DIST.STRAGGLER") for rank in f["ranks"]}
    said = "; ".join(f["title"] for f in document["findings"]
                     if f["id"] in ("DIST.STRAGGLER", "TIMING.JITTER", "DIST.LONE_LINE")) or "nothing"
    if name in BY_TURNS:
        return judge_turns(name, document, folder)
    if name == "routed":
        return judge_routed(document, folder)
    if not shape:
        return "innocent" if "_job.py" in said else None, said
    if name in PERIODS:
        found = [f for f in document["findings"] if f["id"] in ("TIMING.JITTER", "DIST.STRAGGLER", "DIST.LONE_LINE") and 1 in f["ranks"]]
        text = found[0]["title"] + found[0]["evidence"] if found else ""
        wrong = None if found and right_place(name, 1, text) else "line"
        # What the line takes: where steps wait for cores, one with it is longer by less.
        takes = re.search(r"It takes ([\d.]+) (ms|s) \(error", text) or re.search(r"([\d.]+) (ms|s) in samples", text)
        true = true_ms(name, folder, 1, {1}, first)
        ms = float(takes[1]) * (1e3 if takes[2] == "s" else 1) if takes else 0
        if not wrong and not is_right(ms, *true):
            wrong = f"amount {ms:.3g} ms, not {true[0]:.3g} ms"
        return wrong, said
    ranks = {1: shape} if isinstance(shape, str) else shape
    for rank in ranks:
        lone = [f for f in findings_of(document, "DIST.LONE_LINE") if f["ranks"] == [rank]]
        if rank not in stragglers and name not in POLLED and lone and right_place(name, rank, lone[0]["title"]):
            true = slow_ms(folder, rank, {"early": range(1, 21), "middle": range(20, 40)}.get(name, range(1, SHAPES[name][2])))
            ms = float(re.search(r"([\d.]+) ms in samples", lone[0]["evidence"])[1])
            if not is_right(ms, true):
                return f"amount {ms:.3g} ms, not {true:.3g} ms", said
            continue
        if rank not in stragglers:
            return f"rank {rank} not named", said
        row = next(r for r in document["distributed"]["ranks"] if r["rank"] == rank)
        # Of these a helper takes the time: its caller is named with it.
        by_path = name in ("decorated", "property", "comprehension", "sortkey")
        if not right_place(name, rank, (row["late_path"] or "") if by_path else stragglers[rank]["title"]):
            return "line", said
        true = true_ms(name, folder, rank, ranks, first, list(zip(row["late_from"], row["late_to"])))
        # The work of these is at two lines: a file is opened and written, a loop has two lines.
        other = re.search(r" Another ([\d.]+) ms are at .*slow_\w+_job", stragglers[rank]["evidence"])
        ms = row["late_more_ms"] + (float(other[1]) if other and name in ("disk", "decorated", "property", "comprehension", "sortkey", "parts") else 0)
        if not is_right(ms, *true) and name != "worker":
            return f"amount {ms:.3g} ms, not {true[0]:.3g} to {true[-1]:.3g} ms", said
        if name in ("early", "middle") and not row["late_from"]:
            return "stretch", said
        saved = saved_ms(document, "rank 1 as fast as its peers")
        if name in POLLED[1:] and not 0.5 * min(true) <= saved <= 1.2 * max(true):
            return f"worth {saved:.3g} ms, not {true[0]:.3g} ms", said
    return None, said


def judge_run(name, build, folder):
    path = os.path.join(folder, "run.json")
    if not os.path.exists(path):
        raise Skip(f"{folder} was cut short")
    with open(path, encoding="utf-8") as file:
        ran = json.load(file)
    expect(not any(ran["statuses"]), f"job failed {ran['statuses']}")
    wrong, said = judge(name, report_of(build, folder), folder)
    print(f"{name}: {wrong or 'right'} (load {ran['load']:.0f}, {os.path.basename(folder)}) {said}", flush=True)
    expect(not wrong, wrong)


def check(name, build, folder):
    statuses = fork_ranks(name, folder)
    with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as file:
        json.dump({"statuses": statuses, "load": os.getloadavg()[0]}, file)
    judge_run(name, build, folder)


def prepare(build):
    """Goes on under the shim, and imports PyTorch once, for all ranks."""
    if "libtscope" not in os.environ.get("LD_PRELOAD", ""):
        python = python_or_skip()
        os.execve(python, [python, *sys.argv], observed_environment(
            built(build, "libtscope.so"), None, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
            TSCOPE_RUN="shapes"))
    sys.path.append(os.path.join(HERE, "jobs"))
    import slow_calls_job


if __name__ == "__main__":
    main(SHAPES, check, judge_run, prepare)
