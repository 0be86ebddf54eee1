# SPDX-License-Identifier: MIT
"""Training that continues after errors in the backward pass, with checkpointing after each error."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("out of luck")


torch.manual_seed(1)
model = nn.Linear(10, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    hidden = model(torch.ones(2, 10, requires_grad=True))
    if step in (1, 3):
        hidden = Fails.apply(hidden)
    elif step in (2, 4):
        hidden = checkpoint(model, hidden, use_reentrant=step == 2)
    loss = hidden.sum()
    try:
        loss.backward()
    except RuntimeError as error:
        print("caught", error)
    optimizer.step()
    optimizer.zero_grad()
print(loss.item().hex())
