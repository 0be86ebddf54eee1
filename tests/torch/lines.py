#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the report's lines with those of a known program: lines.py --build BUILD [PART...].

PyTorch's CUDA wheel on the stand-ins runs lines_job.py, which waits for the GPU with .item() once per step; the report
has to give its file, its line and the right number of waits.
"""
import functools
import os
import sqlite3
import tempfile

from torch_job import HERE, CudaJob
from built import built
from marks import lines_of
from observed import run
from outcomes import expect
from repeated import main

STEPS = 40
PARTS = {"all": "sampled", "some": "collectives", "none": "off", "backward": "sampled"}


def check_lines(document):
    found = {row["line"]: row for row in document["lines"]["lines"]
             if row["file"].endswith("lines_job.py")}
    others = [row["place"] for row in document["lines"]["lines"]
              if not row["file"].endswith("lines_job.py")]
    expect(found and not others, f"only the program's own lines: {others}, {list(found)}")
    line = {name: found.get(number) for name, number in
            lines_of(os.path.join(HERE, "jobs", "lines_job.py"), "LINE ").items()}
    expect(all(line.values()), f"missing: {[name for name, row in line.items() if not row]}")
    beside = [row for row in found.values() if row["function"] == "prepare" and row["host_ms"]]
    expect(not beside, f"a thread that makes tensors is none that trains: {beside}")
    expect(line["item"]["function"] == "log", f"{line['item']}")
    for name in ("item", "upload"):
        expect(abs(line[name]["waits"] - 1) < 0.1 and line[name]["wait_ms"] > 0,
               f"{name}: once a step, {line[name]}")
    for name in ("forward", "backward"):
        expect(line[name]["waits"] == 0, f"{name} waits for nothing: {line[name]}")
    expect(line["input"]["input_ms"] > 4 * 0.5, f"4 samples of 0.5 ms: {line['input']}")
    if line["forward"]["samples"] > 20:  # the backward pass runs on autograd's thread
        expect(0 < line["forward"]["backward"] < 1, f"{line['forward']}")
    if document["quality"]["coverage"].get("kernel times", {}).get("share") == 1:
        expect(line["item"]["idle_ms"] >= 0, f"{line['item']}")
    check_stacks(document["lines"])
    return line


def check_backward(document):
    """Work of the backward pass counts for the line that called its forward: each line has as many kernels per step,
    and as many backward, as backward_job.py says."""
    path = os.path.join(HERE, "jobs", "backward_job.py")
    rows = {row["line"]: row for row in document["lines"]["lines"] if row["file"].endswith("backward_job.py")}
    line = {name: rows.get(number) for name, number in lines_of(path, "LINE ").items()}
    for name, kernels, backward in (("six times", 18, 2 / 3), ("once", 4, 3 / 4), ("recomputed", 4, 1 / 2),
                                    ("custom", 1, 0), ("custom backward", 1, 0)):
        row = line[name]
        expect(row and row["samples"] > 5, f"{name}: {row}")
        chance = 5 * (2 / row["samples"]) ** 0.5  # the two kernels of a backward are often drawn together
        expect(abs(row["launches"] - kernels) < kernels * chance, f"{name}: {kernels} kernels, {row}")
        expect(abs(row["backward_gpu_ms"] / row["gpu_ms"] - backward) < chance, f"{name}: {backward} of it, {row}")
        if not backward:
            expect(row["backward_gpu_ms"] == 0, f"{name}: {row}")
    # Work without a forward: the first gradient, and the accumulation of the gradients of parameters.
    expect(line["backward"] and line["backward"]["launches"] < 3, f"{line['backward']}")


def check_stacks(lines):
    """The stacks of all calls as one tree: the cost of a frame is its own plus that of its calls; the total is that of
    all lines."""
    measures = {"host_ms": ("wait_ms", "input_ms"), "idle_ms": ("idle_ms",), "exposed_ms": ("exposed_ms",),
                "gpu_ms": ("gpu_ms",)}
    stacks = lines["stacks"]
    for key, of_lines in measures.items():
        outermost = sum(node[key] for node in stacks if node["depth"] == 0)
        sum_of_lines = sum(line[one] for line in lines["lines"] for one in of_lines)
        expect(abs(outermost - sum_of_lines) <= 1e-6 * sum_of_lines, f"{key}: {outermost}, lines {sum_of_lines}")
        for i, node in enumerate(stacks):
            below = 0
            for other in stacks[i + 1:]:
                if other["depth"] <= node["depth"]:
                    break
                below += other[key] if other["depth"] == node["depth"] + 1 else 0
            expect(below <= node[key] * (1 + 1e-6), f"{key} of {node}: {below} below it")
    expect(stacks[0]["depth"] == 0 and stacks[0]["function"] == "<module>", f"{stacks[0]}")
    own = {node["own"] for node in stacks if node["depth"] > 0}
    expect(own == {"yes", "no"}, f"the program's frames, and below them PyTorch's own: {own}")


def check_database(job, tool, line):
    """The database has the same lines, and each wait of the host has its line."""
    path = os.path.join(job.directory, "lines.db")
    run(tool, "--format", "sqlite", "--output", path, job.directory)
    database = sqlite3.connect(path)
    waits = dict(database.execute("SELECT line, wait_ns FROM lines WHERE wait_ns > 0"))
    for name in ("item", "upload"):
        number = line[name]["line"]
        expect(abs(waits[number] - 1e6 * line[name]["wait_ms"]) <= 1, f"{name}: {waits}")
        found, = database.execute("SELECT count(*) FROM calls WHERE kind = 'synchronise' AND source_line LIKE ?",
                                  [f"%lines_job.py:{number}"]).fetchone()
        expect(found > 0, f"{name}: calls of that line in the database")


@functools.cache
def printed_without_the_shim(build):
    with tempfile.TemporaryDirectory(prefix="tscope-lines-") as folder:
        job = CudaJob(build, folder, "bare", bare=True)
        job.environment["RANK"] = "0"
        return job.run(str(STEPS), script="lines_job.py", ranks=0)


def check(name, build, folder):
    """With the lines of all calls, of some, and of none; and those of the backward pass."""
    job = CudaJob(build, folder, name)
    job.environment.update(TSCOPE_LINES=PARTS[name], RANK="0")
    if name == "backward":
        job.run("300", script="backward_job.py", ranks=0)
        return check_backward(job.report())
    expect(job.run(str(STEPS), script="lines_job.py", ranks=0) == printed_without_the_shim(build), "its output")
    document = job.report()
    if name == "all":
        check_database(job, built(build, "tscope-report"), check_lines(document))
    elif name == "some":
        rows = document["lines"]["lines"]
        expect(rows and not any(row["samples"] for row in rows), f"no launches: {rows}")
    else:
        expect(document["lines"]["call_sites"] is None, f"{document['lines']}")


if __name__ == "__main__":
    main(PARTS, check)
