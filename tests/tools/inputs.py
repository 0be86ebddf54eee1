# SPDX-License-Identifier: MIT
"""The inputs of the pages in the tests: {name: paths}. Synthetic traces, logs, and recordings."""
import json
import os
import re

from observed import run
from profiler_file import event, write

# Strings that a page must show only as text.
HOSTILE = ["</script><script>window.hacked = 1</script>", "<img src=x onerror=window.hacked=1>",
           "\"'><svg onload=window.hacked=1>", "javascript:window.hacked=1", "${window.hacked=1}",
           "\u202egnp.exe\u202c \u2066mirror\u2069", "a\x1b[31mred\x07\x00b", "\u2028line\u2029paragraph",
           "<!--<script>", "]]>", "__proto__", "constructor", "{{7*7}}", "\\u003c/script>",
           "&lt;b&gt;", "long " + "x" * 1_000_000]


def synthetic(tracegen, folder, name, *options):
    path = os.path.join(folder, name)
    run(tracegen, *options, path)
    return [path]


def named(tracegen, folder, name, words, *options):
    """A synthetic run in which these words are all the names: hosts, kernels, threads, communicators, frames."""
    path = os.path.join(folder, name + ".words")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("".join(re.sub("[\ud800-\udfff]", "?", word).replace("\n", " ") + "\n" for word in words))
    return synthetic(tracegen, folder, name, "--words", path, *options)


def log(folder, name, losses, more=lambda step: {}):
    path = os.path.join(folder, name + ".jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for step, loss in enumerate(losses):
            file.write(json.dumps({"step": step, "loss": loss, **more(step)}) + "\n")
    return [path]


def kineto(path, names, rank=0, world=2, host="node", steps=3):
    """A small profile whose kernels, operators and streams have these names."""
    events, at = [], 1000.0
    for step in range(steps):
        begin = at
        for i, name in enumerate(names):
            link = step * len(names) + i + 1
            events += [event("cpu_op", name, at, 20), event("cuda_runtime", "cudaLaunchKernel", at + 2, 5, correlation=link),
                       event("kernel", name, at + 10, 50 + i, correlation=link, stream=7)]
            at += 70
        events.append(event("user_annotation", f"ProfilerStep#{step}", begin, at - begin))
        at += 5
    return [write(path, events, rank, world, deviceProperties=[{"id": 0, "name": names[0][:200]}], hostName=host)]


def made(tracegen, folder):
    few = ("--ranks", "4", "--steps", "40")
    return {
        "slow-rank": synthetic(tracegen, folder, "slow-rank", *few, "--phases", "--slow-rank", "2",
                               "--slow-factor", "1.4", "--ranks-per-host", "2"),
        "even": synthetic(tracegen, folder, "even", *few, "--phases"),
        "gloo": synthetic(tracegen, folder, "gloo", "--flavour", "gloo", "--ranks", "3", "--steps", "30"),
        "host-only": synthetic(tracegen, folder, "host-only", *few, "--no-gpu-spans"),
        "lost-ranks": synthetic(tracegen, folder, "lost-ranks", *few, "--lost-ranks", "1"),
        "no-steps": synthetic(tracegen, folder, "no-steps", "--ranks", "2", "--steps", "1"),
        "many-ranks": synthetic(tracegen, folder, "many-ranks", "--ranks", "130", "--steps", "25",
                                "--slow-rank", "77", "--buckets", "1", "--kernels", "1"),
        "many-steps": synthetic(tracegen, folder, "many-steps", "--ranks", "2", "--steps", "4500",
                                "--buckets", "1", "--kernels", "1"),
        "log": log(folder, "log", [2 + 3 / (1 + step) for step in range(200)],
                   lambda step: {"grad_norm": 1 + (step == 100) * 40, "lr": 1e-3}),
        "log-nan": log(folder, "log-nan", [3 - step / 100 for step in range(80)] + [float("nan")] * 5),
        "kineto": kineto(os.path.join(folder, "kineto.json"), ["gemm", "relu", "copy_kernel"]),
    }
