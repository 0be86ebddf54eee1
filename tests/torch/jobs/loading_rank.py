# SPDX-License-Identifier: MIT
"""One rank of a job over gloo whose batches take time. Writes the mean length of its later steps, in ms.

    loading_rank.py [--load-ms MS] [--slow-rank R --slow-ms MS] [--work-ms MS] [--workers N] [--late-ms MS]
"""
import argparse
import os
import random
import time

import torch
import torch.distributed as dist

STEPS, FIRST = 60, 10


class Samples(torch.utils.data.Dataset):
    def __init__(self, ms):
        self.ms = ms

    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        time.sleep(self.ms / 4e3)  # the loading
        return torch.ones(16)


def train(loader, work_ms):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ends = []
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch).sum()
        time.sleep(work_ms * random.uniform(0.8, 1.2) / 1e3)  # in no phase
        loss.backward()
        optimizer.step()
        ends.append(time.perf_counter())
    return 1e3 * (ends[-1] - ends[FIRST]) / (len(ends) - 1 - FIRST)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--load-ms", type=float, default=20)
    parser.add_argument("--slow-rank", type=int, default=-1)
    parser.add_argument("--slow-ms", type=float, default=0)
    parser.add_argument("--work-ms", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--late-ms", type=float, default=0, help="rank 1 begins so much later")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ms = options.load_ms + (options.slow_ms if rank == options.slow_rank else 0)
    loader = torch.utils.data.DataLoader(Samples(ms), batch_size=4, num_workers=options.workers)
    dist.barrier()
    if rank == 1:
        time.sleep(options.late_ms / 1e3)
    step_ms = train(loader, options.work_ms)
    if rank == 0:
        print(step_ms)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
