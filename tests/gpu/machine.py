# SPDX-License-Identifier: MIT
"""For scripts/gpu-check: the properties of this machine, and how to run a program on it, with and without
the shim."""
import ctypes
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))

import read_trace
import standin_wheel
from built import built, standins_of
from observed import clean_environment
from outcomes import SKIPPED
from processes import run_within

# The modes in which the shim gets GPU times; BARE is the program without the shim.
BARE, OFF, AUTO, CUPTI, EVENTS, HOST = "without", "off", "auto", "cupti", "events", "host"
SETTINGS = {OFF: {"TSCOPE": "off"}, AUTO: {}, CUPTI: {"TSCOPE_GPU": "cupti"},
            EVENTS: {"TSCOPE_GPU": "events"}, HOST: {"TSCOPE_GPU": "host"}}


class Failed(Exception):
    """A row does not hold; the text says why."""


class NotHere(Exception):
    """A row cannot be checked on this machine; the text says what it needs."""


class OutOfTime(NotHere):
    """The time for all rows is over."""


def finish(command, environment, seconds, scratch):
    """The exit status of a command (None after `seconds`), its standard output and standard error."""
    with tempfile.TemporaryFile(dir=scratch) as out, tempfile.TemporaryFile(dir=scratch) as err:
        status = run_within(seconds, command, out, err, env=environment)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return status, texts[0], texts[1]


def output(*command, seconds=60):
    try:
        status, out, _ = finish(command, None, seconds, None)
        return out.strip() if status == 0 else ""
    except OSError:
        return ""


QUERY_DRIVER = """
import ctypes, json
driver = ctypes.CDLL("libcuda.so.1")
count, version, text = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
result = driver.cuInit(0)
if result:
    raise SystemExit(f"cuInit returned {result}")
driver.cuDeviceGetCount(ctypes.byref(count))
driver.cuDriverGetVersion(ctypes.byref(version))
names = []
for i in range(count.value):
    driver.cuDeviceGetName(text, 256, i)
    names.append(text.value.decode())
print(json.dumps({"names": names, "cuda": version.value}))
"""


def query_driver(scratch):
    """The names of the GPUs that a program can use here (CUDA_VISIBLE_DEVICES and MIG may hide some), the
    driver's CUDA version, and the reason if there is no GPU. Uses another process, so that this one never
    has a CUDA context."""
    status, out, errors = finish([sys.executable, "-c", QUERY_DRIVER], None, 120, scratch)
    if status != 0:
        why = errors.strip().splitlines()[-1:] or [f"status {status}"]
        return [], 0, f"no GPU: {why[0]}"
    found = json.loads(out)
    if any("stand-in" in name for name in found["names"]):  # must never be in a record
        return [], 0, "no GPU: the libcuda.so.1 that is found here is the stand-in's"
    return found["names"], found["cuda"], None if found["names"] else "no GPU: the driver has none"


def driver_facts():
    """Facts from the driver's own tool and files, as far as this machine has them."""
    fields = ["driver_version", "compute_mode", "mig.mode.current", "persistence_mode",
              "clocks.max.sm", "power.limit", "memory.total"]
    text = output("nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader")
    facts = []
    if text:
        facts = [(name, value) for name, value in zip(fields, text.splitlines()[0].split(", "))]
    for path, pattern, name in (
            ("/proc/driver/nvidia/version", r"NVRM version: (.*)", "driver"),
            ("/proc/driver/nvidia/params", r"RmProfilingAdminOnly: (.*)", "profiling for root alone"),
            ("/proc/version", r"(.*[Mm]icrosoft.*)", "WSL")):
        try:
            with open(path, encoding="utf-8") as file:
                found = re.search(pattern, file.read())
        except OSError:
            continue
        if found:
            facts.append((name, found[1].strip()))
    if os.environ.get("CUDA_MPS_PIPE_DIRECTORY"):
        facts.append(("MPS", os.environ["CUDA_MPS_PIPE_DIRECTORY"]))
    return facts


class Run:
    """A program that has run: `result` is the JSON object on the last line of its output."""

    def __init__(self, out, errors, folder):
        self.lines = out.splitlines()
        self.errors = errors
        self.folder = folder
        self.result = None
        if self.lines and self.lines[-1].startswith("{"):
            self.result = json.loads(self.lines[-1])
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
    """`real` is whether there is a GPU; otherwise programs run on the stand-ins."""

    def __init__(self, build, python, scratch, standins, seconds):
        self.scratch = scratch
        self.build = build
        self.ends = time.monotonic() + seconds
        self.library = built(build, "libtscope.so")
        self.tool = built(build, "tscope-report")
        self.gpus, self.cuda, self.why_no_gpu = [], 0, "the stand-ins were requested"
        if not standins:
            self.gpus, self.cuda, self.why_no_gpu = query_driver(scratch)
        self.real = bool(self.gpus)
        self.driver_facts = driver_facts() if self.real else []
        memory = dict(self.driver_facts).get("memory.total", "0 MiB")  # of the first GPU
        self.gpu_mib = int(memory.split()[0]) if memory.split()[0].isdigit() else 0
        self.python = python
        # Which GPUs there are, and how they are reached, is up to who runs this. PyTorch's deterministic algorithms need the
        # setting of cuBLAS. The caches are shared by all runs.
        own = {name: value for name, value in os.environ.items() if name.startswith("CUDA_")}
        self.environment = clean_environment(**own, CUBLAS_WORKSPACE_CONFIG=":4096:8", OMP_NUM_THREADS="1",
                                             PYTHONDONTWRITEBYTECODE="1",
                                             TRITON_CACHE_DIR=os.path.join(scratch, "triton"),
                                             TORCHINDUCTOR_CACHE_DIR=os.path.join(scratch, "inductor"))
        self.why_no_torch = self._find_torch(build)
        self.runs = {}
        self.used = []  # the runs that the current row has used
        self.so_far = lambda facts: None  # called with the results of a row so far
        self.kept = os.path.join(scratch, "kept")  # reports and traces to be read later

    def keep(self, name, run):
        """Keeps a run's traces, its result and its report as text for the archive beside the record."""
        folder = os.path.join(self.kept, name)
        if os.path.exists(folder):
            return
        shutil.copytree(run.folder, os.path.join(folder, "traces"))
        with open(os.path.join(folder, "said.json"), "w", encoding="utf-8") as file:
            json.dump(run.result, file, indent=1)
        with open(os.path.join(folder, "report.txt"), "w", encoding="utf-8") as file:
            file.write(self._report(run))

    def keep_failed(self, row):
        """Keeps what a row that failed has used, so that the cause can be found without this machine."""
        for number, run in enumerate(self.used):
            try:
                if isinstance(run, Run):
                    self.keep(f"failed-{row}-{number}", run)
            except (Failed, NotHere, OSError) as reason:
                print(f"{row}: not all is kept: {reason}", flush=True)

    def left(self):
        """Seconds until the time for all rows is over."""
        return self.ends - time.monotonic()

    def _find_torch(self, build):
        if not self.python:
            return "no Python with PyTorch was found; --python PYTHON or --wheels FOLDER names one"
        if self.real:  # the first import reads gigabytes of libraries
            code = "import torch; print(torch.cuda.is_available())"
            status, seen, errors = finish([self.python, "-c", code], self.environment, 240,
                                          self.scratch)
            if status is None:
                return f"PyTorch of {self.python} takes more than 240 s to import"
            if status == 0 and seen.strip() == "True":
                return None
            return f"PyTorch of {self.python} sees no GPU: {last_line(errors) or seen.strip()}"
        wheel, why_not = standin_wheel.site_packages(self.python)
        if not wheel:
            return why_not
        libraries = standins_of(build)
        if not os.path.exists(os.path.join(libraries, "libcudart.so.13")):
            return f"no stand-ins in {libraries}"
        site = standin_wheel.make(wheel, libraries, os.path.join(self.scratch, "site"))
        self.environment.update(PYTHONPATH=site, TORCHINDUCTOR_COMPILE_THREADS="1",
                                TRITON_LIBCUDA_PATH=os.path.join(site, "nvidia", "cu13", "lib"))
        return None

    def _once(self, key, make):
        """Returns or raises what make() returned or raised the first time."""
        if key not in self.runs:
            try:
                self.runs[key] = make()
            except OutOfTime:
                raise
            except (Failed, NotHere) as reason:
                self.runs[key] = reason
        self.used.append(self.runs[key])
        if isinstance(self.runs[key], Exception):
            raise self.runs[key]
        return self.runs[key]

    def _run_here(self, what, command, environment, mode, limit):
        """Runs the command in the given mode of the shim."""
        folder = tempfile.mkdtemp(prefix="run-", dir=self.scratch)
        environment = dict(environment, TSCOPE_DIR=folder)
        if mode != BARE:
            environment.update(SETTINGS[mode], LD_PRELOAD=self.library)
        left = self.left()
        if left < 5:
            raise OutOfTime("the time for all rows was over")
        status, out, errors = finish(command, environment, min(limit, left), self.scratch)
        if status is None and left < limit:
            raise OutOfTime(f"the time for all rows was over, {left:.0f} s into {what}")
        if status is None:
            raise Failed(f"{what} ({mode}) took more than {limit} s and was killed: "
                         f"{last_line(errors)}")
        return status, out, errors, folder

    def run(self, script, *arguments, mode=BARE, ranks=0, name="", limit=150, **settings):
        """Runs a script of this folder or of tests/torch; returns the earlier result of an equal run."""
        key = (script, arguments, mode, ranks, name, tuple(sorted(settings.items())))
        return self._once(key, lambda: self._run(script, arguments, mode, ranks, limit, settings))

    def _run(self, script, arguments, mode, ranks, limit, settings):
        if self.why_no_torch:
            raise NotHere(self.why_no_torch)
        launcher = []
        if ranks:
            launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                        str(ranks)]
        command = [self.python, *launcher, os.path.join(HERE, script), *arguments]
        what = f"{script} {' '.join(arguments)}"
        status, out, errors, folder = self._run_here(what, command,
                                                     dict(self.environment, **settings), mode,
                                                     limit)
        if status == SKIPPED:
            raise NotHere(last_line(errors))
        if status != 0:
            self._keep_errors(out, errors)
            raise Failed(f"{what} ({mode}) ended with status {status}: {end_of(errors)}")
        return Run(out, errors, folder)

    def _keep_errors(self, out, errors):
        """Keeps the whole output of a program that failed."""
        os.makedirs(self.kept, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self.kept, prefix="ended-", suffix=".txt", delete=False,
                                         encoding="utf-8") as file:
            file.write(out + "\n" + errors)

    def program(self, name, *arguments, mode=BARE, label="", **settings):
        """Runs a compiled program of this folder; returns the earlier result of an equal run."""
        key = (name, arguments, mode, label, tuple(sorted(settings.items())))
        return self._once(key, lambda: self._program(name, arguments, mode, settings))

    def _program(self, name, arguments, mode, settings):
        path = os.path.join(self.build, "tests", "gpu", name)
        if not os.path.exists(path):
            raise NotHere(f"{path} was not built")
        environment = dict(self.environment, LD_LIBRARY_PATH=self.cuda_libraries(), **settings)
        what = f"{name} {' '.join(arguments)}"
        status, out, errors, folder = self._run_here(what, [path, *arguments], environment, mode, 60)
        if status == 127 or "version `GLIBC" in errors or "driver version is insufficient" in errors:
            raise NotHere(f"{what} does not run here: {last_line(errors)}")
        if status != 0:
            raise Failed(f"{what} ({mode}) ended with status {status}: {end_of(errors)}")
        return Run(out, errors, folder)

    def cuda_libraries(self):
        """The folders in which programs find the CUDA runtime and CUPTI: that of the stand-ins, or those of
        the libraries in build/carried, of PyTorch's wheel, and of an installed CUDA."""
        if not self.real:
            return standins_of(self.build)
        folders = [os.environ.get("LD_LIBRARY_PATH"), os.path.join(self.build, "carried")]
        wheel = self.python and standin_wheel.site_packages(self.python)[0]
        folders += [wheel and os.path.join(wheel, "nvidia", "cu13", "lib"), "/usr/local/cuda/lib64",
                    "/usr/local/cuda/extras/CUPTI/lib64"]
        return os.pathsep.join(filter(None, folders))

    def work(self, work, *arguments, mode=BARE, **settings):
        """Runs work.py."""
        if not self.real:
            arguments += ("--small",)
        return self.run("work.py", work, *arguments, mode=mode, **settings)

    def _report(self, run, *options):
        folders = filter(None, [self.environment.get("LD_LIBRARY_PATH"),
                                os.path.join(self.build, "carried")])
        status, out, errors = finish([self.tool, *options, run.folder],
                                     dict(self.environment, LD_LIBRARY_PATH=os.pathsep.join(folders)),
                                     120, self.scratch)
        if status == 127 or "error while loading" in errors or "version `GLIBC" in errors:
            raise NotHere(f"tscope-report does not start here: {errors.strip()}")
        if status != 0:
            raise Failed(f"tscope-report: status {status}: {end_of(errors)}")
        return out

    def report(self, run, *options):
        """The report of a run as JSON; made only once."""
        key = ("report", run.folder, options)
        return self._once(key, lambda: json.loads(self._report(run, "--format", "json", *options)))

    def described(self):
        """The facts about the machine for a record: [(name, text)]."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = re.search(r"model name\s*: (.*)", file.read())
        kinds = [f"{self.gpus.count(name)} × {name}" for name in dict.fromkeys(self.gpus)]
        facts = [("device", ", ".join(kinds) or "none: the stand-ins"),
                 ("CUDA of the driver", f"{self.cuda // 1000}.{self.cuda % 1000 // 10}")]
        facts += self.driver_facts
        facts += [("CPU", f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores"),
                  ("kernel", platform.release()), ("Python", platform.python_version()),
                  ("libc", " ".join(platform.libc_ver()))]
        for run in self.runs.values():
            if isinstance(run, Run) and run.result and "torch" in run.result:
                facts += [("PyTorch", run.result["torch"]), ("CUDA of PyTorch", run.result["cuda"]),
                          ("NCCL", run.result["nccl"])]
                facts += [("library", path) for path in run.result.get("libraries", [])]
                break
        return facts


def last_line(text):
    return (text.strip().splitlines() or [""])[-1][:300]


def end_of(text):
    """The end of a program's output, where the cause of an error usually is, without the text that torchrun
    adds after that of the failed rank."""
    return text.split("torch/distributed/elastic/")[0].strip()[-1500:]


def demangled(name):
    """The demangled form of a C++ name."""
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
        raise NotHere("names of kernels cannot be demangled here: no libstdc++.so.6")
    text = demangled.function(name.encode(), None, None, None)
    if not text:
        return name
    plain = ctypes.cast(text, ctypes.c_char_p).value.decode()
    demangled.free(text)
    return plain
