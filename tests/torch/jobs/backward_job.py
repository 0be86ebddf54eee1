# SPDX-License-Identifier: MIT
"""Training on one GPU, for tests/torch/lines.py. The number of kernels that each line launches is known, in the forward
pass and in the backward pass: sin() and cos() are one kernel each; the backward of sin() is two, cos() and a product,
and that of cos() has a change of sign in addition. Lines that the test looks up have a name after "LINE"."""
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Double(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x * 2  # LINE custom

    @staticmethod
    def backward(_, gradient):
        return gradient * 2  # LINE custom backward


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        x = x * self.weight
        for _ in range(6):
            x = x.sin()  # LINE six times
        x = x.cos()  # LINE once
        x = Double.apply(x)
        return checkpoint(self.recomputed, x, use_reentrant=False)

    def recomputed(self, x):
        return x.sin()  # LINE recomputed


def main():
    steps = int(sys.argv[1])
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.ones(8, 64, device="cuda")
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()  # LINE backward
        optimizer.step()
    print("steps=%d" % steps)


main()
