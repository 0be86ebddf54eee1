# SPDX-License-Identifier: MIT
"""One rank of a job that trains with DDP over gloo, in which a line is slow: slow_lines_job.py SCENARIO RANK STEPS
STORE. slow_lines.py looks for the comments at the ends of lines."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

SLOW_S = 0.03


def decode(index):
    time.sleep(SLOW_S)  # the decoder
    return torch.full((32,), float(index % 7))


class Samples(Dataset):
    def __init__(self, n, slow):
        self.n, self.slow = n, slow

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return decode(index) if self.slow else torch.zeros(32)


def count_tokens(text):
    """Pure Python, which calls nothing that a profiler of calls could see."""
    counts = {}
    until = time.perf_counter() + SLOW_S
    while time.perf_counter() < until:
        for word in text: counts[word] = counts.get(word, 0) + 1  # the loop
    return counts


def main():
    scenario, culprit, steps, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rank = int(os.environ["RANK"])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=int(os.environ["WORLD_SIZE"]))
    model = DistributedDataParallel(torch.nn.Linear(32, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    odd = rank == culprit
    slow = scenario in ("input", "workers") or (odd and scenario == "straggling-input")
    text = "the quick brown fox jumps over the lazy dog".split()
    kept = []
    if scenario == "straggling-library":
        sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
        from fitter.loop import Fitter  # pylint: disable=import-error
        Fitter(model, optimizer, odd).fit(DataLoader(Samples(steps, False), batch_size=1))
        dist.destroy_process_group()
        return
    for batch in DataLoader(Samples(steps, slow), batch_size=1, num_workers=scenario.endswith("workers")):
        if odd and scenario == "straggling-loop":
            count_tokens(text)
        if scenario.startswith("leak"):
            kept.append(torch.full((500_000,), 1.0))  # the leak
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


main()
