# SPDX-License-Identifier: MIT
"""What the rows of scripts/gpu-check have in common."""
import work_parts
from machine import CUPTI, EVENTS, HOST, OFF, Failed, demangled
from read_trace import ENUMS

GPU_CLOCKS = ENUMS["GPU_CLOCKS"]


def expect(condition, what):
    if not condition:
        raise Failed(what)


def near(seen, wanted, share, what):
    """Expects a figure to be what it should be, but for a share; gives the difference as text."""
    expect(seen is not None, f"{what}: the report says nothing, it should be {wanted:.6g}")
    apart = seen / wanted - 1
    expect(abs(apart) <= share, f"{what}: {seen:.6g}, it should be {wanted:.6g}: {apart:+.2%}, "
           f"allowed is {share:.1%}")
    return f"{apart:+.2%}"


def modes(machine):
    """Those in which work is compared; the stand-ins rehearse two."""
    return (OFF, CUPTI, EVENTS, HOST) if machine.real else (CUPTI, EVENTS)


def clock_sources(trace):
    """The sources of GPU time that a trace names, in their order, with the reasons."""
    names = {value: name for name, value in GPU_CLOCKS.items()}
    told = []
    for record in trace.records["GpuClock"]:
        told.append((names[record.tag], trace.strings[record.reason]))
    return told


def gpu_parts(trace, kernels=("GpuKernel",)):
    """What ran on the GPU, cut at the markers like torch.profiler's (work_parts.py)."""
    spans = [(span.time, demangled(trace.strings[span.name]), span.dur * 1e-9, "kernels")
             for record in kernels for span in trace.records[record]]
    for record, kind in (("GpuMemcpy", "copies"), ("GpuMemset", "fills")):
        spans += [(span.time, kind, span.dur * 1e-9, kind) for span in trace.records[record]]
    parts = work_parts.cut([span[1:] for span in sorted(spans)])
    expect(parts, f"no kernels of the work in the trace; GPU time was had so: {clock_sources(trace)}")
    return parts


def launch_parts(trace):
    """The launch calls, by the name of their kernel, cut at the calls that launched the markers."""
    names = {shape.shape: demangled(trace.strings[shape.kernel]) for shape in trace.records["Shape"]}
    calls = sorted((call.time, names.get(call.shape, "")) for call in trace.records["Launch"])
    return work_parts.cut([(name, 0.0, "kernels") for _, name in calls])


def same_kernels(ours, theirs, what):
    """Expects the same kernels as often; gives their number."""
    expect(ours == theirs, f"{what}: " + work_parts.difference(ours, theirs))
    return sum(ours.values())
