#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training whose whole step is one CUDA graph, with an all-reduce of the gradients in it, and a forward pass that is
graphed by make_graphed_callables. It has no code for tscope.

    torchrun --nproc-per-node 2 tests/torch/jobs/graphed.py

Each rank prints the number of replays and the results of integer sums in the graph."""
import os

import torch
import torch.distributed as dist
from torch import nn

REPLAYS = 6


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.manual_seed(1)
    dist.init_process_group("nccl", device_id=device)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    given = torch.zeros(32, 64).to(device)
    count = torch.ones(16, dtype=torch.int64).to(device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(given).square().mean().backward()
        gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
        dist.all_reduce(gradients)
        dist.all_reduce(count)
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    forward = torch.cuda.make_graphed_callables(nn.Linear(64, 64).to(device),
                                                (torch.zeros(8, 64).to(device).requires_grad_(),))
    for _ in range(REPLAYS):
        forward(torch.zeros(8, 64).to(device).requires_grad_()).sum().backward()
    torch.cuda.synchronize()
    print(f"rank={dist.get_rank()} replays={REPLAYS} count={int(count.cpu()[0])}\n", end="",
          flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
