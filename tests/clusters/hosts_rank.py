# SPDX-License-Identifier: MIT
"""Data-parallel training on hosts with clocks of their own. Writes how far this host's monotonic clock is behind the wall
clock, which all hosts share: in the middle of the closest of many readings, after the first step and after the last. And
when it was ready for each step's backward pass, and for what it exchanges after it, by the wall clock.

SLEEP_MS makes a rank slow, in every step, SLOW_EVERY=N: in every n-th, SLOW_SHARE=X: in a share of the steps at no
fixed distance. DIE=RANK:STEP kills a rank (SIGKILL), once; HANG=RANK:STEP lets it sleep; AT_STEP=N writes a file "at-RANK" at that step.
EXCHANGE=groups: each step ends with an all-reduce between ranks of each two hosts; =messages: with a message in each
direction."""
import ctypes
import itertools
import json
import os
import random
import signal
import time

import torch
import torch.distributed as dist

RANK, FOLDER = int(os.environ["RANK"]), os.environ["TRUTH"]
STEPS = int(os.environ.get("STEPS", "60"))
A_HOST = 2  # ranks
SLOW_EVERY, SLOW_SHARE = int(os.environ.get("SLOW_EVERY", "1")), float(os.environ.get("SLOW_SHARE", "1"))
EXCHANGE = os.environ.get("EXCHANGE")
SYS_CLOCK_GETTIME, CLOCK_REALTIME = 228 if os.uname().machine == "x86_64" else 113, 0
libc, kernel_time = ctypes.CDLL(None), (ctypes.c_int64 * 2)()


def wall():
    """From the kernel itself: nothing that is preloaded changes it."""
    libc.syscall(SYS_CLOCK_GETTIME, CLOCK_REALTIME, kernel_time)
    return kernel_time[0] * 1000000000 + kernel_time[1]


def compare_clocks():
    """The monotonic clock, and the wall clock less that."""
    best = None
    for _ in range(2000):
        before, now, after = time.monotonic_ns(), wall(), time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, now - (before + after) // 2)
    return best[1:]


def is_for_me(name, step):
    return os.environ.get(name) == f"{RANK}:{step}"


def leave(name, text=""):
    with open(os.path.join(FOLDER, name + ".new"), "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(file.name, os.path.join(FOLDER, name))


def burn(seconds):
    """CPU time, which a quota makes last longer."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def exchange(pairs, tensor):
    """All pairs after another, in an order that blocks nobody."""
    for (one, other), group in pairs:
        if RANK not in (one, other):
            continue
        if group:
            dist.all_reduce(tensor, group=group)
        elif RANK == one:
            dist.send(tensor, other)
            dist.recv(tensor, other)
        else:
            dist.recv(tensor, one)
            dist.send(tensor, one)


def descend():
    """torch.optim would import a compiler first: a third of this job's CPU time."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
            parameter.grad = None


dist.init_process_group("gloo")
same_place = [range(local, dist.get_world_size(), A_HOST) for local in range(A_HOST)]
couples = [(pair, dist.new_group(pair) if EXCHANGE == "groups" else None)
           for ranks in same_place for pair in itertools.combinations(ranks, 2)] if EXCHANGE else []
payload = torch.zeros(1 << 17)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)))
truth, ready, after, slow_steps = [], [], [], []
for number in range(STEPS):
    if is_for_me("DIE", number) and not os.path.exists(os.path.join(FOLDER, "died")):
        leave("died")
        os.kill(os.getpid(), signal.SIGKILL)
    if is_for_me("HANG", number):
        time.sleep(3600)
    if os.environ.get("AT_STEP") == str(number):
        leave(f"at-{RANK}")
    loss = model(torch.randn(64, 256)).square().mean()
    if number % SLOW_EVERY == 0 and random.Random(number).random() < SLOW_SHARE:
        slow_steps.append(number)
    time.sleep(0.02 + (slow_steps[-1:] == [number]) * int(os.environ.get("SLEEP_MS", "0")) / 1e3)
    burn(int(os.environ.get("BURN_MS", "0")) / 1e3)
    ready.append(wall())
    loss.backward()
    descend()
    after.append(wall())
    exchange(couples, payload)
    if number == 0:
        truth.append(compare_clocks())
truth.append(compare_clocks())
leave(f"truth-{RANK}", json.dumps({"clocks": truth, "ready": ready, "after": after, "slow": slow_steps}))
dist.destroy_process_group()
