# SPDX-License-Identifier: MIT
"""A PyTorch job with very small steps, to measure what the preload adds: torch_steps.py [STEPS].

30 linear layers of 16 x 16 on the CPU have many operators with little arithmetic, so the relative cost of hooks is
as high as it can be. Prints the CPU time of the training thread per step, the minimum of 100 blocks of 20 steps, in
microseconds. With STEPS, runs that number of steps under callgrind, which counts only those:

    valgrind --tool=callgrind --instr-atstart=no --separate-threads=yes python3 torch_steps.py 40
"""
import os
import subprocess
import sys
import time

import torch


def job():
    model = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(30)])
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    batch = torch.randn(4, 16)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return step


def switch_callgrind(state):
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], env=environment, check=True)


def main():
    torch.set_num_threads(1)
    step = job()
    for _ in range(30):
        step()
    if len(sys.argv) > 1:
        switch_callgrind("on")
        for _ in range(int(sys.argv[1])):
            step()
        switch_callgrind("off")
        return
    best = float("inf")
    for _ in range(100):
        begin = time.thread_time()
        for _ in range(20):
            step()
        best = min(best, (time.thread_time() - begin) / 20)
    print(f"{best * 1e6:.1f} us of CPU time per step")


main()
