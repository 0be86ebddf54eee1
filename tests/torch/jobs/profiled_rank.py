# SPDX-License-Identifier: MIT
"""One rank of a job over gloo whose last rank does more than its peers, recorded by PyTorch's own profiler. Writes the
recording, and how long in each step the rank's own work took, and of it what only one rank does, in ms.

    profiled_rank.py FOLDER KIND
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

# On a busy machine steps are like their neighbours: a rank that is last in 14 of 15 may be so by chance.
WAIT, WARMUP, ACTIVE = 2, 2, 32


def extra(kind, matrix):  # the other work
    """What only one rank does: more of what all do, another operator, or nothing that the profiler sees."""
    if kind == "sleep":
        time.sleep(0.03)
    elif kind == "sort":
        for _ in range(2):
            torch.sort(matrix.flatten())
    elif kind in ("products", "plain"):
        for _ in range(15):
            matrix @ matrix


def train(kind, model, optimizer, rank, recording):
    slow = rank == dist.get_world_size() - 1
    batch, matrix, own, more = torch.randn(64, 128), torch.randn(384, 384), [], []
    alone = time.perf_counter()  # from here on, until backward, it waits for nobody
    for _ in range(WAIT + WARMUP + ACTIVE):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        begin = time.perf_counter()
        if slow:
            extra(kind, matrix)
        comes = time.perf_counter()
        own.append(1e3 * (comes - alone))
        more.append(1e3 * (comes - begin))
        loss.backward()
        if kind == "plain":  # no DDP: reduces by itself
            for weights in model.parameters():
                dist.all_reduce(weights.grad)
        alone = time.perf_counter()
        optimizer.step()
        recording.step()
    return {"rank": rank, "own": own[-ACTIVE:], "more": more[-ACTIVE:]}


def main():
    folder, kind = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(3)))
    if kind != "plain":
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True,
                 schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE)) as recording:
        took = train(kind, model, optimizer, rank, recording)
    recording.export_chrome_trace(os.path.join(folder, f"rank{rank}.json"))
    sys.stdout.write(json.dumps(took) + "\n")  # at once: the ranks share the output
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
