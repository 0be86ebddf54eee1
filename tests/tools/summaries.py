# SPDX-License-Identifier: MIT
"""The report from summaries says what the report from traces says: figure by figure, on one node and on several.

As a program: summaries.py TSCOPE_REPORT FOLDER...
"""
import os
import sys
import tempfile

from observed import json_of, run
from read_trace import paths_under

NOT_COMPARED = {"inputs"}  # how many files of which kind the report was made from
NOT_COMPARED_FACTS = {"read from", "attempts"}  # the same in words, and how the job's other starts ended
SHOWN = 20


def differences(a, b, at=""):
    """Where two reports differ, as lines."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for key in sorted(set(a) | set(b)) if key not in NOT_COMPARED
                for line in differences(a.get(key), b.get(key), f"{at}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i, pair in enumerate(zip(a, b)) for line in differences(*pair, f"{at}[{i}]")]
    if isinstance(a, list) and isinstance(b, list) and len(a) != len(b):
        a, b = [one for one in a if one not in b], [one for one in b if one not in a]
    return [] if a == b else [f"{at}: {str(a)[:200]} is now {str(b)[:200]}"]


def compared(report, also=()):
    """The report without the lines of facts that depend on where it was read from, and `also` those of these labels."""
    def kept(facts):
        label = None
        for fact in facts:
            label = fact["label"] or label
            if label not in NOT_COMPARED_FACTS | set(also):
                yield fact
    return {**report, "sections": [{**one, "facts": list(kept(one["facts"]))} for one in report.get("sections", [])]}


def expect_same(whole, summaries, what):
    found = differences(compared(whole), compared(summaries))
    assert not found, "\n  ".join([f"{what}: {len(found)} differences", *found[:SHOWN]])


def split(traces, scratch, node_of):
    """The same files, in one folder for each node; node_of(path) names it, None leaves the file out."""
    nodes = set()
    for path in filter(node_of, paths_under(traces)):
        node = os.path.join(scratch, node_of(path))
        link = os.path.join(node, os.path.relpath(path, traces))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.link(path, link)
        nodes.add(node)
    return sorted(nodes)


def reduce_nodes(program, nodes, scratch, *options):
    """Both passes; nodes come in any order, here backwards."""
    first, second = os.path.join(scratch, "first"), os.path.join(scratch, "second")
    for node in nodes:
        run(program, node, "--output", first, *options)
    for node in reversed(nodes):
        run(program, node, "--output", second, "--with", first, *options)
    return first, second


def halves(traces, run_name):
    """A node for each half of the processes that left a trace of the run."""
    files = [path for path in paths_under(traces)
             if os.path.basename(os.path.dirname(path)) in (run_name, os.path.basename(traces))]
    node = {path: "one" if i < len(files) // 2 else "other" for i, path in enumerate(files)}
    return node.get


def of_one_start(report):
    """The report without how the job's other starts ended: summaries are of one start."""
    others = [one if one["attempt"] == report["run"]["attempt"] else {**one, "how": None, "summary": None}
              for one in report["run"]["attempts"]]
    return {**report, "run": {**report["run"], "attempts": others}}


def report_on(report_program, traces, *options):
    """The JSON report on traces that do not grow any more, after a look whether summaries give the same. Processes of
    several starts of a job are left on one node: which start they belong to is known where they ran."""
    reduce_program = os.path.join(os.path.dirname(report_program), "tscope-reduce")

    def report(folder):
        return json_of(report_program, folder, *options)

    whole = report(traces)
    with tempfile.TemporaryDirectory(prefix="summaries-", dir=os.path.dirname(os.path.abspath(traces))) as scratch:
        here = os.path.join(scratch, "here")
        run(reduce_program, traces, "--output", here, *options)
        expect_same(of_one_start(whole), report(here), "one node")
        if len(whole["run"]["ranks_found"]) > 1 and not whole["run"]["attempts"]:
            nodes = split(traces, os.path.join(scratch, "nodes"), halves(traces, whole["run"]["id"]))
            assert len(nodes) == 2, (nodes, whole["run"]["id"])
            expect_same(whole, report(reduce_nodes(reduce_program, nodes, scratch, *options)[1]), "two nodes")
    return whole


if __name__ == "__main__":
    for folder in sys.argv[2:]:
        report_on(sys.argv[1], folder)
