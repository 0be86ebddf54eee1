#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every setting of env.def has its documented effect: settings.py --build BUILD [--list | VARIABLE...].

Each setting has a function with its name here, which runs a program with and without the setting and
checks the trace. A setting without a function is an error.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import observed  # noqa: E402
import read_trace  # noqa: E402
from built import built, standins_of  # noqa: E402
from mounts import mount_small  # noqa: E402
from outcomes import expect  # noqa: E402
from repeated import main  # noqa: E402

CLOCKS = read_trace.ENUMS["GPU_CLOCKS"]
LOSSES = read_trace.ENUMS["LOSSES"]
MIB = 1 << 20
BUILD = ""
CHECKS = {}

# tscope_step() makes the program a training program.
PYTHON = """
import ctypes
step = getattr(ctypes.CDLL(None), "tscope_step", lambda number: None)
step(ctypes.c_uint64(0))
"""


def variables():
    """The names of all settings, in the order of env.def."""
    for folder, _, files in os.walk(os.path.join(ROOT, "preload")):
        if "env.def" in files:
            with open(os.path.join(folder, "env.def"), encoding="utf-8") as file:
                return re.findall(r'X\(\w+, [A-Z]+, "(TSCOPE\w*)"', file.read())
    raise SystemExit("there is no env.def")


def setting(check):
    CHECKS[check.__name__.upper()] = check
    return check


def run(command, directory=None, **env):
    """The completed program and its traces."""
    with tempfile.TemporaryDirectory(prefix="tscope-settings-") as own:
        traces = directory or own
        preloaded = observed.observed_environment(built(BUILD, "libtscope.so"), traces, **env)
        return observed.run(*command, env=preloaded, timeout=100), read_trace.read_all(traces)


def train(*options, **env):
    """Runs one rank of the training program with short steps."""
    quick = ["--ranks", "1", "--steps", "12", "--forward-ms", "1", "--backward-ms", "1", "--optimizer-ms", "1"]
    return run([built(BUILD, "train"), *quick, *options], **env)


def python(program, **env):
    return run([sys.executable, "-c", PYTHON + program], **env)


def hazard(name, *arguments, directory=None, **env):
    folder = os.path.join(BUILD, "tests", "hazards")
    return run([os.path.join(folder, name), *arguments], directory, LD_LIBRARY_PATH=folder, **env)


def count(made, name):
    return sum(len(trace.records[name]) for trace in made[1])


def lost(made, reason):
    return sum(trace.lost[LOSSES[reason]] for trace in made[1])


@setting
def tscope():
    expect(len(train()[1]) == 1)
    for off in ("off", "0", "no", "false"):
        done, traces = train(TSCOPE=off)
        expect(not traces and not done.stderr, done)


@setting
def tscope_dir():
    with tempfile.TemporaryDirectory(prefix="tscope-settings-") as other:
        train(TSCOPE_DIR=os.path.join(other, "deep"))
        expect(len(read_trace.paths_under(os.path.join(other, "deep"))) == 1)


@setting
def tscope_run():
    trace, = train(TSCOPE_RUN="night-3")[1]
    expect(os.path.basename(os.path.dirname(trace.path)) == "night-3", trace.path)


@setting
def tscope_run_job():
    """A name that tscope-run set outside of any job gets a suffix for each task of a job array."""
    job = {"SLURM_JOB_ID": "71", "SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "3"}
    for given, name in {"none": "night-task3", "71": "night"}.items():
        trace, = train(TSCOPE_RUN="night", TSCOPE_RUN_JOB=given, **job)[1]
        expect(os.path.basename(os.path.dirname(trace.path)) == name, given, trace.path)


@setting
def tscope_access():
    for value, modes in {"owner": (0o700, 0o600), "group": (0o2750, 0o640)}.items():
        with tempfile.TemporaryDirectory(prefix="tscope-settings-") as parent:
            folder = os.path.join(parent, "made by tscope")
            trace, = run([built(BUILD, "train"), "--ranks", "1", "--steps", "2"],
                         directory=folder, TSCOPE_ACCESS=value)[1]
            seen = tuple(os.stat(path).st_mode & 0o7777 for path in (folder, trace.path))
        expect(seen == modes, value, [oct(mode) for mode in seen])


@setting
def tscope_gpu():
    for value, clock in {"auto": "CUPTI", "cupti": "CUPTI", "events": "EVENTS", "host": "HOST", "off": "HOST"}.items():
        made = train(TSCOPE_GPU=value)
        expect({record.tag for record in made[1][0].records["GpuClock"]} == {CLOCKS[clock]}, value)
        expect((count(made, "GpuKernel") > 0) == (clock == "CUPTI"), value)


@setting
def tscope_gpu_steps():
    marked = ["--marks", "1", "--steps", "40", "--ahead", "1"]
    some, whole = train(*marked, TSCOPE_GPU_STEPS="2/10"), train(*marked)
    expect(0 < count(some, "GpuKernel") < count(whole, "GpuKernel") / 2, count(some, "GpuKernel"))


@setting
def tscope_gpu_graphs():
    graph = ["--ranks", "2", "--graph", "4"]
    kernels, whole = train(*graph), train(*graph, TSCOPE_GPU_GRAPHS="whole")
    expect(count(whole, "GpuKernel") < count(kernels, "GpuKernel") / 2, count(whole, "GpuKernel"))


@setting
def tscope_gpu_gemms():
    timed = {value: count(train("--gemms", "2", TSCOPE_GPU="events", TSCOPE_GPU_GEMMS=value), "GpuWork")
             for value in ("0", "1", "16")}
    expect(0 == timed["0"] < timed["16"] < timed["1"] / 2, timed)


@setting
def tscope_nvtx():
    for value in ("on", "off"):
        made = hazard("nvtx", TSCOPE_NVTX=value)
        expect((count(made, "Range") > 0) == (value == "on"), value)


@setting
def tscope_scalars():
    program = "import os\nos.write(1, b'step 1: loss=2.5\\n')\nos.write(2, b'step 2: loss=1.5\\n')\n"
    for value, seen in {"off": [], "stdout": [1], "stderr": [2], "both": [1, 2]}.items():
        trace, = python(program, TSCOPE_SCALARS=value)[1]
        expect([scalar.step for scalar in trace.records["Scalar"]] == seen, value)


@setting
def tscope_driver():
    seen = {value: count(train("--gemms", "2", TSCOPE_DRIVER=value), "Launch") for value in ("on", "off")}
    expect(0 < seen["off"] < seen["on"], seen)


@setting
def tscope_lookups():
    program = 'ctypes.CDLL("libcudart.so.12").cudaMalloc(ctypes.byref(ctypes.c_void_p()), 4096)'
    for value in ("on", "off"):
        made = python(program, TSCOPE_LOOKUPS=value, LD_LIBRARY_PATH=standins_of(BUILD))
        expect(count(made, "Alloc") == (value == "on"), value)


@setting
def tscope_nccl_profiler():
    for value, expected in {"off": (False, False), "choices": (True, False), "times": (True, True)}.items():
        _, traces = train("--ranks", "2", TSCOPE_NCCL_PROFILER=value)
        inside = [record for trace in traces for record in trace.records["CollectiveInside"]]
        expect((bool(inside), any(record.gpu_stop for record in inside)) == expected, value)


@setting
def tscope_ring_max():
    small, large = (hazard("hazard", "busy", TSCOPE_RING_MAX=value) for value in ("1M", "256M"))
    expect(lost(small, "RING") > 0 and lost(large, "RING") == 0)
    expect(len(small[1][0].data) < 3 * MIB + 2 * MIB < len(large[1][0].data), len(small[1][0].data))


@setting
def tscope_retained_max():
    program = "for i in range(100000): step(ctypes.c_uint64(i))"
    small, large = (python(program, TSCOPE_RETAINED_MAX=value) for value in ("512K", "1G"))
    expect(lost(small, "RETAINED") > 0 and lost(large, "RETAINED") == 0)
    expect(0 < count(small, "Step") < count(large, "Step") == 100001)


@setting
def tscope_disk_free():
    """The shim leaves as much of the disk free as the setting says, but at most a twentieth."""
    with tempfile.TemporaryDirectory(prefix="tscope-settings-") as scratch:
        unmount = mount_small(scratch, 24)
        try:
            for value, least, most in (("0", 0, MIB // 2), ("1M", MIB, 2 * MIB), ("64M", 24 * MIB // 20, 3 * MIB)):
                hazard("hazard", "busy", directory=os.path.join(scratch, value), TSCOPE_DISK_FREE=value)
                disk = os.statvfs(scratch)
                left = disk.f_bavail * disk.f_frsize
                expect(least <= left < most, value, left)
                subprocess.run(["rm", "-rf", os.path.join(scratch, value)], check=True)
        finally:
            unmount()


@setting
def tscope_verbose():
    quiet, verbose = train(TSCOPE_VERBOSE="0")[0].stderr, train(TSCOPE_VERBOSE="1")[0].stderr
    expect(not quiet and "tscope: trace in " in verbose, quiet, verbose)
    more = python("", TSCOPE_VERBOSE="2", TSCOPE_GPU="cupti")[0].stderr
    expect("tscope: trace in " in more, more)


@setting
def tscope_exceptions():
    program = "try: raise ValueError('a'); \nexcept ValueError: import traceback; traceback.print_exc()"
    for value in ("on", "off"):
        trace, = python(program, TSCOPE_EXCEPTIONS=value)[1]
        expect((b"ValueError: a" in trace.data[:4096]) == (value == "on"), value)


@setting
def tscope_lines():
    """Two calls from Python have their line in the trace; none if the setting is off."""
    program = """
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1024))
cudart.cudaDeviceSynchronize()
"""
    folder = standins_of(BUILD)
    for value, sites in {"sampled": 2, "collectives": 2, "off": 0}.items():
        made = python(program, TSCOPE_LINES=value, LD_LIBRARY_PATH=folder)
        expect(count(made, "CallSiteRing") == sites and count(made, "Sync") == 1, value)
        expect((count(made, "Frame") > 0) == (sites > 0), value)


@setting
def tscope_stall():
    """A process that trains and then sleeps records a stall, unless the setting is off or too long."""
    program = "import time\ntime.sleep(4)\n"
    for value, stalls in {"1": 1, "60": 0, "off": 0}.items():
        made = python(program, TSCOPE_STALL=value)
        expect(count(made, "Stall") == stalls and (count(made, "ThreadStack") > 0) == (stalls > 0), value)


@setting
def tscope_command():
    for value in ("on", "off"):
        trace, = train(TSCOPE_COMMAND=value)[1]
        expect(bool(trace.info("COMMAND")) == (value == "on"), value)


def prepare(build):
    global BUILD  # pylint: disable=global-statement
    BUILD = build
    missing, unknown = set(variables()) - set(CHECKS), set(CHECKS) - set(variables())
    expect(not missing and not unknown, "without a test:", missing, "no settings:", unknown)


if __name__ == "__main__":
    main(variables(), lambda name, *_: CHECKS[name](), prepare=prepare)
