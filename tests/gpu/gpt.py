#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small GPT in bf16 whose number of operations is known in closed form. It is an ordinary
training script, with no code for tscope.

    gpt.py eager|fused|compiled|graphed [--small] [--steps N]
    torchrun --nproc-per-node 2 gpt.py fused --one-gpu

  eager     attention as GEMMs, an optimizer of several kernels
  fused     FlashAttention, a fused optimizer
  compiled  as fused, with torch.compile
  graphed   as compiled, with CUDA graphs (mode="reduce-overhead")

Prints one JSON object: the shape, the operations of a step in closed form, the time of each step measured by
this script, and the statistics of PyTorch's allocator. In a job of several ranks, rank 0 prints it.
"""
import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "jobs"))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from profiled import print_result
from train_nccl import share_one_gpu

WARMUP = 5


class Block(nn.Module):
    def __init__(self, shape, flash):
        super().__init__()
        width = shape["heads"] * shape["head"]
        self.heads, self.flash = shape["heads"], flash
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def attention(self, q, k, v):
        if self.flash:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        length = q.shape[-2]
        later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        x = x + self.out(self.attention(q, k, v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, shape, flash):
        super().__init__()
        width = shape["heads"] * shape["head"]
        self.embed = nn.Embedding(shape["vocabulary"], width)
        self.position = nn.Embedding(shape["length"], width)
        self.blocks = nn.ModuleList(Block(shape, flash) for _ in range(shape["layers"]))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, shape["vocabulary"], bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def closed_form(model, shape):
    """The operations of a step, forward and backward: for a linear layer 6 for each weight and token (PaLM,
    appendix B); for attention 12 x layers x heads x head size x length for each token. This counts the
    whole square of attention, of which FlashAttention computes half."""
    weights = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
    tokens = shape["batch"] * shape["length"]
    square = 12 * shape["layers"] * shape["heads"] * shape["head"] * shape["length"]
    return {"weights": weights, "tokens": tokens, "linear": 6 * weights * tokens,
            "attention": square * tokens}


def shape_of(options):
    if options.small:
        return {"layers": 2, "heads": 2, "head": 64, "length": 128, "vocabulary": 512, "batch": 2}
    return {"layers": 12, "heads": 16, "head": 96, "length": 1024, "vocabulary": 32768, "batch": 8}


def batches(shape, count, device):
    """Batches from pinned memory, as from a data loader."""
    for number in range(count):
        tokens = (torch.arange(shape["batch"] * (shape["length"] + 1)) * (number % 31 + 1)) % shape["vocabulary"]
        yield tokens.view(shape["batch"], -1).pin_memory().to(device, non_blocking=True)


def train(options, device):
    shape = shape_of(options)
    torch.manual_seed(3)
    flash = options.variant != "eager"
    plain = Gpt(shape, flash).to(device, torch.bfloat16)
    found = {"shape": shape, "flops": closed_form(plain, shape), "variant": options.variant,
             "parameters": sum(p.numel() for p in plain.parameters()),
             "device_bytes": torch.cuda.mem_get_info()[1]}
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-4, fused=flash)
    model = plain
    if dist.is_initialized():
        model = nn.parallel.DistributedDataParallel(plain, device_ids=[device.index])
    if options.variant == "compiled":
        model = torch.compile(model)
    elif options.variant == "graphed":
        model = torch.compile(model, mode="reduce-overhead")
    torch.cuda.reset_peak_memory_stats()
    ends, losses = [time.perf_counter()], []
    for tokens in batches(shape, options.steps, device):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        ends.append(time.perf_counter())
    took = [after - before for before, after in zip(ends, ends[1:])]
    stats = torch.cuda.memory_stats()
    found.update(steps=options.steps, took=took, median_s=statistics.median(took[WARMUP:]),
                 first_loss=losses[0], last_loss=losses[-1],
                 memory={name: stats[name] for name in (
                     "allocated_bytes.all.peak", "reserved_bytes.all.peak",
                     "allocated_bytes.all.current", "reserved_bytes.all.current", "num_ooms")})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variant", choices=["eager", "fused", "compiled", "graphed"])
    parser.add_argument("--small", action="store_true", help="small sizes for the stand-in GPU")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on the first GPU")
    options = parser.parse_args()
    several = "LOCAL_RANK" in os.environ
    if several and options.one_gpu:
        share_one_gpu()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) if several and not options.one_gpu else 0)
    torch.cuda.set_device(device)
    if several:
        dist.init_process_group("nccl", device_id=device)
    found = train(options, device)
    torch.cuda.synchronize()
    if not several or dist.get_rank() == 0:
        print_result(found)
    if several:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
