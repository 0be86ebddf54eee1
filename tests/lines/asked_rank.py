# SPDX-License-Identifier: MIT
"""A rank that stalls: asked_rank.py HOW. Prints its number when it is about to."""
import ctypes
import os
import sys
import threading
import time

lock = threading.Lock()
lock.acquire()


def in_a_c_call():
    ctypes.CDLL(None).pause()


def in_c_with_the_gil():
    ctypes.PyDLL(None).pause()


def asleep():
    time.sleep(3600)


def in_a_lock():
    lock.acquire()


def stopped():
    time.sleep(3600)


def killed():
    time.sleep(3600)


def in_a_device_wait():
    """The parent of vfork() waits in state D until the child executes a program; here the child first opens a pipe
    that nobody writes to."""
    pipe = os.path.join(os.environ["TSCOPE_DIR"], "pipe-%d" % os.getpid())
    os.mkfifo(pipe)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, pipe, os.O_RDONLY, 0)])


def running():
    os.nice(19)  # it runs all the same, and other tests have the cores
    while True:
        pass


def train(how):
    step = ctypes.CDLL(None).tscope_step
    for number in range(3):
        step(ctypes.c_uint64(number))
    threading.Thread(target=asleep, daemon=True).start()
    print(os.getpid(), flush=True)
    globals()[how]()


train(sys.argv[1])
