# SPDX-License-Identifier: MIT
"""One rank of a pipeline over gloo, by a schedule of torch.distributed.pipelining: two stages a rank where the schedule
is of several, MICRO_BATCHES for each step. The second part of the model is slow.

    schedule_rank.py SCHEDULE [STEPS]
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed import pipelining

MICRO_BATCHES, WIDTH, SLOW_PART = 4, 64, 1


class Part(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.slow = number == SLOW_PART
        self.layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        time.sleep(0.001)
        if self.slow:
            time.sleep(0.006)  # the slow part
        return self.layers(x)


def main():
    schedule, steps = sys.argv[1], int((sys.argv + ["30"])[2])
    if not hasattr(pipelining, schedule):
        print("no such schedule")
        return
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    of_class = getattr(pipelining, schedule)
    several = not issubclass(of_class, pipelining.schedules.PipelineScheduleSingle)
    parts = world * (2 if several else 1)
    turns = schedule in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")
    mine = [rank, parts - 1 - rank if turns else rank + world] if several else [rank]
    like = torch.empty(1, WIDTH)
    stages = [pipelining.PipelineStage(Part(i), i, parts, torch.device("cpu"), input_args=like, output_args=like) for i in mine]
    for stage in stages:
        stage._get_init_p2p_neighbors_ops = lambda: []  # of a V it would send to itself, which gloo refuses
    plan = of_class(stages if several else stages[0], MICRO_BATCHES, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.SGD([p for stage in stages for p in stage.submod.parameters()], lr=1e-3)
    batch = torch.randn(MICRO_BATCHES, WIDTH)
    inputs, targets = ([batch] if 0 in mine else []), ({"target": batch} if parts - 1 in mine else {})
    for _ in range(steps):
        optimizer.zero_grad()
        plan.step(*inputs, **targets)
        optimizer.step()
    dist.destroy_process_group()


main()
