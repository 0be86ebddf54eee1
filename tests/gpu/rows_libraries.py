# SPDX-License-Identifier: MIT
"""Rows of scripts/gpu-check about libraries that launch kernels: tscope's records compared with
torch.profiler's, kernel by kernel, and the results compared with those without tscope."""
import collections

import work_parts
from judging import expect, gpu_parts, launch_parts, same_kernels
from machine import BARE, CUPTI, Failed, NotHere, demangled

RUN = ("GpuKernel", "CollectiveRun")


def compare(theirs, trace, who):
    """Compares the kernels that ran and the launches in the only part of a trace with torch.profiler's names
    and counts; returns the number of kernels and of different names."""
    ran, launched = gpu_parts(trace, RUN), launch_parts(trace)
    expect(len(theirs) == len(ran) == len(launched) == 1,
           f"{who}: {len(theirs)}, {len(ran)} and {len(launched)} parts")
    names = theirs[0]["kernels"]["names"]
    same_kernels(ran[0]["kernels"]["names"], names, f"{who}: kernels that ran, ours for theirs")
    same_kernels(launched[0]["kernels"]["names"], names, f"{who}: launch calls, ours for theirs")
    for kind in ("copies", "fills"):
        ours, profiler = (sum(part[0].get(kind, {"names": {}})["names"].values()) for part in (ran, theirs))
        expect(ours == profiler, f"{who}: {ours} {kind}, torch.profiler saw {profiler}")
    return sum(names.values()), len(names)


def library(machine, name, wanted=()):
    """Runs library_work.py alone under torch.profiler, and with the shim."""
    alone = machine.run("library_work.py", name, "--profiler", mode=BARE, limit=180).result
    run = machine.run("library_work.py", name, mode=CUPTI, limit=180)
    expect(run.result["checksum"] == alone["checksum"], "results differ")
    if not alone["profiler"]:
        raise NotHere("torch.profiler sees no kernels on this machine")
    kernels, names = compare(alone["profiler"], run.trace, name)
    seen = alone["profiler"][0]["kernels"]["names"]
    for part in wanted:
        expect(any(part in kernel for kernel in seen), f"no kernel has {part} in its name: {sorted(seen)[:8]}")
    return f"{kernels} kernels of {names} names, ran and launched, as torch.profiler has them"


def library_cublas(machine):
    """cuBLAS and cuBLASLt: the same names and numbers of kernels and launch calls as torch.profiler"""
    return library(machine, "cublas")


def library_cudnn(machine):
    """cuDNN: convolutions and their gradients, the same comparison"""
    return library(machine, "cudnn")


def library_flash_attention(machine):
    """PyTorch's FlashAttention, forward and backward: the same comparison"""
    return library(machine, "flash", ("flash_fwd", "flash_bwd"))


def library_efficient_attention(machine):
    """Memory-efficient attention, forward and backward: the same comparison"""
    return library(machine, "efficient", ("fmha",))


def library_cudnn_attention(machine):
    """cuDNN's attention: the same comparison"""
    return library(machine, "cudnn-attention")


def library_flash_attn(machine):
    """The package flash-attn: the same comparison"""
    return library(machine, "flash-attn", ("flash",))


def library_triton(machine):
    """A kernel in Triton: the same comparison"""
    return library(machine, "triton", ("doubled",))


def library_torch_compile(machine):
    """torch.compile, with Triton's kernels and cuBLAS: the same comparison"""
    return library(machine, "compiled", ("triton_",))


def library_nccl(machine):
    """NCCL between two ranks: the same comparison on each rank"""
    arguments = ("--one-gpu",) if machine.real else ()
    alone = machine.run("nccl_work.py", "--profiler", *arguments, mode=BARE, ranks=2, limit=120).result
    run = machine.run("nccl_work.py", *arguments, mode=CUPTI, ranks=2, limit=120)
    expect(len(run.traces) == 2, f"{len(run.traces)} traces of 2 ranks")
    if not all(found["profiler"] for found in alone["ranks"]):
        raise NotHere("torch.profiler sees no kernels on this machine")
    summary = []
    for trace, theirs in zip(run.traces, alone["ranks"]):
        kernels, names = compare(theirs["profiler"], trace, f"rank {trace.rank}")
        summary.append(f"rank {trace.rank}: {kernels} kernels of {names} names")
    return "; ".join(summary)


def run_jax(machine):
    run = machine.run("jax_work.py", mode=CUPTI, limit=180)
    plain = machine.run("jax_work.py", mode=BARE, limit=180).result
    expect(run.result["losses"] == plain["losses"], "losses differ")
    return run, plain


def library_jax(machine):
    """JAX: the same losses, and one launch call for each kernel; compared with JAX's own profiler"""
    if not machine.real:
        raise NotHere("needs a GPU: JAX does not start on the stand-ins")
    run, plain = run_jax(machine)
    trace = run.trace
    names = {shape.shape: demangled(trace.strings[shape.kernel]) for shape in trace.records["Shape"]}
    launched = collections.Counter(names.get(call.shape, "") for call in trace.records["Launch"])
    ran = collections.Counter(demangled(trace.strings[span.name]) for span in trace.records["GpuKernel"])
    expect(ran, "no kernel of JAX's in the trace")
    count = same_kernels(dict(launched), dict(ran), "launch calls for kernels that ran")
    summary = f"JAX {plain['jax']}: {count} kernels of {len(ran)} names, each launched once"
    try:
        theirs = machine.run("jax_work.py", "--profiler", mode=BARE, limit=180).result["kernels"]
    except Failed as reason:
        return f"{summary}; its own profiler cannot be compared: {reason}"
    if not theirs:
        return summary + "; its own profiler has no kernels"
    theirs = {name: number for name, number in theirs.items() if not name.startswith(("Memcpy", "Memset"))}
    return summary + "; its own profiler: " + (
        "the same" if theirs == dict(ran) else work_parts.difference(dict(ran), theirs) + " (ours for theirs)")
