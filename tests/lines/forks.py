# SPDX-License-Identifier: MIT
"""A program of one thread that forks in every way that Python has, with all warnings shown, and the same program
with a second thread. PYTHON forks.py LIBTSCOPE. With the shim it must print what it prints without, and
tscope's own threads must go on after each fork."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import read_trace  # noqa: E402
from observed import clean_environment  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

FORKS = 4


def threads():
    return len(os.listdir("/proc/self/task"))


def end(child):
    print("child ended with", os.waitpid(child, 0)[1])


def fork_plain():
    for i in range(FORKS):
        child = os.fork()
        if child == 0:
            os._exit(i)
        end(child)


def fork_in_a_row():
    """As a loader starts its workers."""
    children = []
    for i in range(FORKS):
        children.append(os.fork())
        if children[-1] == 0:
            time.sleep(0.05)
            os._exit(i)
    for child in children:
        end(child)


def fork_terminal():
    child, terminal = os.forkpty()
    if child == 0:
        os._exit(4)
    end(child)
    os.close(terminal)


def work(number):
    return number * number


def fork_processes():
    import multiprocessing
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(i,)) for i in range(FORKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        print("process ended with", process.exitcode)


def fork_pool():
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print("pool", pool.map(work, range(5)))


def fork_before_exec():
    done = subprocess.run(["/bin/echo", "echoed"], stdout=subprocess.PIPE, preexec_fn=lambda: os.nice(0), check=True)
    print(done.stdout)


def fork_while_a_file_is_read():
    """The file by which Python counts, read by the job itself before, during and after a fork."""
    with open("/proc/self/stat", encoding="ascii") as file:
        fork_plain()
        print("bytes" if file.read() else "nothing")


def fork_often():
    """More often than tscope's threads tick: without the shim some times, else until they have ticked."""
    folder = os.environ.get("TSCOPE_DIR")
    until = time.monotonic() + 60
    looks = 0
    while time.monotonic() < until and looks < 2:
        next_look = time.monotonic() + 0.5
        while time.monotonic() < next_look:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            time.sleep(0.01)
        rounds = len(read_trace.read_all(folder)[0].records["Scheduling"]) if folder else 9
        looks += rounds >= 3
    assert looks == 2, "tscope's helper does not go on"


def fork_loader():
    try:
        import torch
        from torch.utils.data import DataLoader
    except ImportError:
        return
    with torch.no_grad():
        for epoch in range(2):
            numbers = DataLoader(list(range(64)), batch_size=8, num_workers=2)
            print("epoch", epoch, sum(int(batch.sum()) for batch in numbers))


WAYS = [fork_plain, fork_in_a_row, fork_terminal, fork_processes, fork_before_exec, fork_while_a_file_is_read,
        fork_often, fork_pool, fork_loader]
LEAVE_THREADS = [fork_pool, fork_loader]


def job(more_threads):
    """All ways, or the first one in a process with another thread."""
    import ctypes
    import threading
    import warnings
    warnings.simplefilter("always")
    step = getattr(ctypes.CDLL(None), "tscope_step", None)
    if step:
        step(ctypes.c_uint64(0))
    before = (3 if step else 1) + more_threads
    stop = threading.Event()
    if more_threads:
        threading.Thread(target=stop.wait).start()
    assert threads() == before, (before, threads())
    for way in WAYS[:1] if more_threads else WAYS:
        print(way.__name__, flush=True)
        way()
        assert threads() == before or way in LEAVE_THREADS, (way, before, threads())
    if step:
        step(ctypes.c_uint64(1))
    stop.set()


def run(more_threads, **more):
    program = "import sys; sys.path.insert(0, %r); import forks; forks.job(%d)" % (HERE, more_threads)
    done = subprocess.run([sys.executable, "-c", program], env=clean_environment(**more), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode, re.sub(r"pid=\d+", "pid", done.stdout)


def main():
    """In the Python that has the version of PyTorch of TSCOPE_TORCH, else in this one."""
    if "TSCOPE_TORCH" in os.environ:
        python = python_or_skip()
        del os.environ["TSCOPE_TORCH"]
        os.execv(python, [python] + sys.argv)
    for more_threads in (0, 1):
        without = run(more_threads)
        with tempfile.TemporaryDirectory(prefix="tscope-forks-") as folder:
            shimmed = run(more_threads, LD_PRELOAD=sys.argv[1], TSCOPE_DIR=folder)
            assert without[0] == 0, without
            assert without == shimmed, "without the shim:\n%s\nwith it:\n%s" % (without[1], shimmed[1])
            trace, = read_trace.read_all(folder)
        steps = [step.step for step in trace.records["Step"]]
        assert steps == [0, 1] and not any(trace.lost), (steps, trace.lost)
        names = [trace.strings[thread.name] for thread in trace.records["Thread"]]
        assert names.count("tscope-poller") == 1, names
        warns = "multi-threaded" in shimmed[1]
        assert warns == (bool(more_threads) and sys.version_info >= (3, 12)), shimmed[1]
    if importlib.util.find_spec("torch") is None:
        print("fork_loader: skipped, because this Python has no PyTorch")
    print(sys.version.split()[0], "same output in", len(WAYS), "ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
