#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NCCL collectives between the ranks of a job; with --profiler, each rank runs its own torch.profiler.

    torchrun --nproc-per-node 2 nccl_work.py [--profiler] [--one-gpu]

Rank 0 prints the results of all ranks, as a list in the order of ranks.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "jobs"))

import torch
import torch.distributed as dist

from profiled import mark, print_result, profiled
from train_nccl import share_one_gpu

ROUNDS = 3


def work(world, device):
    """Every collective that has its own kernel, with two types and two sizes, and a message in each direction."""
    for count in (1024, 1 << 18):
        for dtype in (torch.float32, torch.bfloat16):
            mine = torch.ones(count * world, dtype=dtype, device=device)
            part = torch.empty(count, dtype=dtype, device=device)
            whole = torch.empty(count * world * world, dtype=dtype, device=device)
            dist.all_reduce(mine)
            dist.broadcast(mine, src=0)
            dist.reduce_scatter_tensor(part, mine)
            dist.all_gather_into_tensor(whole, mine)
            dist.all_to_all_single(torch.empty_like(mine), mine)
    rank = dist.get_rank()
    if world > 1:
        peer = rank ^ 1
        given, taken = torch.ones(512, device=device), torch.empty(512, device=device)
        both = [dist.P2POp(dist.isend, given, peer), dist.P2POp(dist.irecv, taken, peer)]
        for request in dist.batch_isend_irecv(both):
            request.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiler", action="store_true", help="under torch.profiler")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on the first GPU")
    options = parser.parse_args()
    if options.one_gpu:
        share_one_gpu()
    device = torch.device("cuda", 0 if options.one_gpu else int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    world, found = dist.get_world_size(), {}
    work(world, device)
    torch.cuda.synchronize()
    with profiled(options.profiler, found):
        mark()
        for _ in range(ROUNDS):
            work(world, device)
        torch.cuda.synchronize()
        mark()
        torch.cuda.synchronize()
    everyone = [None] * world
    dist.all_gather_object(everyone, found)
    if dist.get_rank() == 0:
        print_result({"ranks": everyone})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
