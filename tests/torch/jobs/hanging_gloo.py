#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop on gloo in which rank 1 does something else in step 5: hanging_gloo.py STORE FAULT, with RANK and
WORLD_SIZE set. It has no code for tscope."""
import os
import signal
import sys

import torch
import torch.distributed as dist


def main():
    store, fault = sys.argv[1:]
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=int(os.environ["WORLD_SIZE"]))
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        model(torch.ones(8, 64)).sum().backward()
        if rank == 1 and step == 5:
            if fault == "sleep":
                signal.pause()
            elif fault == "other":
                dist.all_gather([torch.zeros(4) for _ in range(dist.get_world_size())],
                                torch.ones(4))
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()


main()
