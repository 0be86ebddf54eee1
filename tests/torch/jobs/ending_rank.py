# SPDX-License-Identifier: MIT
"""One rank of a job that trains with DDP over gloo until something happens to some ranks in one step:
ending_rank.py ENDING RANK[,RANK] STEP STEPS"""
import ctypes
import datetime
import importlib
import json
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Broken(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        raise ValueError(f"sample {index} has no label")  # the worker's


def spin(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def reworded(work):
    """As versions of PyTorch do whose words for a lost peer nobody knows yet."""
    try:
        work()
    except RuntimeError:
        raise RuntimeError("work of the process group did not succeed") from None


def load():
    raise ValueError("sample 1234 has no label")  # the thread's


def stand_still():
    with open(os.environ["STANDS_STILL"], "w", encoding="utf-8"):
        pass  # the launcher waits for this, see ending_jobs.py


def give_up():
    """As a watchdog that notices something."""
    time.sleep(2)
    os._exit(5)  # the thread's exit


def end(ending):
    if ending == "chained":
        try:
            json.loads("{")  # the first
        except ValueError as error:
            raise LookupError("sample 1234 has no label") from error  # the last
    if ending == "exit-text":
        sys.exit("no labels were found")
    if ending == "group":
        raise ExceptionGroup("samples", [ValueError("sample 1234 has no label")])  # the group
    if ending == "boxed":
        importlib.import_module("pip._vendor.rich.traceback").install()
    if ending in ("exception", "other-words", "boxed"):
        raise ValueError("sample 1234 has no label")  # the exception
    if ending == "in-a-library":
        try:
            json.loads("{")
        except ValueError as error:
            torch.zeros(2).view(3).add_(len(str(error)))  # the library's
    if ending == "in-a-worker":
        next(iter(torch.utils.data.DataLoader(Broken(), num_workers=1)))
    if ending == "in-a-thread":
        stand_still()
        threading.Thread(target=load).start()
        threading.Event().wait()
    if ending == "memory":
        torch.empty(1 << 46)  # the memory
    if ending == "late":
        time.sleep(3600)
    if ending == "stopped":
        os.kill(os.getpid(), signal.SIGTERM)
    if ending == "exit":
        sys.exit(3)
    if ending == "exit-at-once":
        os._exit(4)  # the exit
    if ending == "exit-in-a-thread":
        threading.Thread(target=give_up).start()
        spin(3600)
    if ending == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if ending == "crash":
        ctypes.string_at(8)
    if ending == "abort":
        os.abort()
    if ending in ("kill-in-a-line", "crash-in-a-line"):
        spin(2)  # long enough for samples
        os.kill(os.getpid(), signal.SIGKILL if ending == "kill-in-a-line" else signal.SIGSEGV)
    if ending == "mark":
        stand_still()  # it does not: this is only when
    if ending == "sleep":
        stand_still()
        time.sleep(3600)  # the sleep


def main():
    ending, ranks, step_of_it, steps = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    alike = ending == "left-out-of-calls-alike"
    patience_s = {"left-out-of-calls-alike": 20, "in-a-thread": 5, "late": 5}.get(ending)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt == "0":
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=patience_s) if patience_s else None)
    else:
        # PyTorch 2.11's gloo looks up the addresses of the attempt before: most restarts fail or hang
        store = dist.PrefixStore(f"attempt-{attempt}", next(dist.rendezvous("env://"))[0])
        dist.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]),
                                world_size=int(os.environ["WORLD_SIZE"]))
    named = str(dist.get_rank()) in ranks and attempt == "0"
    model = torch.nn.Linear(32, 16)
    if not alike:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        its_turn = named and step == step_of_it
        if its_turn and ending == "early":
            return
        time.sleep(0.01)
        optimizer.zero_grad()
        loss = model(torch.randn(8, 32)).square().mean()
        if its_turn:
            end(ending)
        if ending == "other-words" and not named:
            reworded(loss.backward)
        else:
            loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        if not (its_turn and ending in ("left-out", "left-out-of-calls-alike")):
            dist.all_reduce(total)
        if its_turn and ending == "too-many":
            dist.all_reduce(total)
    if alike:
        dist.barrier()  # the first call that differs
    dist.destroy_process_group()
    if attempt != "0":
        os._exit(0)  # the interpreter's end can abort, by PyTorch's own doing: docs/harm.md


main()
