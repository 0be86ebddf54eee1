#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Work of one library on a GPU; its kernels are compared with those of torch.profiler.

    library_work.py cublas|cudnn|flash|efficient|cudnn-attention|flash-attn|triton|compiled [--profiler]

The work runs once as a warm-up, which compiles, loads and chooses kernels, and then ROUNDS times between
two markers (profiled.py). If the library is missing or does not support this device, exits with 77 and
prints the reason on the last line.
"""
import argparse
import hashlib
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from profiled import mark, print_result, profiled

ROUNDS = 3
HEADS, HEAD, LENGTH = 8, 64, 256


def ones(*shape, dtype=torch.bfloat16, gradient=False):
    made = torch.full(shape, 0.03125, dtype=dtype, device="cuda")
    return made.requires_grad_(gradient)


def cublas():
    """GEMMs of all types, batched ones, with a bias and an activation (cuBLASLt), and their gradients."""
    def work():
        results = []
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            a, b = ones(96, 128, dtype=dtype), ones(128, 160, dtype=dtype)
            results += [a @ b, torch.bmm(a.expand(3, -1, -1), b.expand(3, -1, -1)), torch.mv(a, b[:, 0])]
        x, weight, bias = ones(64, 256), ones(512, 256, gradient=True), ones(512, gradient=True)
        out = torch._addmm_activation(bias.detach(), x, weight.detach().t(), use_gelu=True)
        F.linear(x, weight, bias).sum().backward()
        return results + [out, weight.grad, bias.grad]
    return work


def cudnn():
    """Convolutions and their gradients, and batch norm."""
    if not torch.backends.cudnn.is_available():
        raise LookupError("PyTorch finds no cuDNN")
    norm = torch.nn.BatchNorm2d(32).cuda()

    def work():
        x, weight = ones(4, 16, 32, 32, gradient=True), ones(32, 16, 3, 3, gradient=True)
        out = norm(F.conv2d(x, weight, padding=1).float())
        out.sum().backward()
        return [out, x.grad, weight.grad]
    return work


def attention(backend, function=F.scaled_dot_product_attention):
    def work():
        q, k, v = (ones(2, HEADS, LENGTH, HEAD, gradient=True) for _ in range(3))
        with sdpa_kernel(backend):
            out = function(q, k, v, is_causal=True)
        out.float().sum().backward()
        return [out, v.grad]
    return work


def flash():
    """The FlashAttention of PyTorch, forward and backward."""
    return attention(SDPBackend.FLASH_ATTENTION)


def efficient():
    """Memory-efficient attention (xFormers' kernels, in PyTorch), forward and backward."""
    return attention(SDPBackend.EFFICIENT_ATTENTION)


def cudnn_attention():
    """cuDNN's attention, whose kernels are compiled at run time."""
    return attention(SDPBackend.CUDNN_ATTENTION)


def flash_attn():
    """FlashAttention of the package flash-attn."""
    from flash_attn import flash_attn_func  # pylint: disable=import-error

    def work():
        q, k, v = (ones(2, LENGTH, HEADS, HEAD, gradient=True) for _ in range(3))
        out = flash_attn_func(q, k, v, causal=True)
        out.float().sum().backward()
        return [out, v.grad]
    return work


def triton():
    """A kernel of this folder, written in Triton."""
    import triton_kernels

    def work():
        numbers = ones(1000, dtype=torch.float32)
        return [triton_kernels.doubled_copy(numbers) for _ in range(4)]
    return work


def compiled():
    """torch.compile: Triton's pointwise and reduction kernels, and cuBLAS between them."""
    norm = torch.nn.LayerNorm(256).cuda()
    model = torch.compile(lambda x, weight: norm(F.gelu(x @ weight) * 3 + 1).softmax(-1))

    def work():
        x, weight = (ones(n, 256, dtype=torch.float32, gradient=True) for n in (64, 256))
        out = model(x, weight)
        out.square().sum().backward()
        return [out, weight.grad]
    return work


WORKS = {work.__name__.replace("_", "-"): work
         for work in (cublas, cudnn, flash, efficient, cudnn_attention, flash_attn, triton, compiled)}


def checksum(results):
    """A checksum of all bits of the results."""
    total = hashlib.sha256()
    for tensor in results:
        total.update(bytes(tensor.detach().contiguous().cpu().view(torch.uint8).flatten().tolist()))
    return total.hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=WORKS)
    parser.add_argument("--profiler", action="store_true", help="under torch.profiler")
    options = parser.parse_args()
    found = {}
    try:
        work = WORKS[options.library]()
        work()
        torch.cuda.synchronize()
    except Exception as error:  # something is missing: prints what, and nothing is compared
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"{options.library}: {type(error).__name__}: {reason[:200]}", file=sys.stderr)
        return 77
    with profiled(options.profiler, found):
        mark()
        for _ in range(ROUNDS):
            results = work()
        mark()
        torch.cuda.synchronize()
    found["checksum"] = checksum(results)
    print_result(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
