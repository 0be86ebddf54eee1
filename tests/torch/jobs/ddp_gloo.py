#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain data-parallel training on the CPU, as in ordinary user code, without anything for tscope.

    torchrun --nproc-per-node 4 tests/torch/jobs/ddp_gloo.py --straggler-rank 2

Rank 0 prints the number of optimizer steps, and the exact final loss (float.hex()). It prints the median time and the
mean CPU time of a step to stderr.
"""
import argparse
import gc
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Samples(Dataset):
    """Made from their index, so that every run and every worker gets the same samples."""

    def __init__(self, count, features):
        self.count = count
        self.features = features

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        wave = torch.arange(self.features, dtype=torch.float32) * (index % 97 + 1) * 0.01
        return torch.sin(wave), torch.cos(wave[:1])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        return x + self.layers(x)


class Model(nn.Module):
    def __init__(self, width, blocks, recompute):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 1)
        self.recompute = recompute

    def forward(self, x):
        for block in self.blocks:
            if self.recompute == "none":
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.recompute == "reentrant")
        return self.head(x)


class OnDevice(nn.Module):
    """Stands in for an accelerator, which works in parallel with the host: a forward pass ends no sooner than `seconds`
    after the previous backward pass, so the host's work until then is hidden."""

    def __init__(self, model, seconds):
        super().__init__()
        self.model = model
        self.seconds = seconds
        self.free_since = time.perf_counter()

    def forward(self, x):
        output = self.model(x)
        left = self.free_since + self.seconds - time.perf_counter()
        if left > 0:
            time.sleep(left)
        return output


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="optimizer steps")
    parser.add_argument("--batch", type=int, default=32, help="samples per rank and micro-step")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--grad-accum", type=int, default=1, help="micro-steps per optimizer step")
    parser.add_argument("--checkpoint", choices=["none", "reentrant", "plain"], default="none",
                        help="recompute the forward pass inside the backward pass")
    parser.add_argument("--workers", type=int, default=0, help="DataLoader worker processes")
    parser.add_argument("--base-ms", type=float, default=60.0,
                        help="time that a micro-step takes on the accelerator, of which there is "
                             "none: it leaves the few cores of a test machine to the other ranks")
    parser.add_argument("--straggler-rank", type=int, default=-1)
    parser.add_argument("--straggler-ms", type=float, default=25.0,
                        help="what it takes longer on the straggler")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def train(options):
    rank, world = dist.get_rank(), dist.get_world_size()
    samples = Samples(world * options.batch * options.grad_accum * options.steps, options.width)
    sampler = DistributedSampler(samples, shuffle=False)
    loader = DataLoader(samples, batch_size=options.batch, sampler=sampler,
                        num_workers=options.workers)
    extra_ms = options.straggler_ms if rank == options.straggler_rank else 0.0
    device = OnDevice(Model(options.width, options.blocks, options.checkpoint),
                      (options.base_ms + extra_ms) / 1000)
    model = DistributedDataParallel(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()

    ends, cpu_start = [], time.process_time()
    for micro_step, (x, y) in enumerate(loader, start=1):
        x.requires_grad_(options.checkpoint == "reentrant")
        last = micro_step % options.grad_accum == 0
        model.require_backward_grad_sync = last
        loss = criterion(model(x), y) / options.grad_accum
        loss.backward()
        device.free_since = time.perf_counter()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            ends.append(time.perf_counter())
    dist.all_reduce(loss.detach_())
    if rank == 0:
        print(f"steps={len(ends)} loss={loss.item().hex()}", flush=True)
        times = [later - earlier for earlier, later in zip(ends, ends[1:])]
        cpu = (time.process_time() - cpu_start) / len(ends)
        print(f"step_ms={1000 * statistics.median(times):.3f} cpu_step_ms={1000 * cpu:.4f}",
              file=sys.stderr)


def main():
    options = parse_arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo")
    train(options)
    # The model's reference cycles keep the process group alive. If they were freed during the interpreter's shutdown,
    # gloo's threads would need the interpreter's lock then, and PyTorch would abort.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
