#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs of other frameworks, without any code for tscope: frameworks.py CASE LIBTSCOPE TSCOPE-REPORT. Steps, phases,
loss and learning rate must be in the report; and of the same job in each, in which rank 1 is slow at one line, the rank
and the line."""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from findings import findings_of  # noqa: E402
from marks import place_of  # noqa: E402
from observed import json_of, observed_environment  # noqa: E402
from outcomes import Skip, expect  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_with_torch  # noqa: E402

STEPS, RANKS = 20, 2


def run(python, library, directory, command, **more):
    environment = observed_environment(library, os.path.join(directory, "traces"), OMP_NUM_THREADS="1",
                                       PYTHONFAULTHANDLER="1", **more)
    done = subprocess.run([python, *command], env=environment, capture_output=True, text=True,
                          timeout=280)
    # The last output of a failed rank comes long before that of the launcher.
    expect(done.returncode == 0, f"{done.stderr[:4000]} ... {done.stderr[-1000:]}")


def check(found, losses, rates):
    expect(found["run"]["ranks_found"] == list(range(RANKS)), (found["run"], found["quality"]))
    expect(found["steps"]["count"] == STEPS, found["steps"])
    expect(found["steps"]["method"] == "optimizer phases", found["steps"])
    for phase in ("data_ms", "forward_ms", "backward_ms", "optimizer_ms"):
        expect(found["phases"][phase] and found["phases"][phase] > 0, found["phases"])
    expect(found["phases"]["backward_ms"] > found["phases"]["optimizer_ms"], found["phases"])
    series = {one["role"]: one for one in found["convergence"]["series"]}
    for role, values in (("loss", losses), ("learning rate", rates)):
        one = series[role]
        expect(one["values"] == len(values) == STEPS, (one, values))
        # first and last are medians of a few values
        expect(min(values[:5]) <= one["first"] <= max(values[:5]), (one, values))
        expect(min(values[-5:]) <= one["last"] <= max(values[-5:]), (one, values))
    expect(series["loss"]["best"] == min(losses), (series["loss"], losses))


def printed(value):
    return float(f"{value:.4g}")  # the Trainer prints four digits


def reported(value):
    return float(f"{value:.9g}")  # the report has nine


def huggingface(python, library, tool, directory):
    """With TSCOPE_SCALARS the shim reads what it prints. The true values are in its own trainer_state.json."""
    out = os.path.join(directory, "out")
    run(python, library, directory,
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS),
         os.path.join(HERE, "jobs", "hf_trainer.py"), out], TSCOPE_SCALARS="stdout")
    with open(os.path.join(out, "trainer_state.json"), encoding="utf-8") as file:
        log = [entry for entry in json.load(file)["log_history"] if "loss" in entry]
    expect(len(log) == STEPS, log)
    found = report_on(tool, os.path.join(directory, "traces"))
    check(found, [printed(entry["loss"]) for entry in log],
          [printed(entry["learning_rate"]) for entry in log])
    expect(any(one["role"] == "gradient norm" for one in found["convergence"]["series"]),
           "the gradient norm that the Trainer prints")
    alone = json_of(tool, os.path.join(out, "trainer_state.json"))["convergence"]["series"]
    expect({one["role"] for one in alone} >= {"loss", "learning rate"}, alone)


def lightning(python, library, tool, directory):
    """The report gets the file of its logger together with the traces. This file has the true values."""
    out = os.path.join(directory, "out")
    run(python, library, directory, [os.path.join(HERE, "jobs", "lightning_fit.py"), out])
    log, = glob.glob(os.path.join(out, "**", "metrics.csv"), recursive=True)
    with open(log, encoding="utf-8") as file:
        names, *rows = [line.strip().split(",") for line in file]
    check(json_of(tool, os.path.join(directory, "traces"), log),
          [reported(float(row[names.index("loss")])) for row in rows],
          [reported(float(row[names.index("lr")])) for row in rows])


def slow_line(framework, under_torchrun):
    job = os.path.join(HERE, "jobs", "slow_framework.py")

    def check_slow_line(python, library, tool, directory):
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
        run(python, library, directory,
            [*(launcher if under_torchrun else []), job, framework, os.path.join(directory, "out")])
        document = json_of(tool, os.path.join(directory, "traces"))
        late = findings_of(document, "DIST.STRAGGLER")
        expect(len(late) == 1 and late[0]["ranks"] == [1] and place_of(job, "the slow line") in late[0]["title"],
               [one["title"] for one in document["findings"]])
    return check_slow_line


CASES = {"huggingface": (huggingface, "transformers"), "lightning": (lightning, "lightning"),
         "slow-lightning": (slow_line("lightning", False), "lightning"),
         "slow-accelerate": (slow_line("accelerate", True), "accelerate"),
         "slow-trainer": (slow_line("trainer", True), "transformers"),
         "slow-ray": (slow_line("ray", False), "ray")}


def main():
    name, library, tool = sys.argv[1:4]
    case, package = CASES[name]
    python = python_with_torch()
    if not python or subprocess.run([python, "-c", f"import importlib.util as u, sys; "
                                     f"sys.exit(u.find_spec('{package}') is None)"]).returncode:
        raise Skip(f"no Python with PyTorch 2 and {package}; scripts/setup installs them")
    with tempfile.TemporaryDirectory(prefix="tscope-frameworks-") as directory:
        case(python, library, tool, directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
