# SPDX-License-Identifier: MIT
"""What sampling could not see is said, and only that.

PYTHON unseen.py LIBTSCOPE CUDART TSCOPE-REPORT    with each Python of this machine, see each_python.py

More threads train than are sampled: the report says so. A process that takes long to end, after its last line of
Python, has no lines meanwhile, and nothing that could not be read, also of a thread that goes on in C: Python has freed
what it knew of it, and that memory is used for something else.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import read_trace  # noqa: E402
from observed import json_of, observed_environment  # noqa: E402

MOST = 8  # threads that are sampled at once
ENDS_FOR_S = CLOCK_MONOTONIC = 1
freed_at_the_end = []  # by the interpreter, which runs no Python then


def is_said():
    return any("more threads train" in why for trace in read_trace.read_all(os.environ["TSCOPE_DIR"])
               for why in trace.info("FEATURE"))


def train(calls, number, stop):
    while not stop.wait(0.01):
        calls.cudaDeviceSynchronize()
        if number == 0:
            calls.tscope_step(ctypes.c_uint64(0))


def threads_train(cudart, count):
    loaded = ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    calls, stop = ctypes.CDLL(None), threading.Event()  # the preload's functions come first
    threads = [threading.Thread(target=train, args=(calls, number, stop)) for number in range(count)]
    for thread in threads:
        thread.start()
    rounds = 0
    while rounds < (200 if count > MOST else 15) and not is_said():
        threads[0].join(0.1)
        rounds += 1
    stop.set()
    for thread in threads:
        thread.join()
    return loaded


def stand_beside(cudart):
    """The thread that trains is the oldest of more than are looked at."""
    ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    calls, stop = ctypes.CDLL(None), threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(300)]
    threading.stack_size(64 << 10)
    for thread in threads:
        thread.start()
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        calls.tscope_step(ctypes.c_uint64(0))
        time.sleep(0.01)
    trace, = read_trace.read_all(os.environ["TSCOPE_DIR"])
    tids = [sample.tid for sample in trace.records["LineSample"]]
    stop.set()
    return 0 if os.getpid() in tids else 1


def has_children(cudart):
    ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    calls, children = ctypes.CDLL(None), []
    for _ in range(140):
        children.append(os.fork())
        if not children[-1]:
            calls.pause()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        calls.tscope_step(ctypes.c_uint64(0))
        time.sleep(0.01)
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)


def goes_on_in_c(calls, state, trained):
    state.append(ctypes.pythonapi.PyThreadState_Get())
    for _ in range(20):
        calls.cudaDeviceSynchronize()
        time.sleep(0.01)
    trained.set()
    calls.sleep(1000)


def use_memory_again(calls, state):
    """When Python has ended, writes the time over the thread's first words, which it has in all versions before the
    number that says whose state it is."""
    for at in range(24, 120, 16):
        calls.on_exit(calls.clock_gettime, ctypes.c_void_p(state + at))  # is given the exit status


def ends_slowly(cudart):
    ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    calls, trained, state = ctypes.CDLL(None), threading.Event(), []  # the preload's functions come first
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    calls.tscope_step(ctypes.c_uint64(0))
    threading.Thread(target=goes_on_in_c, args=(calls, state, trained), daemon=True).start()
    trained.wait()
    for number in range(20):
        calls.tscope_step(ctypes.c_uint64(number))
    calls.on_exit(calls.sleep, None)  # is given the exit status too, and called last
    use_memory_again(calls, state[0])
    sys.exit(ENDS_FOR_S)


def leaves_much_to_free():
    calls = ctypes.CDLL(None)
    for number in range(20):
        calls.tscope_step(ctypes.c_uint64(number))
        time.sleep(0.005)
    freed_at_the_end.extend({"a": number} for number in range(1500000))


def notes_of(library, reporter, *what):
    with tempfile.TemporaryDirectory(prefix="tscope-unseen-") as folder:
        done = subprocess.run([sys.executable, __file__, "--program", *what],
                              env=observed_environment(library, folder))
        assert done.returncode == (ENDS_FOR_S if what[0] == "ends" else 0), done
        return json_of(reporter, folder)["quality"]["notes"]


def main():
    library, cudart, reporter = sys.argv[1:4]
    many = notes_of(library, reporter, "threads", cudart, str(MOST + 2))
    few = notes_of(library, reporter, "threads", cudart, str(MOST - 2))
    ended = notes_of(library, reporter, "ends", cudart)
    frees = notes_of(library, reporter, "frees", cudart)
    beside = notes_of(library, reporter, "beside", cudart)
    children = notes_of(library, reporter, "children", cudart)
    said = "lines of threads are missing on 1 of 1 ranks: more threads train at once than are sampled, eight"
    wrong = []
    if said not in many:
        wrong.append(("ten threads", many))
    if not any("more threads of Python than are looked at, the 256 oldest" in note for note in beside):
        wrong.append(("300 threads beside", beside))
    if not any("lines of child processes" in note and "only of the first 128" in note for note in children):
        wrong.append(("140 children", children))
    if any("lines of threads" in note for note in few):
        wrong.append(("six threads", few))
    if any("could not be read" in note for note in ended):
        wrong.append(("a slow end", ended))
    if any("could not be read" in note for note in frees):
        wrong.append(("much to free", frees))
    for line in wrong:
        print("WRONG", *line)
    print(sys.version.split()[0], "WRONG" if wrong else "as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] != "--program":
        sys.exit(main())
    if sys.argv[2] == "ends":
        ends_slowly(sys.argv[3])
    elif sys.argv[2] == "beside":
        sys.exit(stand_beside(sys.argv[3]))
    elif sys.argv[2] == "children":
        has_children(sys.argv[3])
    elif sys.argv[2] == "frees":
        leaves_much_to_free()
    else:
        threads_train(sys.argv[3], int(sys.argv[4]))
