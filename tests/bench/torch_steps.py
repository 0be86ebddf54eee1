# SPDX-License-Identifier: MIT
"""What the preload adds to a job of very small steps on PyTorch: torch_steps.py [STEPS].

30 linear layers of 16 x 16 on the CPU: so many operators for so little arithmetic that hooks weigh as much as they
ever do. Prints the CPU time of the training thread for one step, the least of 100 blocks of 20, in microseconds. With
STEPS, it runs so many under callgrind, which counts only those:

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


def count(switch):
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(["callgrind_control", "-i", switch, str(os.getpid())], env=environment, check=True)


def main():
    torch.set_num_threads(1)
    step = job()
    for _ in range(30):
        step()
    if len(sys.argv) > 1:
        count("on")
        for _ in range(int(sys.argv[1])):
            step()
        count("off")
        return
    best = float("inf")
    for _ in range(100):
        begun = time.thread_time()
        for _ in range(20):
            step()
        best = min(best, (time.thread_time() - begun) / 20)
    print(f"{best * 1e6:.1f} us of CPU time a step")


main()
