# SPDX-License-Identifier: MIT
"""What every report promises, whatever the trace lacks: broken(JSON text, text report) lists the
promises that do not hold.

- Numbers are numbers; times, counts and shares are not negative, shares not above 1.
- Parts sum to their whole; one name has one meaning.
- No two rows of a table have the same name, in the document and in the text.
- An unknown value is null, with a reason; communication is not 0 in a job of several ranks.
- A source that was not seen at all is named in capital letters.
- A finding has evidence with a number, an action, ranks that exist, and a saving within the run.
- The verdict is "ok" only if nothing is undecided.
- A tenth of the step in exposed communication has a finding, also with a single rank.
- No two figures about the same thing contradict each other (tests/outputs/contradictions.py).
- The step of a what-if is not shorter than the computation of the ranks that it does not change.
"""
import json
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "outputs"))
from contradictions import contradictions  # noqa: E402 pylint: disable=import-error,wrong-import-position

# Fields that may be below 0, and shares that may be above 1.
SIGNED = {"offset_ns", "drift_ppm", "z", "rel_slowdown", "saving_fraction", "residual_s", "change_per_step",
          "growth_bytes_per_step", "change", "best", "first", "last", "value", "typical",
          "plateau_change"}
UNBOUNDED = {"cv", "imbalance_cv", "saving_fraction", "rel_slowdown"}
SHARES = re.compile(r"(share|fraction|seen|_cv|^cv|hfu|mfu|fragmentation)$")


def numbers(value, path=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield from numbers(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield from numbers(below, f"{path}[{i}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def check_numbers(report):
    for path, value in numbers(report):
        name = path.split(".")[-1]
        if value < 0 and name not in SIGNED and not path.startswith("run."):
            yield f"{path} is {value}"
        if SHARES.search(name) and name not in UNBOUNDED and value > 1 + 1e-9:
            yield f"{path} is {value}, above 1"


def sums_to(parts, whole, what, allowed=1e-6):
    known = [part for part in parts if part is not None]
    if whole is None:
        if known:
            yield f"{what}: parts are known, and the whole is not"
    elif len(known) != len(parts) or abs(sum(known) - whole) > allowed * abs(whole) + 1e-5:
        yield f"{what}: {parts} do not sum to {whole}"


def check_sums(report):
    overlap, gpu, path, budget = (report[part] for part in
                                  ("overlap", "gpu_timeline", "critical_path", "budget"))
    yield from sums_to([overlap["overlapped_ms"], overlap["exposed_ms"]], overlap["comm_ms"],
                       "communication")
    if overlap["exposed_wait_ms"] is not None:
        yield from sums_to([overlap["exposed_wait_ms"], overlap["exposed_transfer_ms"]],
                           overlap["exposed_ms"], "exposed communication",
                           0.01)  # a small part may be neither, see docs/analysis.md
    yield from sums_to([line["seconds"] for line in budget["lines"]], budget["wall_s"], "budget")
    for one in [gpu, *gpu["by_rank"]]:
        yield from sums_to([one[part] for part in ("compute_ms", "exposed_comm_ms",
                                                   "exposed_memcpy_ms", "idle_ms")],
                           one["total_ms"], "a GPU's time")
        yield from sums_to(list(one["idle_by_cause"].values()), one["idle_ms"], "idle time")
    if path["length_ms"] is not None:
        yield from sums_to(list(path["by_category"].values()), path["length_ms"], "path by category")
        yield from sums_to(list(path["by_rank"].values()), path["length_ms"], "path by rank")
    shares = [c["share"] for c in report["kernels"]["by_category"] if c["share"] is not None]
    if shares:
        yield from sums_to(shares, 1, "kinds of work")


def check_wall(report):
    """wall_ms has one meaning: the time of a rank's step from begin to end, or the mean of that over
    ranks. mean_step_wall_ms is also the mean over the training steps."""
    steps, by_rank = report["series"]["steps"], report["series"]["by_rank"]
    walls = dict(zip(steps["step"], steps["wall_ms"]))
    rows = [row for row in by_rank["rows"] if row["wall_ms"]]
    for i, step in enumerate(by_rank["step"] if rows and steps["steps_per_point"] == 1 else []):
        if walls.get(step) is None or any(row["wall_ms"][i] is None for row in rows):
            continue
        mean = sum(row["wall_ms"][i] * row["ranks"] for row in rows) / sum(row["ranks"] for row in rows)
        if abs(mean - walls[step]) > 0.01 * walls[step] + 1e-3:
            yield f"step {step} took {walls[step]} ms, and its ranks {mean} ms"
    other = {step for work in report["steps"]["other"] for step in work["step"]}
    looked_at = [walls[step] for step in list(walls)[report["steps"]["warmup_excluded"]:]
                 if step not in other and walls[step] is not None]
    mean = report["distributed"]["mean_step_wall_ms"]
    if mean and steps["steps_per_point"] == 1 and len(looked_at) == report["steps"]["training"] and \
            abs(sum(looked_at) / len(looked_at) - mean) > 0.01 * mean + 1e-3:
        yield f"steps took {sum(looked_at) / len(looked_at)} ms in the series, and {mean} ms in the mean"


# Numbers that identify a row, together with its texts. All other numbers are measured values.
IDENTIFYING = {"rank", "last_rank", "device", "bytes", "size_bytes", "up_to_bytes", "from", "to", "stage", "step",
               "line", "local_rank", "pid", "number", "seq", "every", "id", "ranks", "waits_for", "members"}
# Sequences of events and sentences, not tables: an entry may occur twice.
SEQUENCES = re.compile(r"\.(segments|pieces|largest|points|steps|events|tree|frames|stacks?|stacks_at_peak|samples|spikes|facts)$")


def tables(value, path=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield from tables(below, f"{path}.{key}")
    elif isinstance(value, list):
        if value and all(isinstance(row, dict) for row in value):
            yield path, value
        for row in value:
            yield from tables(row, path)


def row_name(row):
    return tuple((key, json.dumps(value)) for key, value in row.items()
                 if isinstance(value, (str, bool, type(None))) or key in IDENTIFYING or
                 (isinstance(value, list) and value and isinstance(value[0], str)))


def check_names(report):
    """No two rows of a table have the same name, so that a reader cannot confuse them."""
    for path, rows in tables(report):
        if SEQUENCES.search(path):
            continue
        seen = set()
        for row in rows:
            if row_name(row) in seen:
                yield f"{path} has two rows of {' '.join(text for _, text in row_name(row))[:300]}"
            seen.add(row_name(row))


# A cell with a figure and its unit, or a bar.
FIGURE = re.compile(r"[-+±~≈<>]*\d[\d.,e+-]*( ?(%|x|[num]?s|h|min|[kMGTP]?i?B(/s)?|[kMGTP]?FLOP(/s)?|[kMGTP]))?$|"
                    r"[█▏▎▍▌▋▊▉░▒▓·#=.-]+$|unknown$")


def check_rows(text):
    """The same for the lines of a table in the text, with names cut to the width; sizes are part of a name."""
    seen = set()
    for line in text.splitlines():
        cells = [cell for cell in re.split(r" {2,}", line.strip()) if cell]
        if len(cells) < 3 or not any(FIGURE.match(cell) for cell in cells[1:]):
            seen = set()  # a table ends
            continue
        words = (cells[0], *(cell for cell in cells[1:]
                             if not FIGURE.match(cell) or re.search(r"\d ?[kMGTP]?i?B$", cell)))
        if words in seen:
            yield f"two lines have the name {words}: {line.strip()}"
        seen.add(words)


def check_reasons(report):
    known = {"overlap": "comm_ms", "critical_path": "length_ms", "gpu_timeline": "total_ms"}
    for part, figure in known.items():
        if (report[part][figure] is None) != (report[part]["reason"] is not None):
            yield f"{part}: {figure} {report[part][figure]}, reason {report[part]['reason']}"
    for figure in ("mfu", "hfu"):
        if report["budget"][figure] is None and not report["budget"][figure + "_reason"]:
            yield f"no {figure}, and no reason"
    if not report["kernels"]["by_category"] and not report["kernels"]["reason"]:
        yield "no kernels, and no reason"
    gemms = [kind["count"] for kind in report["kernels"]["by_category"] if kind["category"] == "GEMM" and kind["count"]]
    if gemms and report["gemms"]["reason"] == "no GEMM was seen":
        yield f"no GEMM was seen, and {gemms[0]} kernels of GEMMs were"
    if report["run"]["world_size"] and report["run"]["world_size"] > 1 and \
            report["overlap"]["comm_ms"] == 0 and any(c["count"] for c in report["collectives"]):
        yield "collectives were called, and took no time at all"
    for name, entry in report["quality"]["coverage"].items():
        if entry["share"] < 1 and not entry["note"]:
            yield f"coverage of {name} is {entry['share']}, and nothing says why"
        if entry["share"] == 0 and name not in ("phases", "matched collectives") and \
                not re.search(r"[A-Z]{4,}", entry["note"]):
            yield f"nothing of {name} was seen, and it is not said in capitals: {entry['note']}"


def check_findings(report):
    ranks = set(report["run"]["ranks_found"]) | set(range(report["run"]["world_size"] or 0))
    no_timelines = not report["run"]["ranks_found"]  # then the ranks are from logs or dumps
    for finding in report["findings"]:
        if not re.search(r"\d", finding["evidence"]):
            yield f"{finding['id']}: evidence without a number: {finding['evidence']}"
        for text in ("title", "evidence", "action"):
            if not finding[text] or re.search(r"\bnan\b|\binf\b|\(null\)|: opened|\de\+\d\d\b", finding[text]):
                yield f"{finding['id']}: {text} is {finding[text]!r}"
        if not set(finding["ranks"]) <= ranks and not no_timelines:
            yield f"{finding['id']}: ranks {finding['ranks']} of {sorted(ranks)}"
        saving, lasted = finding["saving_s"], report["run"]["duration_s"]
        if saving is not None and not 0 <= saving <= lasted:
            yield f"{finding['id']}: saving {saving} s of a run of {lasted} s"
        if saving is not None and (finding["saving_added_s"] < 0.98 * saving) != bool(finding["overlaps"]):
            yield f"{finding['id']}: adds {finding['saving_added_s']} of {saving} s, {finding['overlaps']}"
    savings = [f["saving_added_s"] for f in report["findings"] if f["saving_added_s"] is not None]
    if savings and sum(savings) > 1.001 * report["steps"]["analysed_s"]:
        yield f"findings are worth {sum(savings)} s of {report['steps']['analysed_s']} s"


def check_verdict(report, text):
    found, undecided = [f["severity"] for f in report["findings"]], report["undecided"]
    wanted = next((s for s in ("critical", "warning") if s in found), None)
    wanted = wanted or ("undecided" if undecided else "note" if found else "ok")
    if report["verdict"] != wanted:
        yield f"the verdict is {report['verdict']}, not {wanted}"
    heading = next(line for line in text.splitlines() if re.match(r"\S Verdict ", line))
    if undecided and heading.endswith(" ok"):
        yield "the verdict says ok, and something is undecided"
    check = report["collective_check"]
    blamed = check["suspects"] or any("DESYNC" in f["id"] or "HANG" in f["id"]
                                      for f in report["findings"])
    if check["pending_ranks"] and not blamed and not {"critical"} & set(found):
        yield f"{check['pending_ranks']} ranks are pending, and nothing is said of it"
    for one in undecided:
        if not one["why"]:
            yield f"{one['what']} is undecided, and nothing says why"


def check_exposed(report):
    overlap, step = report["overlap"], report["distributed"]["mean_step_wall_ms"]
    has_finding = any(f["id"].startswith("DIST.") for f in report["findings"])
    if step and (overlap["exposed_ms"] or 0) > 0.1 * step and not has_finding and \
            overlap["exposed_wait_ms"] is None:
        yield f"{overlap['exposed_ms']} ms of {step} are exposed communication, and nothing says so"


def check_what_ifs(report):
    computed = {rank["rank"]: rank["mean_compute_ms"] or 0 for rank in report["distributed"]["ranks"]}
    for what_if in report["critical_path"]["what_if"]:
        change, edited = what_if["change"], re.match(r"(rank|stage) (\d+) as fast", what_if["change"])
        faster = [] if not edited else [int(edited[2])] if edited[1] == "rank" else \
            report["pipeline"]["by_stage"][int(edited[2])]["ranks"]
        alone = [ms for rank, ms in computed.items() if rank not in faster]
        least = min(alone) if change.startswith("every rank") else max(alone, default=0)
        # a rank whose trace was cut has other steps than the rest, so its means differ
        if what_if["step_ms"] < least * (1 - 1e-6) and what_if["saving_fraction"] > 0:
            yield f"what if {change}: a step of {what_if['step_ms']} ms, of which {least} ms compute"


def check_text(text):
    for line in text.splitlines():
        if re.search(r"(?<![\w.-])-?(nan|inf)(?![\w-])|\(null\)|unknown of |not known: opened|\de\+\d\d\b", line):
            yield f"the text says: {line.strip()}"
        if any(float(share) > 100 for share in re.findall(r"(?<![+\d.-])(\d+(?:\.\d+)?) %(?! longer)", line)) \
                and not re.search(r"CV|to peers|vm ", line):
            yield f"above 100 %: {line.strip()}"
    verdict = text[text.index("Verdict"):]
    if not re.search(r"→|->|Nothing that was measured|cannot tell", verdict[:1500]):
        yield "the verdict says nothing"


def refuse_constant(constant):
    raise ValueError(constant)


def broken(document, text):
    report = json.loads(document, parse_constant=refuse_constant)
    return [*check_numbers(report), *check_sums(report), *check_wall(report), *check_names(report), *check_reasons(report),
            *check_findings(report), *check_what_ifs(report), *check_exposed(report), *check_verdict(report, text),
            *check_text(text), *check_rows(text), *contradictions(report)]
