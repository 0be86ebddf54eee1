#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training of a small transformer on GPUs with NCCL, as in ordinary user code, without anything for tscope or for the
stand-ins on which the tests run it.

    torchrun --nproc-per-node 4 tests/torch/jobs/train_nccl.py --grad-accum 2

Each rank prints the number of optimizer steps and a checksum of the results of integer collectives.
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Text(Dataset):
    def __init__(self, samples, length, vocabulary):
        self.shape = (samples, length, vocabulary)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        _, length, vocabulary = self.shape
        return (torch.arange(length + 1) * (index % 31 + 1)) % vocabulary


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width, blocks, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, max(4, width // 64)) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10, help="optimizer steps")
    parser.add_argument("--grad-accum", type=int, default=1, help="micro-steps to a step")
    parser.add_argument("--strategy", choices=["ddp", "zero", "fsdp"], default="ddp")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on the first GPU")
    parser.add_argument("--workers", type=int, default=0, help="DataLoader worker processes")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=512)
    parser.add_argument("--bucket-mb", type=float, default=0.5)
    return parser.parse_args()


def parallel(options, model, device):
    if options.strategy != "fsdp":
        model = DistributedDataParallel(model, device_ids=[device.index],
                                        bucket_cap_mb=options.bucket_mb)
    else:
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    if options.strategy != "zero":
        return model, torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)


def train(options, device):
    world = dist.get_world_size()
    samples = Text(world * options.batch * options.grad_accum * options.steps, options.length,
                   options.vocabulary)
    loader = DataLoader(samples, batch_size=options.batch, num_workers=options.workers,
                        sampler=DistributedSampler(samples, shuffle=False), pin_memory=True)
    model, optimizer = parallel(options, Transformer(options.width, options.blocks,
                                                     options.vocabulary).to(device), device)
    steps = 0
    for micro_step, tokens in enumerate(loader, start=1):
        last = micro_step % options.grad_accum == 0
        if options.strategy == "fsdp":
            model.set_requires_gradient_sync(last)
        else:
            model.require_backward_grad_sync = last
        tokens = tokens.to(device, non_blocking=True)
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        (loss / options.grad_accum).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    return steps


def exchange(device):
    """Integer collectives, whose results are easy to compute; returns their checksum."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = torch.arange(world * 5, dtype=torch.int64) * (rank + 1)
    summed = mine.to(device)
    dist.all_reduce(summed)
    gathered = torch.zeros(world * world * 5, dtype=torch.int64).to(device)
    dist.all_gather_into_tensor(gathered, mine.to(device))
    shard = torch.zeros(5, dtype=torch.int64).to(device)
    dist.reduce_scatter_tensor(shard, mine.to(device), op=dist.ReduceOp.MAX)
    exchanged = torch.zeros(world * 5, dtype=torch.int64).to(device)
    dist.all_to_all_single(exchanged, mine.to(device))
    pair = dist.new_group(list(range(min(world, 2))), group_desc="first-pair")
    received = mine.to(device)
    if rank < 2:
        dist.broadcast(received, src=min(world, 2) - 1, group=pair)
    message = {0: (dist.isend, world - 1), world - 1: (dist.irecv, 0)}.get(rank)
    if message and world > 1:
        way, peer = message
        for request in dist.batch_isend_irecv([dist.P2POp(way, received, peer)]):
            request.wait()
    whole = sum(range(1, world + 1))
    plain = torch.arange(world * 5, dtype=torch.int64)
    assert torch.equal(summed.cpu(), plain * whole)
    assert torch.equal(gathered.cpu(), torch.cat([plain * (r + 1) for r in range(world)]))
    assert torch.equal(shard.cpu(), (plain * world)[5 * rank:5 * rank + 5])
    assert torch.equal(exchanged.cpu(), torch.cat(
        [plain[5 * rank:5 * rank + 5] * (r + 1) for r in range(world)]))
    factor = 2 if rank in (0, 1, world - 1) and world > 1 else rank + 1
    assert torch.equal(received.cpu(), plain * factor)
    return sum(int(x.cpu().sum()) for x in (summed, gathered, shard, exchanged, received))


def share_one_gpu():
    """NCCL up to 2.29 refuses two ranks on one GPU of one host, so each rank gets its own host name, and they
    communicate through sockets."""
    os.environ.update(
        NCCL_HOSTID="r" + os.environ["RANK"], NCCL_NET="Socket", NCCL_IB_DISABLE="1",
        NCCL_SOCKET_IFNAME="lo", NCCL_MNNVL_ENABLE="0", NCCL_NVLS_ENABLE="0", NCCL_RAS_ENABLE="0",
        NCCL_MAX_CTAS="2", NCCL_MULTI_RANK_GPU_ENABLE="1")


def main():
    options = parse_arguments()
    if options.one_gpu:
        share_one_gpu()
    device = torch.device("cuda", 0 if options.one_gpu else int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.manual_seed(1)
    dist.init_process_group("nccl", device_id=device)
    checksum = exchange(device)
    steps = train(options, device)
    dist.barrier()
    torch.cuda.synchronize()
    # In one write, because the other ranks write to the same place.
    print(f"rank={dist.get_rank()} steps={steps} checksum={checksum}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
