# SPDX-License-Identifier: MIT
"""The report from summaries says what the report from traces says: of one node, of several nodes that each have a part of
the traces, merged in any order and any tree, also twice. A node that fails, is late or left nothing is named.

Usage: reduced.py TSCOPE_REPORT TSCOPE_REDUCE TRACEGEN
"""
import contextlib
import itertools
import json
import math
import os
import shutil
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import profiler_file  # noqa: E402
import trace_header  # noqa: E402
from observed import json_of, run  # noqa: E402
from read_trace import paths_under  # noqa: E402
from summaries import compared, differences, expect_same, reduce_nodes, split  # noqa: E402

REPORT, REDUCE, TRACEGEN = sys.argv[1:4]

# Each a relative of others: what the nodes have to agree on differs. Nodes are the hosts of tracegen.
RUNS = {
    "slow rank, clocks apart": "--ranks 4 --ranks-per-host 2 --steps 40 --phases --slow-rank 2 --slow-factor 1.4 --skew-hosts",
    "each rank a clock": "--ranks 6 --ranks-per-host 2 --steps 30 --skew --slow-rank 5",
    "gloo": "--flavour gloo --ranks 6 --ranks-per-host 3 --steps 30 --phases",
    "gloo that hangs": "--flavour gloo --ranks 16 --ranks-per-host 4 --steps 30 --hang-rank 9",
    "hosts ahead": "--ranks 6 --ranks-per-host 2 --steps 50 --ahead 2",
    "lost ranks": "--ranks 10 --ranks-per-host 4 --steps 30 --lost-ranks 2",
    "step marks": "--ranks 4 --ranks-per-host 2 --steps 25 --step-marks --ahead 1",
    "host side only": "--ranks 4 --ranks-per-host 2 --steps 25 --no-gpu-spans",
    "pairs of events": "--ranks 4 --ranks-per-host 2 --steps 25 --event-pairs",
    "islands": "--ranks 8 --ranks-per-host 4 --steps 25 --islands 2",
    "something outside phases": "--flavour gloo --ranks 4 --ranks-per-host 2 --steps 25 --unmarked-rank 1 --unmarked-ns 900000",
    "a cut file": "--ranks 4 --ranks-per-host 2 --steps 40 --cut 3:262144",
    "a cut file, a GPU away": "--ranks 4 --ranks-per-host 2 --steps 150 --step-marks --cut 3:262144",
}


def reduce(folder, output, *more):
    return run(REDUCE, folder, "--output", output, *more)


def generate(folder, options):
    run(TRACEGEN, *options.split(), folder)


def host_of(path):
    return trace_header.of_file(path).host.rstrip(b"\0").decode()


def check(name, options, scratch):
    traces = os.path.join(scratch, "traces")
    generate(traces, options)
    whole = json_of(REPORT, traces)
    here = os.path.join(scratch, "here")
    reduce(traces, here)
    expect_same(whole, json_of(REPORT, here), f"{name}, one node")
    nodes = split(traces, os.path.join(scratch, "nodes"), host_of)
    assert len(nodes) > 1, (name, nodes)
    _, second = reduce_nodes(REDUCE, nodes, scratch)
    expect_same(whole, json_of(REPORT, second), f"{name}, {len(nodes)} nodes")


def check_merging(scratch):
    """Of three nodes: every order, every tree, and twice the same."""
    traces = os.path.join(scratch, "traces")
    generate(traces, "--ranks 6 --ranks-per-host 2 --steps 25 --skew-hosts --slow-rank 3")
    whole = json_of(REPORT, traces)
    nodes = split(traces, os.path.join(scratch, "nodes"), host_of)
    first, second = reduce_nodes(REDUCE, nodes, scratch)
    files = [os.path.join(second, name) for name in sorted(os.listdir(second))]
    assert len(files) == 3, files
    made = set()
    for i, (a, b, c) in enumerate(itertools.permutations(files)):
        inner, outer, twice = (os.path.join(scratch, f"{word}{i}") for word in ("inner", "outer", "twice"))
        run(REDUCE, "--merge", a, b, "--output", inner)
        run(REDUCE, "--merge", inner, c, "--output", outer)
        run(REDUCE, "--merge", outer, b, inner, first, outer, "--output", twice)  # also what it supersedes
        for folder in (outer, twice):
            (name,) = os.listdir(folder)
            with open(os.path.join(folder, name), "rb") as merged:
                made.add(merged.read())
    assert len(made) == 1, f"{len(made)} results of merging the same"
    expect_same(whole, json_of(REPORT, twice), "merged")


def notes_of(folder):
    return " ".join(json_of(REPORT, folder)["quality"]["notes"])


def check_failures(scratch):
    traces = os.path.join(scratch, "traces")
    generate(traces, "--ranks 8 --ranks-per-host 2 --steps 25")
    whole = json_of(REPORT, traces)
    nodes = split(traces, os.path.join(scratch, "nodes"), host_of)
    first = os.path.join(scratch, "only-first")
    for node in nodes:
        reduce(node, first)
    # Nodes by themselves: what all ranks together need is there, the rest is said to be missing.
    alone = json_of(REPORT, first)
    assert alone["run"]["ranks_found"] == whole["run"]["ranks_found"]
    assert alone["quality"]["clock"] == whole["quality"]["clock"]
    assert "tscope reduce --with" in " ".join(alone["quality"]["notes"]), alone["quality"]["notes"]
    # A node that fails before the second pass takes part with its facts; its ranks are named.
    second = os.path.join(scratch, "second")
    for node in nodes[:-1]:
        reduce(node, second, "--with", first)
    for name in os.listdir(first):
        if not os.path.exists(os.path.join(second, name)):
            shutil.copy(os.path.join(first, name), second)
    partial = json_of(REPORT, second)
    assert partial["run"]["ranks_found"] == list(range(8))
    assert "ranks 6, 7 TAKE PART WITHOUT" in " ".join(partial["quality"]["notes"]), partial["quality"]["notes"]
    assert set(partial["quality"]["partial_ranks"]) == {6, 7}, partial["quality"]["partial_ranks"]
    kept = [rank["rank"] for rank in partial["overlap"]["by_rank"] if rank["comm_ms"] is not None]
    assert kept == list(range(6)), kept
    # A node that has nothing: its ranks are missing, as without a trace.
    three = os.path.join(scratch, "three")
    for node in nodes[:-1]:
        reduce(node, three)
    _, settled = reduce_nodes(REDUCE, nodes[:-1], os.path.join(scratch, "of three"))
    without = json_of(REPORT, settled)
    assert without["run"]["ranks_found"] == list(range(6))
    assert set(without["quality"]["partial_ranks"]) == {6, 7}
    # A late one is named and set aside, and the others stay as they were.
    reduce(nodes[-1], settled)
    late = json_of(REPORT, settled)
    assert "ranks 6, 7 came after" in " ".join(late["quality"]["notes"]), late["quality"]["notes"]
    # Notes are told as facts "input", too.
    found = [line for line in differences(compared(without, {"input"}), compared(late, {"input"}))
             if not line.startswith(".quality.notes")]
    assert not found, found[:20]
    # A file that was cut off is named, and the others are read.
    damaged = os.path.join(settled, sorted(os.listdir(settled))[0])
    with open(damaged, "r+b") as file:
        file.truncate(os.path.getsize(damaged) // 2)
    assert os.path.basename(damaged) + " is cut off" in notes_of(settled), notes_of(settled)
    # Options are those of the reduction.
    here = os.path.join(scratch, "here")
    reduce(traces, here, "--steps", "3:20")
    assert "--steps" in notes_of(here)
    chosen = json_of(REPORT, traces, "--steps", "3:20")
    again = json_of(REPORT, here, "--steps", "3:20")
    expect_same(chosen, again, "chosen steps")
    # Commands that cannot do anything say why.
    profile = profiler_file.write(os.path.join(scratch, "profile.json"), [profiler_file.event("cpu_op", "aten::mm", 1, 5)], rank=0)
    said = run(REDUCE, profile, "--output", os.path.join(scratch, "none"), ok=(2,)).stderr
    assert "recordings of other profilers cannot be reduced" in said, said
    empty = os.path.join(scratch, "empty")
    os.makedirs(empty)
    said = run(REDUCE, traces, "--output", here, "--with", empty, ok=(2,)).stderr
    assert "there are no summaries in" in said, said
    assert "give a folder for the summaries with --output" in run(REDUCE, traces, ok=(2,)).stderr
    said = run(REDUCE, traces, "--steps", "9:3", "--output", here, ok=(2,)).stderr
    assert "--steps wants a range of steps" in said, said


def tables(folder, scratch):
    """The tables of the database: single spans are in them."""
    path = os.path.join(scratch, "report.db")
    run(REPORT, folder, "--format", "sqlite", "--output", path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def check_traces_on_demand(scratch):
    """Single spans come from the traces where those are, and are said to be missing where not."""
    traces, here = os.path.join(scratch, "traces"), os.path.join(scratch, "here")
    generate(traces, "--ranks 3 --ranks-per-host 1 --steps 6 --skew-hosts --phases")
    reduce(traces, here)
    files = paths_under(traces)
    whole, again = tables(traces, scratch), tables(here, scratch)
    assert whole["calls_by_id"] and whole["gpu_work_by_id"]
    assert [name for name in whole if whole[name] != again[name]] == ["left_out", "critical_path"]
    assert "from summaries" in str(again["left_out"]), again["left_out"]
    # One trace is gone, in the place of another lies that of a third process.
    shutil.move(files[1], os.path.join(scratch, "moved"))
    os.unlink(files[2])
    shutil.copy(files[0], files[2])
    said = [text for _, text in tables(here, scratch)["left_out"]]
    for rank, why in ((1, f"its trace is not here: it was {os.path.realpath(files[1])} on node001"),
                      (2, f"{os.path.realpath(files[2])} is of another process")):
        assert f"No calls and work of rank {rank}: {why}." in said, said


def check_damage(scratch):
    """What was found of a rank, and is damaged, is found again in its trace: also the waits for input."""
    traces, here = os.path.join(scratch, "traces"), os.path.join(scratch, "here")
    generate(traces, "--ranks 3 --ranks-per-host 3 --steps 12")
    reduce(traces, here)
    with open(os.path.join(here, os.listdir(here)[0]), "r+b") as file:
        last = int.from_bytes(file.read(24)[16:], "little") - 10  # before the table: of the last rank
        file.seek(last)
        byte = file.read(1)[0]
        file.seek(last)
        file.write(bytes([byte ^ 16]))
    expect_same(json_of(REPORT, traces), json_of(REPORT, here), "a damaged summary")


def check_diff(scratch):
    """A baseline of summaries is compared as the traces that they were made of are."""
    def folder(name):
        return os.path.join(scratch, name)
    sides = {"before": 1, "after": 1.5}
    for side, factor in sides.items():
        for number in "123":
            generate(folder(side + number), f"--ranks 2 --steps 30 --phases --run {side}{number} --kernel-ns 6{number}000 "
                                            f"--slow-rank 1 --slow-factor {factor}")
    for number in "123":
        reduce(folder("before" + number), folder("baseline" + number))
    later = [folder("after" + number) for number in "123"]
    found = [json_of(REPORT, "diff", *[folder(kind + number) for number in "123"], "--", *later)
             for kind in ("before", "baseline")]
    assert found[0]["diff"]["verdict"] == "slower", found[0]["diff"]["verdict"]
    steps = [{**document["diff"], "runs": None} for document in found]
    expect_same(*steps, "a baseline of summaries")


def check_size(scratch):
    """Of a rank: 12 KB, 40 bytes for a step, 4 for a collective. The graph of the critical path has a limit of its own."""
    for steps, most in ((50, 48_000), (200, 100_000)):
        traces, here = os.path.join(scratch, f"traces{steps}"), os.path.join(scratch, f"here{steps}")
        generate(traces, f"--ranks 16 --ranks-per-host 4 --steps {steps} --buckets 100 --kernels 1 --skew-hosts --slow-rank 5")
        reduce(traces, here)
        size = os.path.getsize(os.path.join(here, *os.listdir(here))) / 16
        assert size <= min(most, 12_000 + steps * (40 + 100 * 4)), f"{size:.0f} bytes a rank of {steps} steps"
        expect_same(json_of(REPORT, traces), json_of(REPORT, here), f"{steps} steps of 100 collectives")


# Long runs, of whose collectives the times are kept in some steps.
LONG_RUNS = {
    "slow rank, clocks apart": "--ranks 4 --ranks-per-host 2 --steps 150 --phases --slow-rank 2 --slow-factor 1.4 --skew-hosts",
    "gloo": "--flavour gloo --ranks 6 --ranks-per-host 3 --steps 150 --phases --slow-rank 1 --slow-factor 1.5",
    "gloo that hangs": "--flavour gloo --ranks 4 --ranks-per-host 2 --steps 150 --hang-rank 3",
    "hosts ahead": "--ranks 4 --ranks-per-host 2 --steps 150 --step-marks --ahead 2",
    "pairs of events": "--ranks 4 --ranks-per-host 2 --steps 150 --step-marks --event-pairs --ahead 1 --slow-rank 0",
    "host side only": "--ranks 4 --ranks-per-host 2 --steps 150 --step-marks --no-gpu-spans",
    "steps without a name": "--ranks 4 --ranks-per-host 2 --steps 60",
    "a cut file": "--ranks 4 --ranks-per-host 2 --steps 150 --step-marks --cut 3:262144",
}
TIMED = ("--timed-steps", "40")
# Fewer collectives tie clocks that drift: by so much the steps of hosts are longer or shorter.
DRIFT = 1e-5
AS_CLOCKS = dict.fromkeys(("median_ms", "p95_ms", "cv", "analysed_s", "host_ahead_ms", "host_ahead_max_ms"), 0)


def found_by(document):
    """What findings say that does not change with the steps that are looked at."""
    return [(one["id"], one["severity"], one["ranks"]) for one in document["findings"]]


# Of hosts that are ahead, short rows of steps do not show what they could do; in a file that is cut off, what is missing of
# the critical path differs from step to step.
OTHER_FINDINGS = {"hosts ahead", "a cut file"}


def check_timed_steps(scratch):
    """Exact against traces of which the same steps are looked at; findings and ranks are those of all steps."""
    for name, options in LONG_RUNS.items():
        folder = os.path.join(scratch, name.replace(" ", "-"))
        traces, here = os.path.join(folder, "traces"), os.path.join(folder, "here")
        os.makedirs(folder)
        generate(traces, options)
        whole = json_of(REPORT, traces)
        said = run(REPORT, traces, "--format", "json", *TIMED)
        chosen, nothing = json.loads(said.stdout), "without a name" in name or "side only" in name
        assert ("--timed-steps left nothing out" in said.stderr) == nothing, (name, said.stderr)
        reduce(traces, here, *TIMED)
        expect_same(chosen, json_of(REPORT, here), f"{name}, some steps, one node")
        nodes = split(traces, os.path.join(folder, "nodes"), host_of)
        expect_same(chosen, json_of(REPORT, reduce_nodes(REDUCE, nodes, folder, *TIMED)[1]), f"{name}, some steps, {len(nodes)} nodes")
        assert name in OTHER_FINDINGS or found_by(chosen) == found_by(whole), (name, found_by(chosen), found_by(whole))
        expect_same({**whole["steps"], **AS_CLOCKS}, {**chosen["steps"], **AS_CLOCKS}, f"{name}: the steps")
        for key in AS_CLOCKS:
            was, now = whole["steps"][key], chosen["steps"][key]
            assert was == now or math.isclose(was, now, rel_tol=DRIFT), (name, key, was, now)
        expect_same(whole["run_end"], chosen["run_end"], f"{name}: the end")
        assert ("hosts are up to" in str(chosen["critical_path"]["what_if_reason"])) == (name == "hosts ahead"), name
        share = chosen["quality"]["coverage"].get("steps whose collectives have times", {"share": 1})["share"]
        assert share == 1 if nothing else share < 0.4, (name, share)


def check_late_at_times(scratch):
    """Of 240 steps, in a fifth of which a rank is late, 8 are replayed: by chance these hold more such steps."""
    traces = os.path.join(scratch, "traces")
    generate(traces, "--ranks 4 --ranks-per-host 2 --steps 240 --step-marks --slow-rank 1 --slow-factor 2 --slow-share 0.2")
    saved = []
    for options in ((), ("--timed-steps", "24")):
        document = json_of(REPORT, traces, *options)
        equal = [one for one in document["critical_path"]["what_if"] if one["change"] == "every rank as fast as the median"]
        saved.append(document["distributed"]["mean_step_wall_ms"] - equal[0]["step_ms"])
    assert math.isclose(*saved, rel_tol=0.1), saved


def check_long_size(scratch):
    """500 steps of 100 collectives, of which about 50 keep their times."""
    traces, here = os.path.join(scratch, "traces"), os.path.join(scratch, "here")
    generate(traces, "--ranks 4 --ranks-per-host 2 --steps 500 --buckets 100 --kernels 1 --skew-hosts --slow-rank 1 --step-marks")
    reduce(traces, here, "--timed-steps", "50")
    size = os.path.getsize(os.path.join(here, *os.listdir(here))) / 4
    assert size <= 48_000, f"{size:.0f} bytes a rank"
    assert ("DIST.STRAGGLER", [1]) in [(one["id"], one["ranks"]) for one in json_of(REPORT, here)["findings"]]


def main():
    for name, options in RUNS.items():
        with tempfile.TemporaryDirectory() as scratch:
            check(name, options, scratch)
    for test in (check_merging, check_failures, check_traces_on_demand, check_damage, check_diff, check_size, check_timed_steps,
                 check_late_at_times, check_long_size):
        with tempfile.TemporaryDirectory() as scratch:
            os.makedirs(os.path.join(scratch, "of three"))
            test(scratch)
    print(f"{len(RUNS)} runs, each on one node and on several: reports from summaries are those from traces")


main()
