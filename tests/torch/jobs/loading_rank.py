# SPDX-License-Identifier: MIT
"""One rank of a job over gloo whose batches take time. Writes into a folder when it did what, for loaders.py.

    loading_rank.py [--load-ms MS] [--slow-rank R --slow-ms MS] [--work-ms MS] [--workers N] [--ahead N] [--late-ms MS]
        [--pause-ms MS] [--steps N] [--times FOLDER]
"""
import argparse
import gc
import json
import os
import random
import time

import torch
import torch.distributed as dist

class Samples(torch.utils.data.Dataset):
    def __init__(self, ms, steps):
        self.ms = ms
        self.steps = steps

    def __len__(self):
        return 4 * self.steps

    def __getitem__(self, index):
        time.sleep(self.ms / 4e3)  # the loading
        return torch.ones(16), torch.tensor(time.perf_counter(), dtype=torch.float64)


def train(loader, work_ms, pause_ms):
    """For each step: when it wanted a batch, had one, which was ready since; when it worked, went backward, and ended."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps, wants = [], time.perf_counter()
    for batch, ready in loader:
        has = time.perf_counter()
        optimizer.zero_grad()
        loss = model(batch).sum()
        works = time.perf_counter()
        pause = pause_ms if random.random() < 1 / 8 else 0
        time.sleep((work_ms * random.uniform(0.8, 1.2) + pause) / 1e3)  # in no phase
        backward = time.perf_counter()
        loss.backward()
        optimizer.step()
        ends = time.perf_counter()
        steps.append({"wants": wants, "ready": ready.max().item(), "has": has, "works": works, "backward": backward,
                      "ends": ends})
        wants = ends
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--load-ms", type=float, default=20)
    parser.add_argument("--slow-rank", type=int, default=-1)
    parser.add_argument("--slow-ms", type=float, default=0)
    parser.add_argument("--work-ms", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ahead", type=int, default=2)
    parser.add_argument("--late-ms", type=float, default=0, help="rank 1 begins so much later")
    parser.add_argument("--pause-ms", type=float, default=0, help="more work in one step of eight")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--times")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ms = options.load_ms + (options.slow_ms if rank == options.slow_rank else 0)
    loader = torch.utils.data.DataLoader(Samples(ms, options.steps), batch_size=4, num_workers=options.workers,
                                         prefetch_factor=options.ahead if options.workers else None)
    dist.barrier()
    if rank == 1:
        time.sleep(options.late_ms / 1e3)
    steps = train(loader, options.work_ms, options.pause_ms)
    if options.times:
        with open(os.path.join(options.times, f"rank{rank}.json"), "w", encoding="utf-8") as out:
            json.dump(steps, out)
    gc.collect()  # DDP's model holds the group, whose threads may outlive the interpreter: docs/harm.md
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
