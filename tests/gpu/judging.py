# SPDX-License-Identifier: MIT
"""Functions that several rows of scripts/gpu-check use."""
import work_parts
from machine import CUPTI, EVENTS, HOST, OFF, Failed, demangled
from read_trace import ENUMS

GPU_CLOCKS = ENUMS["GPU_CLOCKS"]


def expect(condition, what):
    if not condition:
        raise Failed(what)


def near(seen, wanted, share, what):
    """Expects a figure to differ from the wanted one by at most `share`; returns the difference as text."""
    expect(seen is not None, f"{what}: missing in the report, it should be {wanted:.6g}")
    difference = seen / wanted - 1
    expect(abs(difference) <= share, f"{what}: {seen:.6g}, it should be {wanted:.6g}: {difference:+.2%}, "
           f"allowed {share:.1%}")
    return f"{difference:+.2%}"


def modes(machine):
    """The modes in which work is compared; on the stand-ins only two."""
    return (OFF, CUPTI, EVENTS, HOST) if machine.real else (CUPTI, EVENTS)


def clock_sources(trace):
    """The sources of GPU times in a trace, in their order, with the reasons: [(source, reason)]."""
    names = {value: name for name, value in GPU_CLOCKS.items()}
    sources = []
    for record in trace.records["GpuClock"]:
        sources.append((names[record.tag], trace.strings[record.reason]))
    return sources


def gpu_parts(trace, kernels=("GpuKernel",)):
    """The work on the GPU, cut at the markers like that of torch.profiler (work_parts.py)."""
    spans = [(span.time, demangled(trace.strings[span.name]), span.dur * 1e-9, "kernels")
             for record in kernels for span in trace.records[record]]
    for record, kind in (("GpuMemcpy", "copies"), ("GpuMemset", "fills")):
        spans += [(span.time, kind, span.dur * 1e-9, kind) for span in trace.records[record]]
    parts = work_parts.cut([span[1:] for span in sorted(spans)])
    expect(parts, f"no kernels of the work in the trace; sources of GPU times: {clock_sources(trace)}")
    return parts


def launch_parts(trace):
    """The launch calls by kernel name, cut at the launches of the markers."""
    names = {shape.shape: demangled(trace.strings[shape.kernel]) for shape in trace.records["Shape"]}
    calls = sorted((call.time, names.get(call.shape, "")) for call in trace.records["Launch"])
    return work_parts.cut([(name, 0.0, "kernels") for _, name in calls])


def same_kernels(ours, theirs, what):
    """Expects the same number of each kernel; returns the total."""
    expect(ours == theirs, f"{what}: " + work_parts.difference(ours, theirs))
    return sum(ours.values())
