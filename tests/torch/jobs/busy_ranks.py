#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Any number of ranks that compute for SECONDS on gloo: busy_ranks.py SECONDS.

Each prints how long its threads ran and waited for a core in that time, as counted by the kernel, and the time, in ns.
"""
import os
import sys
import time

import torch
import torch.distributed as dist


def scheduled():
    """Nanoseconds that the threads of this process ran, and that they waited for a core."""
    ran = waited = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/schedstat") as file:
                numbers = file.read().split()
        except OSError:
            continue
        ran, waited = ran + int(numbers[0]), waited + int(numbers[1])
    return ran, waited


torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
begin, before = time.monotonic(), scheduled()
while True:
    enough = torch.tensor([float(time.monotonic() - begin > float(sys.argv[1]))])
    dist.all_reduce(enough)
    if enough.item() > 0:
        break
    model(torch.randn(128, 256)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
after, took = scheduled(), time.monotonic() - begin
sys.stdout.write(f"scheduled {after[0] - before[0]} {after[1] - before[1]} {int(1e9 * took)}\n")
dist.destroy_process_group()
