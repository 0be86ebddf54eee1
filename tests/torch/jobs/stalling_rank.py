# SPDX-License-Identifier: MIT
"""One rank of a job that trains with DDP over gloo until one rank does something else for ever: stalling_rank.py
SCENARIO RANK STORE. stalling_jobs.py looks for the comments at the ends of lines."""
import ctypes
import fcntl
import os
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save(model):
    """A checkpoint into a pipe that nobody reads: it holds 64 KiB."""
    _, full = os.pipe()
    state = b"".join(bytes(1 << 16) for _ in model.parameters())
    os.write(full, state)  # the write


def update(first, second):
    with first:
        time.sleep(0.1)
        with second:  # the second lock
            pass


def deadlock():
    first, second = threading.Lock(), threading.Lock()
    other = threading.Thread(target=update, args=(second, first), daemon=True)
    other.start()
    update(first, second)


def work_without_end():
    """A call of C that keeps the GIL: pause() called by PyDLL."""
    ctypes.PyDLL(None).pause()  # the library


def keep_the_gil():
    other = threading.Thread(target=work_without_end, daemon=True)
    other.start()
    other.join()


def spin():
    while True: pass  # the loop


def stopped():
    """Stopped from outside, while it is here."""
    subprocess.Popen(["/bin/sh", "-c", f"sleep 1; kill -STOP {os.getpid()}"])
    time.sleep(3600)  # the stop


def wait_for_child():
    """In state D: the parent of a vfork() until its child starts another program, which pause() never does."""
    libc = ctypes.CDLL(None)
    stack = ctypes.create_string_buffer(1 << 16)
    top = (ctypes.addressof(stack) + (1 << 16) - 64) & ~15
    shared_memory, until_exec = 0x100, 0x4000
    pause = ctypes.cast(libc.pause, ctypes.c_void_p)
    libc.clone(pause, ctypes.c_void_p(top), shared_memory | until_exec, None)  # the child


def lock_checkpoint():
    """Waits for a lock on a file that another process keeps."""
    name = os.path.join(tempfile.mkdtemp(), "checkpoint.lock")
    with open(name, "w", encoding="utf-8") as mine, open(name, "w", encoding="utf-8") as others:
        fcntl.flock(others, fcntl.LOCK_EX)
        fcntl.flock(mine, fcntl.LOCK_EX)  # the file lock


def other_branch():
    time.sleep(3600)  # the nap


def train_in_library(rank, culprit):
    """A library runs the loop, and stops in it."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
    from fitter.loop import Fitter  # pylint: disable=import-error,import-outside-toplevel
    model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batches = (torch.randn(64, 512) for _ in range(10000))
    Fitter(model, optimizer, False, 150 if rank == culprit else None).fit(batches)  # the call of the library


def main():
    scenario, culprit, store = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    rank = int(os.environ["RANK"])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=int(os.environ["WORLD_SIZE"]))
    if scenario == "library":
        train_in_library(rank, culprit)
    model = DistributedDataParallel(torch.nn.Linear(32, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stand_still = {"checkpoint": lambda: save(model), "python-lock": deadlock, "gil": keep_the_gil, "busy": spin,
                   "left-out": other_branch, "stopped": stopped, "device": wait_for_child,
                   "file-lock": lock_checkpoint}.get(scenario)
    for step in range(20):
        time.sleep(0.01)
        optimizer.zero_grad()
        model(torch.randn(8, 32)).square().mean().backward()
        optimizer.step()
        if step == 12 and rank == culprit and stand_still:
            stand_still()
        total = torch.ones(1)
        dist.all_reduce(total)  # the collective
    dist.destroy_process_group()


main()
