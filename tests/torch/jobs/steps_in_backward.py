# SPDX-License-Identifier: MIT
"""Each parameter takes its step inside the backward pass, from step FIRST on: steps_in_backward.py FIRST STEPS."""
import sys

import torch

first, steps = map(int, sys.argv[1:])
torch.manual_seed(1)
model = torch.nn.Linear(10, 1)
optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in model.parameters()}


def take_step(parameter):
    if step >= first:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()


for one in model.parameters():
    one.register_post_accumulate_grad_hook(take_step)
for step in range(steps):
    loss = model(torch.ones(4, 10)).square().mean()
    loss.backward()
print(loss.item().hex())
