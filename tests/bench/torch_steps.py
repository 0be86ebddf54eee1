# SPDX-License-Identifier: MIT
"""What the preload adds to PyTorch jobs with small steps, on the CPU: torch_steps.py JOB [STEPS]
or torch_steps.py --pairs LIBTSCOPE [PAIRS].

Small operators have little arithmetic, so the relative cost of hooks is as high as it can be. The jobs: `tiny`, 30
linear layers of 16 x 16; `small`, 20 layers with steps of about 0.5 ms; `medium`, 20 layers with steps of about 5 ms.

JOB prints the time per step in microseconds, the training thread's CPU time and the wall time, each the best of 60
blocks. --pairs runs `small` and `medium` in turn without and with the library, and prints the median of the ratios
of the pairs. With STEPS, JOB runs that number of steps under callgrind, which counts only those. Before them it runs
as many steps as it takes until stacks have used what they may use beyond their share when a process starts:

    valgrind --tool=callgrind --instr-atstart=no --separate-threads=yes python3 torch_steps.py tiny 100
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import clean_environment, observed_environment  # noqa: E402

# layers, width, rows of a batch, steps of a block
JOBS = {"tiny": (30, 16, 4, 20), "small": (20, 16, 4, 20), "medium": (20, 192, 64, 4)}
WARM_UP, WARM_UP_TO_COUNT = 30, 300  # steps


def job(name):
    import torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    layers, width, rows, _ = JOBS[name]
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    batch = torch.randn(rows, width)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return step


def switch_callgrind(state):
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], env=clean_environment(), check=True)


def run_job(name, steps):
    step = job(name)
    for _ in range(WARM_UP_TO_COUNT if steps else WARM_UP):
        step()
    if steps:
        switch_callgrind("on")
        for _ in range(steps):
            step()
        switch_callgrind("off")
        return
    block = JOBS[name][3]
    cpu, wall = [], []
    for _ in range(60):
        begin = time.thread_time(), time.perf_counter()
        for _ in range(block):
            step()
        cpu.append((time.thread_time() - begin[0]) / block)
        wall.append((time.perf_counter() - begin[1]) / block)
    print(f"{min(cpu) * 1e6:.2f} {min(wall) * 1e6:.2f} us per step (CPU of the thread, wall)")


def run_pairs(library, pairs):
    def times(name, preload):
        with tempfile.TemporaryDirectory() as directory:
            environment = observed_environment(os.path.abspath(library) if preload else None, directory)
            done = subprocess.run([sys.executable, __file__, name], env=environment, check=True,
                                  capture_output=True, text=True)
        return [float(text) for text in done.stdout.split()[:2]]

    for name in "small", "medium":
        ratios, bare = [], []
        for number in range(pairs):
            order = (False, True) if number % 2 else (True, False)
            took = {preload: times(name, preload) for preload in order}
            ratios.append([with_ / without for with_, without in zip(took[True], took[False])])
            bare.append(took[False][0])
        cpu, wall = ([100 * (row[i] - 1) for row in ratios] for i in (0, 1))
        print(f"{name}: {statistics.median(bare):.0f} us per step; with tscope, median of {pairs} pairs: "
              f"{statistics.median(cpu):+.2f} % CPU time ({min(cpu):+.2f} to {max(cpu):+.2f}), "
              f"{statistics.median(wall):+.2f} % wall time", flush=True)


if sys.argv[1] == "--pairs":
    run_pairs(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 9)
else:
    run_job(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
