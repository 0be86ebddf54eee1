# SPDX-License-Identifier: MIT
"""A backward pass that goes through two models, each in DistributedDataParallel, as of a generator and what judges it:
two_models.py STEPS. Rank 1 comes to the second one's gradients later."""
import gc
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def slow(_):
    time.sleep(0.03)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    maker, judge = (DistributedDataParallel(torch.nn.Linear(16, 16)) for _ in range(2))
    optimizer = torch.optim.SGD([*maker.parameters(), *judge.parameters()], lr=0.01)
    for _ in range(int(sys.argv[1])):
        optimizer.zero_grad()
        made = maker(torch.ones(4, 16))
        if int(os.environ["RANK"]) == 1:
            made.register_hook(slow)
        judge(made).square().mean().backward()
        optimizer.step()
    del maker, judge
    gc.collect()  # DDP's models hold the group, whose threads may outlive the interpreter: docs/harm.md
    dist.destroy_process_group()


main()
