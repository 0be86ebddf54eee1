#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of one report that speak of the same thing and differ by more than 2 % of the step: contradictions(REPORT)
lists them. As a program it looks for them in the reports of generated jobs, of the goldens of traces and of all recordings in
TESTDATA, also between the outputs: JSON, text, the data of the page, and tscope-top. It says how many figures of each
kind it compared, and fails where it found none of a kind to compare, pipelines apart:

    contradictions.py TSCOPE-REPORT TSCOPE-TOP TRACEGEN TESTDATA
"""
import collections
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from observed import clean_environment, json_of, run  # noqa: E402
from page_data import data_of  # noqa: E402
from shared_recordings import profiles  # noqa: E402

ALLOWED = 0.02
# A finding, the row of the what-if table and the line of the budget that are about the same; and whether the share that
# the finding's title gives is that of its saving.
SAME = [
    ("TIMING.DATALOADER_BOUND", "input always ready", "waiting for input", True),
    ("DIST.COMM_BOUND", "communication takes no time", None, True),
    ("DIST.EXPOSED_COMM", None, "communication", True),
    ("DIST.LOAD_IMBALANCE", "every rank as fast as the median", "waiting for ranks", False),
    ("TIMING.OUTSIDE_PHASES", "nothing outside the phases", None, True),
    ("KERNEL.LATE_START", "the GPU always there", "launched, begun late", False),
]
# Two names for one replay: in the what-if table, the budget, and what pays.
ONE_REPLAY = [
    ("input always ready", "waiting for input", "input"),
    ("every rank as fast as the median", "waiting for ranks", None),
    ("no launch gaps", "launch and idle", None),
    ("the GPU always there", "launched, begun late", None),
    ("nothing outside the phases", "outside phases", "outside the phases"),
    ("nothing outside the phases", "outside phases, busy or not", "outside the phases"),
]
# What a change can save at most: what it takes from the critical path.
ON_PATH = {
    "input always ready": {"input"},
    "communication takes no time": {"communication"},
    "no launch gaps": {"launch", "host", "compute"},
    "nothing outside the phases": {"host", "launch"},
    "the GPU always there": {"GPU away"},
}
# No input here is a pipeline; the scenarios' reports, which are held to the same (promises.py), are.
OF_SCENARIOS = {"bubble and exposed"}
JOBS = [
    ["--ranks", "4", "--steps", "40"],
    ["--ranks", "4", "--steps", "40", "--slow-rank", "2"],
    ["--ranks", "8", "--steps", "40", "--ranks-per-host", "2", "--slow-rank", "5", "--slow-factor", "1.6", "--skew"],
    ["--ranks", "4", "--steps", "40", "--ahead", "3", "--slow-rank", "1"],
    ["--ranks", "3", "--steps", "40", "--event-pairs"],
    ["--ranks", "4", "--steps", "40", "--buckets", "1", "--kernels", "1"],
    ["--flavour", "gloo", "--ranks", "3", "--steps", "40"],
    ["--flavour", "gloo", "--ranks", "4", "--steps", "40", "--slow-rank", "3", "--slow-factor", "1.5"],
    ["--flavour", "gloo", "--ranks", "4", "--steps", "40", "--unmarked-rank", "1", "--unmarked-ns", "3000000"],
    ["--flavour", "gloo", "--ranks", "4", "--steps", "40", "--unmarked-rank", "1", "--unmarked-ns", "3000000",
     "--unmarked-asleep"],
    ["--flavour", "gloo", "--ranks", "3", "--steps", "40", "--unmarked-by-turns", "--unmarked-ns", "3000000",
     "--unmarked-asleep"],
    ["--flavour", "gloo", "--ranks", "3", "--steps", "40", "--unmarked-by-turns", "--unmarked-ns", "3000000"],
]


class Shares:
    """All of a report that is about the time of its steps, as shares of them."""

    def __init__(self, report):
        self.report = report
        self.path = report["critical_path"]
        self.time = report["steps"]["analysed_s"] or report["budget"]["wall_s"]
        # Without steps, shares are of what a rank took for the run; ranks that begin apart have a longer path.
        whole = None if report["budget"]["wall_s"] is None else 1e3 * report["budget"]["wall_s"]
        self.step = report["distributed"]["mean_step_wall_ms"] or whole or self.path["length_ms"]
        self.share_of = self.path["length_ms"] if report["distributed"]["mean_step_wall_ms"] else self.step
        known = self.path["what_if_reason"] is None
        self.saved = {row["change"]: row["saving_fraction"] for row in self.path["what_if"] if known}
        self.pays = {row["name"]: row["saves_at_0"] for row in self.path["pays"]}
        self.budget = {line["name"]: line for line in report["budget"]["lines"]}
        # What-ifs and phases are of the steps of training; the run's time has the others in it.
        self.other = self.budget.get("other than training", {}).get("fraction", 0)

    def saving(self, finding):
        """Of the time; of_training() makes it a share of the steps of training."""
        return None if finding["saving_s"] is None or not self.time else finding["saving_s"] / self.time

    def of_training(self, share):
        return None if share is None or self.other >= 1 else share / (1 - self.other)

    def recoverable(self, name):
        line = self.budget.get(name)
        wall = self.report["budget"]["wall_s"]
        known = line and line["recoverable"] is not None and wall
        return self.of_training(line["recoverable"] / wall) if known else None


class Pairs:
    """Figures that were held against each other: how many of each kind, and which differ."""

    def __init__(self):
        self.compared = collections.Counter()
        self.wrong = []

    def add(self, kind, what, one, other, may_be_less=False, allowed=ALLOWED):
        if one is None or other is None:
            return
        self.compared[kind] += 1
        if one - other > allowed or (not may_be_less and other - one > allowed):
            self.wrong.append(f"{kind}: {what}: {one:.1%} {'of' if may_be_less else 'and'} {other:.1%}")

    def same(self, kind, what, one, other, allowed=ALLOWED):
        self.add(kind, what, one, other, allowed=allowed)

    def within(self, kind, what, part, whole):
        self.add(kind, what, part, whole, may_be_less=True)

    def equal(self, kind, what, one, other):
        self.compared[kind] += 1
        if one != other:
            self.wrong.append(f"{kind}: {what}")


def row_of_straggler(shares, finding):
    """The what-if row about the ranks of the finding."""
    ranks = ", ".join(map(str, finding["ranks"]))
    host = {rank["rank"]: rank["host"] for rank in shares.report["distributed"]["ranks"]}[finding["ranks"][0]]
    for row in (f"rank {ranks} as fast as its peers", f"ranks {ranks} as fast as their peers",
                f"{len(finding['ranks'])} ranks on {host} as fast as their peers"):
        if row in shares.saved:
            return shares.saved[row]
    return None


def of_one_finding(pairs, shares, finding):
    saving, name, title = shares.saving(finding), finding["id"], finding["title"]
    share = re.search(r"(\d+(?:\.\d+)?) % of (?:each step|the run)", title)
    of_training = shares.of_training(saving)
    for one, change, line, by_saving in SAME:
        if name != one or saving is None:
            continue
        if by_saving and share and "next to nothing" not in title:
            pairs.same("title and saving", title, float(share[1]) / 100, of_training)
        beyond_stragglers = name in ("DIST.LOAD_IMBALANCE", "TIMING.OUTSIDE_PHASES")
        of_others = beyond_stragglers and shares.report["distributed"]["stragglers"]
        if not of_others:
            pairs.same("finding and what-if", name, of_training, shares.saved.get(change))
            pairs.same("finding and budget", name, of_training, shares.recoverable(line))
    if name == "TIMING.OUTSIDE_PHASES" and share and " is outside " in title and shares.report["phases"]["other_ms"]:
        pairs.within("title and phases", title, float(share[1]) / 100, shares.report["phases"]["other_ms"] / shares.step)
    if name == "DIST.STRAGGLER" and not finding["together"]:
        pairs.same("finding and what-if", title, of_training, row_of_straggler(shares, finding))
    stage = re.match(r"Stage (\d+) of the pipeline", title)
    if stage:
        pairs.same("finding and what-if", title, of_training, shares.saved.get(f"stage {stage[1]} as fast as the others"))
    if saving is not None:
        pairs.within("finding and time", name, saving, 1)
        pairs.within("what a finding adds", name, finding["saving_added_s"] / shares.time, saving)


def of_findings(pairs, shares):
    added = 0
    for finding in shares.report["findings"]:
        of_one_finding(pairs, shares, finding)
        added += (finding["saving_added_s"] or 0) / shares.time if shares.time else 0
    pairs.within("what a finding adds", "all", added, 1)


def of_path(pairs, shares):
    by_category, length = shares.path["by_category"], shares.path["length_ms"]
    if not length:
        return
    pairs.same("path", "by category", sum(by_category.values()) / length, 1)
    pairs.same("path", "by rank", sum(shares.path["by_rank"].values()) / length, 1)
    for change, categories in ON_PATH.items():
        on_path = sum(by_category[one] for one in categories) / shares.share_of
        pairs.within("what-if and path", change, shares.saved.get(change), on_path)
    for row in shares.path["what_if"]:
        if row["saving_fraction"] is not None:
            pairs.within("what-if and nothing", row["change"], -row["saving_fraction"], -ALLOWED)
    for row in shares.path["pays"]:
        if row["path_ms"] is not None:
            pairs.within("what pays and path", row["name"], row["saves_at_0"], row["path_ms"] / shares.share_of)
        pairs.within("what pays, by share", row["name"], row["saves_at_90"], row["saves_at_50"])
        pairs.within("what pays, by share", row["name"], row["saves_at_50"], row["saves_at_0"])
        if row["kind"] == "collective":
            pairs.within("what pays and what-if", row["name"], row["saves_at_0"],
                         shares.saved.get("communication takes no time"))
    of_sleep(pairs, shares)
    for change, line, phase in ONE_REPLAY:
        pairs.same("what-if and budget", change, shares.saved.get(change), shares.recoverable(line))
        pairs.same("what pays and what-if", change, shares.pays.get(phase), shares.saved.get(change))


def of_sleep(pairs, shares):
    """Without the sleep outside the phases a step saves less than without all that is done there: at most by what the
    ranks compute there, one after the other."""
    saved, other = shares.saved.get("nothing outside the phases"), shares.report["phases"]["other_ms"]
    recoverable = shares.recoverable("not running outside phases")
    if None in (saved, other, recoverable):
        return
    awake = other / shares.step - shares.of_training(shares.budget["not running outside phases"]["fraction"])
    ranks = len(shares.report["distributed"]["ranks"])
    pairs.within("sleep and what-if", "sleep outside the phases", recoverable, saved)
    pairs.within("what-if and sleep", "nothing outside the phases", saved, recoverable + ranks * max(0, awake))


def of_panels(pairs, shares):
    overlap, wall, step = shares.report["overlap"], shares.report["budget"]["wall_s"], shares.step
    if not wall or not step:
        return

    def share(milliseconds):
        return None if milliseconds is None else milliseconds / step

    fraction = {name: shares.of_training(line["fraction"]) for name, line in shares.budget.items()}
    compute = [fraction[name] for name in fraction if name.startswith("compute")]
    pairs.same("budget and overlap", "waiting for ranks", fraction.get("waiting for ranks"),
               share(overlap["exposed_wait_ms"]))
    pairs.same("budget and overlap", "communication", fraction.get("communication"),
               share(overlap["exposed_transfer_ms"]))
    pairs.same("budget and overlap", "compute", sum(compute) if compute else None, share(overlap["compute_ms"])
               if "compute_ms" in overlap else None)
    pairs.within("budget and phases", "waiting for input", fraction.get("waiting for input"),
                 share(shares.report["phases"]["data_ms"]))
    pairs.within("late and exposed", "exposed because late", share(overlap["exposed_because_late_ms"]),
                 share(overlap["exposed_ms"]))
    pairs.within("budget and what-if", "communication", shares.recoverable("communication"),
                 shares.saved.get("communication takes no time"))
    pairs.same("overlap by operation", "all", share(sum(row["comm_ms"] for row in overlap["by_collective"]))
               if overlap["by_collective"] else None, share(overlap["comm_ms"]))
    ranks = [row["exposed_ms"] for row in overlap["by_rank"] if row["exposed_ms"] is not None]
    pairs.same("overlap by rank", "exposed", share(statistics.mean(ranks)) if ranks else None,
               share(overlap["exposed_ms"]))
    lines = [line["exposed_ms"] for line in shares.report["lines"]["lines"] if line["exposed_ms"]]
    if lines:
        pairs.within("lines and overlap", "exposed", share(sum(lines)), share(overlap["exposed_ms"]))


def of_pipeline(pairs, shares):
    pipeline, overlap = shares.report["pipeline"], shares.report["overlap"]
    if not pipeline["by_stage"] or not shares.step or overlap["exposed_ms"] is None:
        return
    ranks = sum(len(stage["ranks"]) for stage in pipeline["by_stage"])
    bubble = sum(stage["bubble_ms"] * len(stage["ranks"]) for stage in pipeline["by_stage"]
                 if stage["bubble_ms"] is not None) / max(1, ranks)
    if ranks == len(shares.report["distributed"]["ranks"]):
        pairs.within("bubble and exposed", "mean of the stages", bubble / shares.step,
                     overlap["exposed_ms"] / shares.step)


def of_report(pairs, report):
    if "findings" in report and "critical_path" in report:
        shares = Shares(report)
        for look in (of_findings, of_path, of_panels, of_pipeline):
            look(pairs, shares)


def contradictions(report):
    pairs = Pairs()
    of_report(pairs, report)
    return pairs.wrong


def output(program, *options):
    return run(program, *options, env=clean_environment(COLUMNS="200", LC_ALL="C.UTF-8")).stdout


def of_text(pairs, report, text):
    """Each row of the what-ifs and each saving says the same in the text."""
    path, shares = report["critical_path"], Shares(report)
    for row in path["what_if"] if path["what_if_reason"] is None else []:
        shown = re.search(rf"^  {re.escape(row['change'])} +\S+(?: [a-zµ]+)? +<?([\d.]+) %", text, re.M)
        if shown:
            pairs.same("what-if in text", row["change"], float(shown[1]) / 100, row["saving_fraction"])
    budget = text.split(" Budget ")[-1]
    for line in report["budget"]["lines"]:
        shown = re.search(rf"^  {re.escape(line['name'])} +\S+ +<?([\d.]+) %", budget, re.M)
        if shown:
            pairs.same("budget in text", line["name"], float(shown[1]) / 100, line["fraction"])
    for finding in report["findings"]:
        saving = shares.saving(finding)
        shown = re.findall(rf"{finding['id']} · \S+ · saving [^(\n]*\(<?([\d.]+) % of the time\)", text)
        if saving is not None and shown:
            closest = min((float(one) / 100 for one in shown), key=lambda one: abs(one - saving))
            pairs.same("finding in text", finding["title"], closest, saving)


def alike(one, other):
    """In the page very long names are cut."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-3 * abs(one) + 1e-9
    return one == other or (isinstance(one, str) and isinstance(other, str) and one[:200] == other[:200])


def of_page(pairs, report, page):
    data = data_of(page)
    for part in ("findings", "critical_path", "budget", "overlap", "pipeline", "distributed", "steps"):
        pairs.equal("parts of the page", part, alike(report[part], data["report"][part]), True)


def of_top(pairs, report, top, folder):
    live = json_of(top, "--once", folder)
    if live["step_lengths_s"] and report["steps"]["median_ms"]:
        usual_ms = 1e3 * statistics.median(live["step_lengths_s"])
        pairs.same("a step in top", "median", usual_ms / report["steps"]["median_ms"], 1)


def look_at(pairs, program, *inputs):
    report = json_of(program, *inputs)
    of_report(pairs, report)
    of_text(pairs, report, output(program, *inputs))
    of_page(pairs, report, output(program, "--format", "html", *inputs))
    return report


def main():
    program, top, tracegen, testdata = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    pairs, looked_at = Pairs(), 0

    def named(name):
        nonlocal looked_at
        looked_at += 1
        pairs.wrong = [one if one.startswith("in ") else f"in {name}: {one}" for one in pairs.wrong]

    with tempfile.TemporaryDirectory(prefix="contradictions-") as scratch:
        for i, options in enumerate(JOBS):
            folder = os.path.join(scratch, f"job{i}")
            run(tracegen, *options, folder)
            report = look_at(pairs, program, folder)
            of_top(pairs, report, top, folder)
            named(" ".join(options))
        for golden in sorted(pathlib.Path(HERE, "..", "golden").glob("trace-*.json")):
            of_report(pairs, json.loads(golden.read_text(encoding="utf-8")))
            named(golden.name)
        for name, paths in profiles(testdata, scratch).items():
            look_at(pairs, program, *paths)
            named(name)
    if testdata.exists():
        source = pathlib.Path(__file__).read_text(encoding="utf-8")
        kinds = set(re.findall(r'pairs\.[a-z]+\("([^"]+)"', source))
        pairs.wrong += [f"nothing to compare: {kind}" for kind in sorted(kinds - OF_SCENARIOS - set(pairs.compared))]
    else:
        print(f"only generated jobs: there is no {testdata} beside the source")
    print(f"{looked_at} reports, {sum(pairs.compared.values())} pairs of figures, {len(pairs.wrong)} contradictions")
    print(*(f"{count:6} {kind}" for kind, count in sorted(pairs.compared.items())), *pairs.wrong, sep="\n")
    return len(pairs.wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
