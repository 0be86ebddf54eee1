# SPDX-License-Identifier: MIT
"""Data-parallel training on hosts with clocks of their own. Writes how far this host's monotonic clock is behind the wall
clock, which all hosts share: in the middle of the closest of many readings.

DIE=RANK:STEP kills a rank (SIGKILL), once; HANG=RANK:STEP lets it sleep; AT_STEP=N writes a file "at-RANK" at that step."""
import os
import signal
import time

import torch
import torch.distributed as dist

RANK, FOLDER = int(os.environ["RANK"]), os.environ["TRUTH"]
STEPS = int(os.environ.get("STEPS", "60"))


def wall_minus_monotonic():
    best = None
    for _ in range(2000):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, wall - (before + after) // 2)
    return best[1]


def is_for_me(name, step):
    return os.environ.get(name) == f"{RANK}:{step}"


def leave(name, text=""):
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
        file.write(text)


def burn(seconds):
    """CPU time, which a quota makes last longer."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number in range(STEPS):
    if is_for_me("DIE", number) and not os.path.exists(os.path.join(FOLDER, "died")):
        leave("died")
        os.kill(os.getpid(), signal.SIGKILL)
    if is_for_me("HANG", number):
        time.sleep(3600)
    if os.environ.get("AT_STEP") == str(number):
        leave(f"at-{RANK}")
    loss = model(torch.randn(64, 256)).square().mean()
    time.sleep(0.02 + int(os.environ.get("SLEEP_MS", "0")) / 1e3)
    burn(int(os.environ.get("BURN_MS", "0")) / 1e3)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
leave(f"truth-{RANK}", str(wall_minus_monotonic()))
dist.destroy_process_group()
