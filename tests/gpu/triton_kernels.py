# SPDX-License-Identifier: MIT
"""A Triton kernel. It has its own file, because Triton reads the source of a kernel from its file."""
import torch
import triton
import triton.language as tl


@triton.jit
def doubled(source, target, n, block: tl.constexpr):
    index = tl.program_id(0) * block + tl.arange(0, block)
    inside = index < n
    tl.store(target + index, tl.load(source + index, mask=inside) * 2, mask=inside)


def doubled_copy(numbers):
    target = torch.empty_like(numbers)
    doubled[(triton.cdiv(numbers.numel(), 128),)](numbers, target, numbers.numel(), block=128)
    return target
