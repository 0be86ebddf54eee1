#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs in which no rank is slower than its peers, many times: how often the report names a rank or a stage. Prints a row
for each kind, and what was named. What the report itself calls a note, because something else took the cores, is
counted apart.

    quiet.py BUILD RUNS-OF-EACH-KIND
"""
import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "torch"), str(TESTS / "tools")]
from built import built  # noqa: E402
from observed import json_of, observed_environment, run  # noqa: E402
from torch_job import TorchJob  # noqa: E402

NAMES = ("DIST.STRAGGLER", "DIST.SLOW_LINK", "DIST.HANG", "DIST.DESYNC", "DIST.FAIL_SLOW", "TIMING.FAIL_SLOW")
ON_STANDINS = {"data parallel": [], "1F1B pipeline": ["--pipeline", "4", "--micro-batches", "6"],
               "interleaved pipeline": ["--pipeline", "4", "--micro-batches", "8", "--schedule", "1"],
               "tensor and data parallel": ["--tensor", "2"], "graphs": ["--graph", "8"]}
ON_TORCH = {"DDP over gloo": ("ddp_gloo.py", ["--steps", "40"], 4),
            "pipeline over gloo": ("pipeline_gloo.py", ["--steps", "40"], 4),
            "loaders with workers": ("loading_rank.py", ["--load-ms", "8", "--workers", "2", "--steps", "60"], 2)}


def run_on_standins(build, options, seed, scratch):
    run(built(build, "train"), "--steps", "40", "--seed", seed, *options,
        env=observed_environment(built(build, "libtscope.so"), scratch))
    return scratch


def named(build, directory):
    findings = json_of(built(build, "tscope-report"), directory)["findings"]
    return [(f["severity"] == "info", f["title"]) for f in findings
            if f["id"] in NAMES or f["title"].startswith("Stage ")]


def repeat(kind, runs, job):
    titles = []
    for seed in range(runs):
        with tempfile.TemporaryDirectory(prefix="quiet-") as scratch:
            titles += job(seed, scratch)
    notes = sum(is_note for is_note, _ in titles)
    print(f"| {kind} | {runs} | {len(titles) - notes} | {notes} |",
          *(("note: " if is_note else "") + title for is_note, title in titles), sep="\n  ", flush=True)
    return len(titles) - notes


def main():
    build, runs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    wrong = 0

    def on_torch(script, options, ranks):
        def job(_, scratch):
            one = TorchJob(build, scratch, "quiet")
            one.run(*options, script=script, ranks=ranks)
            return named(build, one.directory)
        return job

    for kind, options in ON_STANDINS.items():
        wrong += repeat(kind, runs, lambda seed, scratch, o=options: named(build, run_on_standins(build, o, seed, scratch)))
    for kind, (script, options, ranks) in ON_TORCH.items():
        wrong += repeat(kind, runs, on_torch(script, options, ranks))
    print(f"{runs * (len(ON_STANDINS) + len(ON_TORCH))} runs, {wrong} ranks or stages named")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
