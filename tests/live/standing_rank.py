# SPDX-License-Identifier: MIT
"""A rank in Python that marks some steps and then stalls: rank 1 in save(), the others in
wait_for_others(). Each rank also has THREADS threads, each in another function."""
import ctypes
import os
import threading
import time

THREADS, STEPS = 14, 5
lock = threading.Lock()
lock.acquire()


def save():
    time.sleep(3600)


def wait_for_others():
    lock.acquire()


def train():
    step = ctypes.CDLL(None).tscope_step
    for number in range(STEPS):
        step(ctypes.c_uint64(number))
        time.sleep(0.1)
    (save if os.environ["RANK"] == "1" else wait_for_others)()


for i in range(THREADS):
    space = {"time": time}
    exec(compile("def reader_%d():\n  time.sleep(3600)" % i, "readers.py", "exec"), space)
    threading.Thread(target=space["reader_%d" % i], daemon=True).start()
train()
