# SPDX-License-Identifier: MIT
"""One rank of a job as in ordinary user code: DDP over gloo, accumulated gradients, validation on all ranks every some
steps, checkpoints by rank 0 every some others. What a step contains is printed by rank 0 as JSON, with the time that
validation and checkpoints took, in milliseconds.

    validating_rank.py FILE [--steps N] [--accumulate N] [--validate-every N] [--batches N] [--own] [--save-every N]
        [--saves N] [--no-barrier] [--log-every N]
"""
import argparse
import contextlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=110)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--validate-every", type=int, default=20)
    parser.add_argument("--batches", type=int, default=80, help="of a validation")
    parser.add_argument("--own", action="store_true", help="validation without a collective")
    parser.add_argument("--save-every", type=int, default=25)
    parser.add_argument("--saves", type=int, default=12, help="as if the model were larger by this factor")
    parser.add_argument("--no-barrier", action="store_true", help="nobody waits for the checkpoint")
    parser.add_argument("--log-every", type=int, default=0, help="an all_reduce of the loss")
    return parser.parse_args()


def validate(model, loss_of, batches, reduce):
    model.eval()
    with torch.no_grad():
        total = sum(loss_of(model(inputs), targets) for inputs, targets in batches)
    if reduce:
        dist.all_reduce(total)
    model.train()


def save(model, optimizer, options):
    if dist.get_rank() == 0:
        for _ in range(options.saves):
            with open(options.file, "wb") as out:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
                out.flush()
                os.fsync(out.fileno())
    if not options.no_barrier:
        dist.barrier()


@contextlib.contextmanager
def timed(times, kind, step):
    begin = time.perf_counter()
    yield
    times.setdefault(kind, {})[step] = 1e3 * (time.perf_counter() - begin)


def main():
    options = parse_arguments()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = torch.nn.MSELoss()
    batch = (torch.randn(64, 256), torch.randn(64, 256))
    times = {}
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        for part in range(options.accumulate):
            last = part == options.accumulate - 1
            with contextlib.nullcontext() if last else model.no_sync():
                loss = loss_of(model(batch[0]), batch[1]) / options.accumulate
                loss.backward()
        optimizer.step()
        if options.log_every and step % options.log_every == 0:
            dist.all_reduce(loss.detach().clone().double())
        if step % options.validate_every == 0:
            with timed(times, "validation", step):
                validate(model, loss_of, [batch] * options.batches, not options.own)
        if step % options.save_every == 0:
            with timed(times, "checkpoint", step):
                save(model, optimizer, options)
    sys.stdout.write(json.dumps(times) + "\n")  # at once: the ranks share the output
    sys.stdout.flush()
    dist.destroy_process_group()


main()
