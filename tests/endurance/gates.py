#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate of docs/gate.md on many runs: gates.py BUILD [--runs N] [--keep FOLDER] [--python PYTHON-WITH-TORCH].

N healthy runs (100) must pass, and a run with each of the injected faults must fail, on a machine as busy as it is:
short jobs of the stand-in cluster, and of PyTorch on gloo where it is there. Prints a table for docs/validation/.
"""
import argparse
import collections
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built, standins_of  # noqa: E402
from observed import observed_environment, run  # noqa: E402
from ports import free_port  # noqa: E402
from processes import run_within  # noqa: E402

EXPECTATIONS = """# what every run of these jobs must be like, whatever else the machine does
fail-on critical:DIST,RUN,MEMORY,CONVERGENCE,TIMING.DATALOADER_BOUND
fail-on warning:DIST.STRAGGLER,DIST.HANG,DIST.DESYNC,DIST.FAIL_SLOW,DIST.SLOW_LINK,RUN,TIMING.DATALOADER_BOUND
ignore HOST.OVERSUBSCRIBED
"""
SHORT = ["--ranks", "2", "--steps", "40", "--forward-ms", "4", "--backward-ms", "6", "--optimizer-ms", "1"]
HEALTHY = {
    "plain": [],
    "four ranks": ["--ranks", "4"],
    "no overlap": ["--overlap", "0"],
    "matrix products": ["--gemms", "1"],
    "a CUDA graph": ["--graph", "5"],
}
FAULT_STEPS = ["--steps", "120"]  # where others have the cores for 97 % of the time, 40 steps show no straggler
FAULTS = {
    "a slow rank": ["--slow-rank", "1", "--slow-factor", "2"],
    "a rank that becomes slow": ["--slow-rank", "1", "--slow-factor", "2.5", "--slow-from", "60"],
    "slow input on one rank": ["--input-ms", "15", "--slow-input-rank", "1"],
    "slow input on all ranks": ["--input-ms", "20"],
    "a slow link": ["--ranks", "4", "--bucket-kb", "1024", "--slow-link", "1-2:0.05"],
    "a rank hangs": ["--fault", "1", "--fault-rank", "1"],
    "a rank dies": ["--fault", "2", "--fault-rank", "1"],
    "a rank is stopped": ["--fault", "3", "--fault-rank", "1"],
    "a rank skips an all-reduce": ["--fault", "4", "--fault-rank", "1"],
    "a rank ends with status 3": ["--fault", "6", "--fault-rank", "1"],
    "a rank aborts": ["--fault", "7", "--fault-rank", "1"],
}
GLOO = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, port, fault):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    import libtscope
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                                                          torch.nn.Linear(256, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(400):
        libtscope.step(step)
        loss = (model(torch.randn(256, 256)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = float("nan") if fault == "nan" and step > 200 else loss.item()
        libtscope.scalar("loss", value)
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], sys.argv[2]), 2)
"""
LOADER = """
import libtscope, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 10000
    def __getitem__(self, i):
        x = torch.randn(128)
        return x, (x.sum() > 0).long()
def train():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(128, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    loader = torch.utils.data.DataLoader(Data(), batch_size=16, num_workers=2, multiprocessing_context="spawn")
    for step, (x, y) in zip(range(200), loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        libtscope.scalar("loss", loss.item())
if __name__ == "__main__":
    train()
"""
ON_TORCH = {"gloo": GLOO, "spawned loader workers": LOADER}
GLOO_FAULTS = {"the loss becomes NaN": "nan"}


def environment(build, folder, name):
    return observed_environment(built(build, "libtscope.so"), folder, TSCOPE_RUN=name)


def launch(command, env, seconds):
    """How the job ended; "" where it did as it should. Jobs that hang are ended, as a pipeline's time limit would."""
    with tempfile.TemporaryFile() as said:
        status = run_within(seconds, command, said, env=env)
        said.seek(0)
        last = said.read().decode(errors="replace").strip().splitlines()[-1:]
        return "" if status == 0 else ": ".join([f"not ended after {seconds} s" if status is None else f"status {status}", *last])


def standin(build, folder, name, options, seconds=60):
    env = environment(build, folder, name)
    env["LD_LIBRARY_PATH"] = standins_of(build)
    return launch([built(build, "train"), *SHORT, *options], env, seconds)


def on_torch(build, python, folder, name, program, fault):
    script = os.path.join(folder, "job.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(program)
    env = environment(build, folder, name)
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "packaging", "python")
    env["PYTHONPATH"] = os.environ.get("TSCOPE_PACKAGE", package)
    return launch([python, script, str(free_port()), fault], env, 400)


def judge(build, folder, name, rules):
    report = run(built(build, "tscope-report"), "--expectations", rules, "--run", name, folder, ok=None,
                 timeout=120)
    reasons = list(dict.fromkeys(re.findall(r"gate: FAILED  (.*?)  \(", report.stderr)))
    busy = "that could run had no core" in report.stdout
    return report.returncode, reasons or report.stderr.splitlines()[-1:], busy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--python", help="one with PyTorch; without it, jobs of the stand-in cluster alone")
    parser.add_argument("--keep", help="traces stay in this folder")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    wrong, busy_runs, rows = [], 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="tscope-gates-") as scratch:
        folder = args.keep or os.path.join(scratch, "traces")
        os.makedirs(folder, exist_ok=True, mode=0o700)
        rules = os.path.join(scratch, "expectations")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(EXPECTATIONS)
        kinds = [*HEALTHY, *(ON_TORCH if args.python else ())]
        for number in range(args.runs):
            kind = kinds[number % len(kinds)]
            name = f"healthy{number}"
            if kind in ON_TORCH:
                failed = on_torch(build, args.python, folder, name, ON_TORCH[kind], "none")
            else:
                failed = standin(build, folder, name, [*HEALTHY[kind], "--seed", str(number + 1)])
            if failed:  # nothing is known about the gate then
                rows[kind, "failed"] += 1
                print(f"{kind}, run {name}: the job itself failed: {failed}", flush=True)
                continue
            status, reasons, busy = judge(build, folder, name, rules)
            busy_runs += busy
            rows[kind, status] += 1
            if status:
                wrong.append(f"{kind}, run {name}: {reasons}")
                print(wrong[-1], flush=True)
        print("| healthy job | green | red | no answer | the job itself failed |\n|---|---|---|---|---|")
        for kind in kinds:
            print("|", " | ".join([kind, *(str(rows[kind, column]) for column in (0, 1, 2, "failed"))]), "|")
        print(f"\n{busy_runs} of these runs lost cores to something else.\n\n| fault | gate | why |\n|---|---|---|")
        faults = [*FAULTS, *(GLOO_FAULTS if args.python else ())]
        for number, fault in enumerate(faults):
            name = f"fault{number}"
            failed = ""
            if fault in GLOO_FAULTS:
                failed = on_torch(build, args.python, folder, name, GLOO, GLOO_FAULTS[fault])
            else:
                standin(build, folder, name, [*FAULT_STEPS, *FAULTS[fault]], 40)
            status, reasons, _ = judge(build, folder, name, rules)
            said = (failed or " ".join(reasons))[:150].replace("|", "/")
            status = 3 if failed else status
            print(f"| {fault} | {'red' if status == 1 else 'GREEN' if status == 0 else 'no answer'} | {said} |", flush=True)
            if status != 1:
                wrong.append(fault)
    failed_jobs = sum(rows[kind, "failed"] for kind in kinds)
    print(f"\n{args.runs} healthy runs and {len(faults)} faults, {len(wrong)} wrong; {failed_jobs} healthy jobs failed")
    return 1 if wrong or failed_jobs else 0


if __name__ == "__main__":
    sys.exit(main())
