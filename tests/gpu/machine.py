# SPDX-License-Identifier: MIT
"""What this machine has for scripts/gpu-check, and how a program runs on it, with and without the
shim."""
import ctypes
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "torch"))

import read_trace
import standin_wheel

# How the shim may get GPU time; BARE is the program without it.
BARE, OFF, AUTO, CUPTI, EVENTS, HOST = "without", "off", "auto", "cupti", "events", "host"
SETTINGS = {OFF: {"TSCOPE": "off"}, AUTO: {}, CUPTI: {"TSCOPE_GPU": "cupti"},
            EVENTS: {"TSCOPE_GPU": "events"}, HOST: {"TSCOPE_GPU": "host"}}


class Failed(Exception):
    """A row does not hold; says why."""


class NotHere(Exception):
    """A row cannot be checked on this machine; says what it needs."""


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def gpus():
    """Each GPU's name and driver version; none where the driver answers to nobody. In a process of
    its own, so that this one never holds a context."""
    question = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    found = [line.split(", ") for line in question.splitlines() if line.count(", ") == 1]
    if found:
        return found
    code = ("import ctypes as c; d = c.CDLL('libcuda.so.1'); n = c.c_int(); v = c.c_int()\n"
            "d.cuInit(0) and exit(1); d.cuDeviceGetCount(c.byref(n)); t = c.create_string_buffer(96)\n"
            "d.cuDriverGetVersion(c.byref(v))\n"
            "for i in range(n.value): d.cuDeviceGetName(t, 96, i); "
            "print(t.value.decode() + ', CUDA', v.value // 1000, sep=' ')")
    return [line.split(", ") for line in output(sys.executable, "-c", code).splitlines()]


class Run:
    """What became of one program: `said` is the JSON object on its last line."""

    def __init__(self, result, folder):
        self.lines = result.stdout.splitlines()
        self.errors = result.stderr
        self.folder = folder
        self.said = None
        if self.lines and self.lines[-1].startswith("{"):
            self.said = json.loads(self.lines[-1])
        self._traces = None

    @property
    def traces(self):
        if self._traces is None:
            self._traces = read_trace.read_all(self.folder)
        return self._traces

    @property
    def trace(self):
        if len(self.traces) != 1:
            raise Failed(f"{len(self.traces)} traces of one process")
        return self.traces[0]


class Machine:
    """`real` says whether there is a GPU; else programs run on the stand-ins."""

    def __init__(self, build, python, scratch, standins):
        self.scratch = scratch
        self.build = build
        self.library = os.path.join(build, "preload", "libtscope.so")
        self.tool = os.path.join(build, "analyzer", "tscope-report")
        self.gpus = [] if standins else gpus()
        self.real = bool(self.gpus)
        self.python = python
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("TSCOPE") and name != "LD_PRELOAD"}
        # PyTorch's deterministic algorithms want the first of these.
        self.environment.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", OMP_NUM_THREADS="1",
                                PYTHONDONTWRITEBYTECODE="1")
        self.why_no_torch = self._find_torch(build)
        self.runs = {}

    def _find_torch(self, build):
        if not self.python:
            return "no Python with PyTorch was found; --python PYTHON or --wheels FOLDER names one"
        if self.real:
            code = "import torch; print(torch.cuda.is_available())"
            seen = output(self.python, "-c", code)
            return None if seen == "True" else f"PyTorch of {self.python} sees no GPU"
        wheel, why_not = standin_wheel.site_packages(self.python)
        if not wheel:
            return why_not
        libraries = os.path.join(build, "tests", "standins", "lib")
        if not os.path.exists(os.path.join(libraries, "libcudart.so.13")):
            return f"no stand-ins in {libraries}"
        site = standin_wheel.make(wheel, libraries, os.path.join(self.scratch, "site"))
        self.environment["PYTHONPATH"] = site
        return None

    def run(self, script, *arguments, mode=BARE, ranks=0, name="", **settings):
        """Runs a script of this folder or of tests/torch, or gives what an equal run gave before."""
        key = (script, arguments, mode, ranks, name, tuple(sorted(settings.items())))
        if key not in self.runs:
            self.runs[key] = self._run(script, arguments, mode, ranks, settings)
        return self.runs[key]

    def _run(self, script, arguments, mode, ranks, settings):
        if self.why_no_torch:
            raise NotHere(self.why_no_torch)
        folder = tempfile.mkdtemp(prefix="run-", dir=self.scratch)
        environment = dict(self.environment, TSCOPE_DIR=folder, **settings)
        if mode != BARE:
            environment.update(SETTINGS[mode], LD_PRELOAD=self.library)
        launcher = []
        if ranks:
            launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                        str(ranks)]
        command = [self.python, *launcher, os.path.join(HERE, script), *arguments]
        try:
            result = subprocess.run(command, env=environment, capture_output=True, text=True,
                                    timeout=300)
        except subprocess.TimeoutExpired as timeout:
            raise Failed(f"{script} {' '.join(arguments)} took more than 300 s") from timeout
        if result.returncode != 0:
            raise Failed(f"{script} {' '.join(arguments)} ({mode}) ended with status "
                         f"{result.returncode}: {result.stderr.strip()[:1500]}")
        return Run(result, folder)

    def program(self, name, *arguments, mode=BARE, label="", **settings):
        """Runs a program of this folder that was built along, or gives what an equal run gave."""
        key = (name, arguments, mode, label, tuple(sorted(settings.items())))
        if key not in self.runs:
            self.runs[key] = self._program(name, arguments, mode, settings)
        return self.runs[key]

    def _program(self, name, arguments, mode, settings):
        path = os.path.join(self.build, "tests", "gpu", name)
        if not os.path.exists(path):
            raise NotHere(f"{path} was not built")
        folder = tempfile.mkdtemp(prefix="run-", dir=self.scratch)
        environment = dict(self.environment, TSCOPE_DIR=folder, LD_LIBRARY_PATH=self.cuda_libraries(),
                           **settings)
        if mode != BARE:
            environment.update(SETTINGS[mode], LD_PRELOAD=self.library)
        result = subprocess.run([path, *arguments], env=environment, capture_output=True, text=True,
                                timeout=120)
        if result.returncode == 127:
            raise NotHere(result.stderr.strip())
        if result.returncode != 0:
            raise Failed(f"{name} {' '.join(arguments)} ({mode}) ended with status "
                         f"{result.returncode}: {result.stderr.strip()[:500]}")
        return Run(result, folder)

    def cuda_libraries(self):
        """Where programs find the CUDA runtime and CUPTI: the stand-ins; or what was carried here,
        what PyTorch brought, what is installed."""
        if not self.real:
            return os.path.join(self.build, "tests", "standins", "lib")
        places = [os.environ.get("LD_LIBRARY_PATH"), os.path.join(self.build, "carried")]
        wheel = self.python and standin_wheel.site_packages(self.python)[0]
        places += [wheel and os.path.join(wheel, "nvidia", "cu13", "lib"), "/usr/local/cuda/lib64",
                   "/usr/local/cuda/extras/CUPTI/lib64"]
        return os.pathsep.join(filter(None, places))

    def work(self, work, *arguments, mode=BARE, **settings):
        """Runs work.py."""
        if not self.real:
            arguments += ("--small",)
        return self.run("work.py", work, *arguments, mode=mode, **settings)

    def report(self, run):
        """The report on a run, as JSON."""
        result = subprocess.run([self.tool, "--format", "json", run.folder], capture_output=True,
                                text=True)
        if result.returncode == 127 or "error while loading" in result.stderr:
            raise NotHere(f"tscope-report does not start here: {result.stderr.strip()}")
        if result.returncode != 0:
            raise Failed(f"tscope-report: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def described(self):
        """What a record says of the machine, as (what, text)."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = re.search(r"model name\s*: (.*)", file.read())
        facts = [("device", ", ".join(name for name, _ in self.gpus) or "none: the stand-ins"),
                 ("driver", ", ".join(sorted({driver for _, driver in self.gpus})) or "none"),
                 ("CPU", f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores"),
                 ("kernel", platform.release()), ("Python", platform.python_version()),
                 ("libc", " ".join(platform.libc_ver()))]
        for run in self.runs.values():
            if run.said and "torch" in run.said:
                facts += [("PyTorch", run.said["torch"]), ("CUDA of PyTorch", run.said["cuda"]),
                          ("NCCL", run.said["nccl"])]
                break
        return facts


def demangled(name):
    """A C++ name as people write it; as it is where no C++ library is to be had."""
    if not name.startswith("_Z"):
        return name
    if not hasattr(demangled, "function"):
        try:
            function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
            function.restype = ctypes.c_void_p
        except OSError:
            function = None
        demangled.function = function
        demangled.free = ctypes.CDLL(None).free
        demangled.free.argtypes = [ctypes.c_void_p]
    if not demangled.function:
        return name
    text = demangled.function(name.encode(), None, None, None)
    if not text:
        return name
    plain = ctypes.cast(text, ctypes.c_char_p).value.decode()
    demangled.free(text)
    return plain
