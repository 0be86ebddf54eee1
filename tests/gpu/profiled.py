# SPDX-License-Identifier: MIT
"""Runs GPU work under torch.profiler and cuts it into parts; for the programs of scripts/gpu-check."""
import contextlib
import json
import os
import tempfile

import torch

import work_parts

KINDS = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "fills"}


def mark():
    torch.cuda._sleep(1000)


def kernels_before_their_launch(events):
    """How many kernels begin at least a millisecond before their launch call in the profile, because their
    times are on a wrong clock."""
    launched = {event["args"]["correlation"]: event["ts"] for event in events
                if event.get("cat") in ("cuda_runtime", "cuda_driver")
                and "correlation" in event.get("args", {})}
    return sum(event["ts"] < launched.get(event["args"].get("correlation"), 0) - 1000
               for event in events if event.get("cat") == "kernel")


@contextlib.contextmanager
def profiled(wanted, found):
    """Puts into `found` the kernels, copies and fills that torch.profiler recorded."""
    if not wanted:
        yield
        return
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        yield
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    spans = sorted((event["ts"], event["dur"], event["name"], KINDS[event["cat"]])
                   for event in events if event.get("cat") in KINDS)
    found["profiler"] = work_parts.cut([(name, duration * 1e-6, kind)
                                        for _, duration, name, kind in spans])
    found["too_early"] = found.get("too_early", 0) + kernels_before_their_launch(events)


def libraries():
    """The files of the CUDA libraries in this process."""
    names = ("libcupti.so", "libcudart.so", "libcuda.so", "libnccl.so", "libcublasLt.so", "libcudnn.so")
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split()[-1] for line in file if "/" in line}
    return sorted(path for path in paths if os.path.basename(path).startswith(names))


def print_result(found):
    """Prints a program's results, and the versions of what it ran on, as its last line."""
    found.update(device=torch.cuda.get_device_name(), torch=torch.__version__, libraries=libraries(),
                 cuda=torch.version.cuda, nccl=".".join(map(str, torch.cuda.nccl.version())))
    print(json.dumps(found), flush=True)
