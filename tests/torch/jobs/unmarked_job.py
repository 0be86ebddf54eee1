#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that run no optimizer of PyTorch's, on the CPU or a GPU, as in ordinary user code. Prints how many steps there
were, and how long the median took, in milliseconds.

    unmarked_job.py JOB DEVICE [STEPS]
"""
import itertools
import statistics
import sys
import time

import torch
import torch.nn.functional as F


def model_on(device):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(256, 256), torch.nn.ReLU()] * 3
    return torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)).to(device)


def batches(device, n):
    """As a loader prepares them: 20 ms each."""
    for _ in range(n):
        time.sleep(0.02)
        yield torch.randn(64, 256).to(device), torch.randint(10, (64,)).to(device)


def inference(device, n):
    """Answers are read batch by batch."""
    model = model_on(device).eval()
    with torch.no_grad():
        for inputs, _ in batches(device, n):
            model(inputs).argmax(dim=1).cpu()
            yield


def update_by_hand(model, rate=0.01):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= rate * parameter.grad
            parameter.grad = None


def by_hand(device, n):
    model = model_on(device)
    for inputs, targets in batches(device, n):
        F.cross_entropy(model(inputs), targets).backward()
        update_by_hand(model)
        yield


def accumulated(device, n, parts=4):
    """Three more parts of each batch at once, as they are there."""
    model = model_on(device)
    for inputs, targets in batches(device, n):
        for _ in range(parts):
            (F.cross_entropy(model(inputs), targets) / parts).backward()
        update_by_hand(model)
        time.sleep(0.01)
        yield


def answers(device, n):
    """Prompts of any length, answered token by token, until an end that no two answers share."""
    model = model_on(device).eval()
    ends = itertools.cycle([3, 11, 5, 17, 2, 8, 13])
    with torch.no_grad():
        for inputs, _ in batches(device, n):
            state = model(inputs[:8 + 8 * next(ends) % 64].repeat(8, 1))
            for _ in range(next(ends)):
                state = model(F.softmax(state, dim=1) @ torch.ones(10, 256, device=device))
                state.argmax(dim=1).cpu()
            yield


def main():
    job, device, steps = sys.argv[1], sys.argv[2], int((sys.argv + ["40"])[3])
    torch.set_num_threads(1)
    ends = [time.perf_counter() for _ in globals()[job](device, steps)]
    took = statistics.median(later - earlier for earlier, later in zip(ends, ends[1:]))
    print(f"{len(ends)} {1e3 * took:.3f}")


main()
