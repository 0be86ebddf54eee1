# SPDX-License-Identifier: MIT
"""Training on one GPU in which the host waits for the GPU at one line: waiting_job.py CASE STEPS. With `costs` it waits
for the loss of this step, so that the GPU is idle while the host does its own work. With `costs-nothing` it waits for
the loss of the step before, and the work of this step is already on the GPU. The line has a name after "LINE"."""
import sys
import time

import torch
from torch import nn

HOST_S = 0.012  # the host's own work in each step


def train_step(model, optimizer, batch):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def main():
    case, steps = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Tanh())]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.ones(16, 64, device="cuda")
    read, copied, total = torch.zeros((), pin_memory=True), torch.cuda.Event(), 0.0
    for step in range(steps):
        loss = train_step(model, optimizer, batch)
        if case == "costs":
            total += loss.item()  # LINE wait
        else:
            if step:
                copied.synchronize()  # LINE wait of the step before
                total += float(read)
            read.copy_(loss, non_blocking=True)
            copied.record()
        time.sleep(HOST_S)
    print("steps=%d" % steps)


main()
