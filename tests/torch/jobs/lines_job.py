# SPDX-License-Identifier: MIT
"""Training on one GPU that waits for it in every step, for tests/torch/lines.py. Lines that the test looks up have a
name after "LINE"."""
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.full((256,), float(index % 7))


def train_step(model, optimizer, batch):
    loss = model(batch).square().mean()  # LINE forward
    loss.backward()  # LINE backward
    optimizer.step()
    optimizer.zero_grad()
    return loss


def log(loss):
    return loss.item()  # LINE item


def prepare(ended):
    """Makes tensors beside the training, as a thread that fills a queue of batches does."""
    while not ended.wait(0.002):
        torch.zeros(1 << 18)


def main():
    steps, size = int(sys.argv[1]), 4
    torch.manual_seed(0)
    layers = [nn.Linear(256, 256) for _ in range(8)]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    ended = threading.Event()
    beside = threading.Thread(target=prepare, args=(ended,))
    beside.start()
    total = 0.0
    for batch in DataLoader(Samples(steps * size), batch_size=size):  # LINE input
        batch = batch.to("cuda")  # LINE upload
        total += log(train_step(model, optimizer, batch))
    ended.set()
    beside.join()
    print("steps=%d" % steps)


main()
