#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of one report that speak of the same thing and differ by more than 2 % of the step: contradictions(REPORT)
lists them. As a program it looks for them in the reports of generated jobs and of all recordings in TESTDATA, also
between the outputs: JSON, text, the data of the page, and tscope-top:

    contradictions.py TSCOPE-REPORT TSCOPE-TOP TRACEGEN TESTDATA
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from kineto_recordings import recordings

ALLOWED = 0.02
# A finding's saving, the row of the what-if table and the line of the budget that are about the same.
SAME = [
    ("TIMING.DATALOADER_BOUND", "input always ready", "waiting for input"),
    ("DIST.COMM_BOUND", "communication takes no time", None),
    ("DIST.EXPOSED_COMM", None, "communication"),
    ("DIST.LOAD_IMBALANCE", "every rank as fast as the median", "waiting for ranks"),
    ("KERNEL.LAUNCH_BOUND", "no launch gaps", None),
    ("TIMING.OUTSIDE_PHASES", "nothing outside the phases", None),
]
# What a change can save at most: what it takes from the critical path.
ON_PATH = {
    "input always ready": {"input"},
    "communication takes no time": {"communication"},
    "no launch gaps": {"launch", "host", "compute"},
    "nothing outside the phases": {"host", "launch"},
}
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
]


class Shares:
    """All of a report that is about the time of its steps, as shares of them."""

    def __init__(self, report):
        self.report = report
        self.path = report["critical_path"]
        self.time = report["steps"]["analysed_s"] or report["budget"]["wall_s"]
        self.step = report["distributed"]["mean_step_wall_ms"] or self.path["length_ms"]
        known = self.path["what_if_reason"] is None
        self.saved = {row["change"]: row["saving_fraction"] for row in self.path["what_if"] if known}
        self.budget = {line["name"]: line for line in report["budget"]["lines"]}

    def saving(self, finding):
        return None if finding["saving_s"] is None or not self.time else finding["saving_s"] / self.time

    def recoverable(self, name):
        line = self.budget.get(name)
        wall = self.report["budget"]["wall_s"]
        return line["recoverable"] / wall if line and line["recoverable"] is not None and wall else None


def differ(what, one, other):
    if one is not None and other is not None and abs(one - other) > ALLOWED:
        yield f"{what}: {one:.1%} and {other:.1%}"


def exceeds(what, part, whole):
    if part is not None and whole is not None and part > whole + ALLOWED:
        yield f"{what}: {part:.1%} of {whole:.1%}"


def of_findings(shares):
    added = 0
    training = shares.report["steps"].get("other_work") == []
    for finding in shares.report["findings"]:
        saving = shares.saving(finding)
        for name, change, line in SAME:
            if finding["id"] == name and training and shares.saved:
                yield from differ(f"saving of {name} and '{change}'", saving, shares.saved.get(change))
                yield from differ(f"saving of {name} and budget's {line}", saving, shares.recoverable(line))
        if finding["id"] == "DIST.STRAGGLER" and training and shares.saved and worth is not None:
            rows = [saved for change, saved in shares.saved.items() if change.endswith("as fast as their peers") or
                    any(change == f"rank {rank} as fast as its peers" for rank in finding["ranks"])]
            if rows and min(abs(saving - saved) for saved in rows) > ALLOWED:
                yield f"saving of {finding['title']}: {saving:.1%}, in the what-ifs {rows}"
        if saving is not None:
            yield from exceeds(f"saving of {finding['id']}", saving, 1)
            if finding["saving_added_s"] > finding["saving_s"] * (1 + 1e-9):
                yield f"{finding['id']} adds more than it is worth"
            added += finding["saving_added_s"] / shares.time
    yield from exceeds("what findings add", added, 1)


def of_path(shares):
    by_category, length = shares.path["by_category"], shares.path["length_ms"]
    if not length:
        return
    yield from differ("path by category", sum(by_category.values()) / length, 1)
    yield from differ("path by rank", sum(shares.path["by_rank"].values()) / length, 1)
    for change, categories in ON_PATH.items():
        on_path = sum(by_category[one] for one in categories) / length
        yield from exceeds(f"'{change}' saves more than it takes of the path", shares.saved.get(change), on_path)
    for row in shares.path["what_if"]:
        if row["saving_fraction"] is not None and row["saving_fraction"] < 0:
            yield f"'{row['change']}' saves {row['saving_fraction']}"


def of_budget(shares):
    overlap, wall = shares.report["overlap"], shares.report["budget"]["wall_s"]
    if not wall or shares.report["steps"].get("other_work"):
        return
    for name, field in (("waiting for ranks", "exposed_wait_ms"), ("communication", "exposed_transfer_ms")):
        if name in shares.budget and overlap[field] is not None and shares.step:
            yield from differ(f"budget's {name} and overlap", shares.budget[name]["fraction"],
                              overlap[field] / shares.step)
    if overlap["exposed_because_late_ms"] is not None:
        yield from exceeds("exposed because late", overlap["exposed_because_late_ms"] / shares.step,
                           overlap["exposed_ms"] / shares.step)
    for change, line in (("input always ready", "waiting for input"),
                         ("every rank as fast as the median", "waiting for ranks")):
        yield from differ(f"'{change}' and budget's {line}", shares.saved.get(change), shares.recoverable(line))
    yield from exceeds("budget's communication and the what-if", shares.recoverable("communication"),
                       shares.saved.get("communication takes no time"))


def of_pipeline(shares):
    pipeline, overlap = shares.report["pipeline"], shares.report["overlap"]
    if not pipeline["by_stage"] or not shares.step or overlap["exposed_ms"] is None:
        return
    ranks = sum(len(stage["ranks"]) for stage in pipeline["by_stage"])
    bubble = sum(stage["bubble_ms"] * len(stage["ranks"]) for stage in pipeline["by_stage"]
                 if stage["bubble_ms"] is not None) / max(1, ranks)
    if ranks == len(shares.report["distributed"]["ranks"]):
        yield from exceeds("bubble and exposed communication", bubble / shares.step,
                           overlap["exposed_ms"] / shares.step)


def contradictions(report):
    if "findings" not in report or "critical_path" not in report:
        return []
    shares = Shares(report)
    return [one for look in (of_findings, of_path, of_budget, of_pipeline) for one in look(shares)]


def output(program, *options):
    wide = {**os.environ, "COLUMNS": "200", "LC_ALL": "C.UTF-8"}
    return subprocess.run([program, *options], capture_output=True, text=True, check=True, env=wide).stdout


def of_text(report, text):
    """Each row of the what-ifs and each saving says the same in the text."""
    path, shares = report["critical_path"], Shares(report)
    for row in path["what_if"] if path["what_if_reason"] is None else []:
        shown = re.search(rf"^  {re.escape(row['change'])} +\S+(?: [a-zµ]+)? +<?([\d.]+) %", text, re.M)
        if shown:
            yield from differ(f"'{row['change']}' in JSON and text", row["saving_fraction"], float(shown[1]) / 100)
    for finding in report["findings"]:
        saving = shares.saving(finding)
        shown = re.findall(rf"{finding['id']} · \S+ · saving [^(\n]*\(<?([\d.]+) % of the time\)", text)
        if saving is not None and shown and min(abs(saving - float(one) / 100) for one in shown) > ALLOWED:
            yield f"{finding['id']} is worth {saving:.1%} in JSON, {shown} in the text"


def alike(one, other):
    """The page's tables are rows under columns, and very long names are cut."""
    if isinstance(other, dict) and "_columns" in other:
        other = [dict(zip(other["_columns"], row)) for row in other["_rows"]]
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-3 * abs(one) + 1e-9
    return one == other or (isinstance(one, str) and isinstance(other, str) and one[:200] == other[:200])


def of_page(report, page):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    for part in ("findings", "critical_path", "budget", "overlap", "pipeline", "distributed", "steps"):
        if not alike(report[part], data["report"][part]):
            yield f"{part} of the page is not that of JSON"


def of_top(report, top):
    live = json.loads(top.splitlines()[0])
    if live["step_lengths_s"] and report["steps"]["median_ms"]:
        usual_ms = 1e3 * statistics.median(live["step_lengths_s"])
        yield from differ("a step in top and report", usual_ms / report["steps"]["median_ms"], 1)


def look_at(program, *inputs):
    report = json.loads(output(program, "--format", "json", *inputs))
    return report, [*contradictions(report), *of_text(report, output(program, *inputs)),
                    *of_page(report, output(program, "--format", "html", *inputs))]


def main():
    program, top, tracegen, testdata = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    wrong, looked_at = [], 0
    with tempfile.TemporaryDirectory(prefix="contradictions-") as scratch:
        for i, options in enumerate(JOBS):
            folder = os.path.join(scratch, f"job{i}")
            subprocess.run([tracegen, *options, folder], check=True, stdout=subprocess.DEVNULL)
            report, found = look_at(program, folder)
            found += of_top(report, output(top, "--once", "--format", "json", folder))
            wrong += [f"{' '.join(options)}: {one}" for one in found]
            looked_at += 1
        for inputs in recordings(testdata, os.path.join(scratch, "archive")):
            wrong += [f"{inputs[0]}: {one}" for one in look_at(program, *inputs)[1]]
            looked_at += 1
    if not testdata.exists():
        print(f"only generated jobs: there is no {testdata} beside the source")
    print(f"{looked_at} reports, {len(wrong)} contradictions", *wrong, sep="\n")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
