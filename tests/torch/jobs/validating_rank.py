# SPDX-License-Identifier: MIT
"""One rank of a job as in ordinary user code: DDP over gloo, gradients accumulated over two batches, validation on all
ranks every 20 steps, a checkpoint by rank 0 every 25 steps. validating_rank.py STEPS FILE"""
import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ACCUMULATED, VALIDATION_EVERY, VALIDATION_BATCHES, CHECKPOINT_EVERY = 2, 20, 80, 25


def validate(model, loss_of, batches):
    model.eval()
    with torch.no_grad():
        total = sum(loss_of(model(inputs), targets) for inputs, targets in batches)
    dist.all_reduce(total)
    model.train()
    return total.item() / len(batches) / dist.get_world_size()


def save(model, optimizer, file):
    """Saves several times, so that it takes as long as with a larger model."""
    if dist.get_rank() == 0:
        for _ in range(12):
            with open(file, "wb") as out:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
                out.flush()
                os.fsync(out.fileno())
    dist.barrier()


def main():
    steps, file = int(sys.argv[1]), sys.argv[2]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = torch.nn.MSELoss()
    batch = (torch.randn(64, 256), torch.randn(64, 256))
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        for part in range(ACCUMULATED):
            last = part == ACCUMULATED - 1
            with contextlib.nullcontext() if last else model.no_sync():
                (loss_of(model(batch[0]), batch[1]) / ACCUMULATED).backward()
        optimizer.step()
        if step % VALIDATION_EVERY == 0:
            validate(model, loss_of, [batch] * VALIDATION_BATCHES)
        if step % CHECKPOINT_EVERY == 0:
            save(model, optimizer, file)
    dist.destroy_process_group()


main()
