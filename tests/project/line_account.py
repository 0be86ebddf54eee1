#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The product's lines then and now, by part: line_account.py [THEN [NOW]], in a clone with its history.

A file that is new since THEN is new as a whole where NEW names it, and for a promise where KEPT_PROMISES does. In all
other files each line counts for what the commit did that wrote it (line_account.txt): it was there then or only
rewritten since, puts right what was wrong, or is of something new.
"""
import collections
import fnmatch
import os
import subprocess
import sys

FOLDERS = ("analyzer", "preload", "format", "inspect", "scripts/launch")
NEW = {
    "summaries of ranks, `tscope reduce`": "*/import/summary/* */base/carrier.* *_carry.c */carry_found.* */result_carries.h */tscope_reduce* "
        "*/mpi_library.* */reduce_options.* */rank_facts.*",
    "hosts over runs": "analyzer/hosts/* */compare_hosts.*",
    "clocks of several hosts": "*/align/clock_* */arrival_times.c */path_hosts.c */outlived.c */host_list.*",
    "rules for a gate": "*/report/gate/*",
    "runs: listed, pruned, started again": "*/list_runs.* */many_runs.h */process_state.* */attempts.c */common_calls.*",
    "lines over ranks, steps and runs": "*/slow_parts.* */slow_reasons.c */sampled_parts.* */step_lines.c *lone_line.c */last_ranks_line.c */part_lines.c "
        "*/gpu_lines.c */live_lines.c */diff_lines.c */diff_explain.c */diff_told.c preload/callsites/* inspect/thread_activity.* "
        "inspect/memory_gather.* */training_calls.* */place_link.*",
    "questions to the graph": "*/path_questions.c */path_cures.c */path_exposed.c */path_work.c */path_even_steps.c */judged_stragglers.c */what_pays.c */path_batches.c "
        "*/path_straggler.c */cure.h",
    "late at times, by turns, in groups": "*/late_groups.c */late_stretches.c */late_at_times.c */persistence.*",
    "steps without an optimizer": "*/launch_rounds.* */steps_by_pattern.c */steps_agreed.c */steps_of_peers.c */read_rounds.c",
    "other work in steps": "*/step_extras.* */turns.c */step_meetings.c */slowest_in_work.c",
    "messages, exchanges, copy engines": "*_exchanges.c */exchanges.h */live_messages.c */swapped_calls.c */copy_runs.c",
    "slow links, GPUs that compute longer": "*/find_links.c */find_gpu.c */gpu_excess.*",
    "more inputs": "*/event_file.* */kineto_workers.c */memory_needed.c */snapshot_gradients.c */configured_calls.c "
        "*/unknown_functions.* */kernels/communication.*",
}
KEPT_PROMISES = ("preload/record/carry.* */reserve.* */cancellation.h */cgroups.* */memory_limit.* */own_file.* */bus_errors.* "
                 "*/fork_count.* */namespaces.c */threads_left.* */locked_memory.c */sanitizers.c preload/resolve/* "
                 "*/checked_memory.* */file_budget.* */printable.* */read_values.h */default_directory.* */pid_namespace.* "
                 "*/trace_process.*")


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, errors="replace").stdout


def lines(commit):
    """Of each .c and .h file."""
    counted = git("grep", "-c", "", commit, "--", *(f"{folder}/*.[ch]" for folder in FOLDERS))
    return {row.split(":")[1]: int(row.rsplit(":", 1)[1]) for row in counted.splitlines()}


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns.split())


def part(path):
    names = path.split("/")
    return path.split("/")[0] if len(names) == 2 or names[0] in ("format", "inspect") else "/".join(names[:2])


def purposes():
    """[(what for, commit, patterns)]"""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "line_account.txt"), encoding="utf-8") as file:
        rows = [line.split(" : ")[0].split(None, 2) for line in file if not line.startswith("#")]
    return [(row[0], row[1], row[2] if len(row) > 2 else "*") for row in rows]


def by_purpose(path, now, rows):
    """Lines of a file by what their commits were for."""
    loops = [f"--ignore-rev={of}" for what, of, _ in rows if what == "loops"]
    blamed = git("blame", "-w", "-M", "-C", "-s", "-l", "--root", *loops, now, "--", path).splitlines()
    count = collections.Counter()
    for commit, n in collections.Counter(line.split(" ", 1)[0].lstrip("^?*") for line in blamed).items():
        fits = (what for what, of, patterns in rows if commit.startswith(of) and matches(path, patterns))
        count[next(fits, "same")] += n
    return count


COLUMNS = ("then", "same", "mended", "promise", "new")


def main(then="8c3d632", now="HEAD"):
    now = git("rev-parse", now).strip()
    before, after, rows = lines(then), lines(now), purposes()
    status = git("diff", "-M40%", "-l0", "--name-status", then, now, "--", *FOLDERS).splitlines()
    added = {row.split("\t")[1] for row in status if row.startswith("A")}
    table, by_name = collections.defaultdict(collections.Counter), collections.Counter()
    for path, n in before.items():
        table[part(path)]["then"] += n
    for path, n in after.items():
        name = next((name for name, patterns in NEW.items() if path in added and matches(path, patterns)), None)
        by_name[name] += n
        if name:
            table[part(path)]["new"] += n
        elif path in added and matches(path, KEPT_PROMISES):
            table[part(path)]["promise"] += n
        else:
            table[part(path)] += by_purpose(path, now, rows)
    table["**all**"] = sum(table.values(), collections.Counter())
    print("| Part | Then | Now, for the same | Put right since | To keep promises | New |\n|---|---|---|---|---|---|")
    for name, row in sorted(table.items()):
        print(f"| {name} |", " | ".join(f"{row[column]:,}" if row[column] else "" for column in COLUMNS), "|")
    print("\n| New files since then | Lines |\n|---|---|")
    for name in NEW:
        print(f"| {name} | {by_name[name]:,} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
