# SPDX-License-Identifier: MIT
"""A program whose threads stall. When all are there, it prints the functions of each, innermost first.
With the argument `holding`, its first thread keeps the GIL meanwhile."""
import ctypes
import functools
import json
import sys
import threading
import time

WAITING = threading.Semaphore(0)
THREADS = 2


def wait_for_ever():
    WAITING.release()
    time.sleep(3600)


def generate():
    wait_for_ever()
    yield 1


def in_a_generator():
    return list(generate())


def compare(left, right):
    wait_for_ever()
    return left - right


def in_a_callback():
    return sorted([2, 1], key=functools.cmp_to_key(compare))


def stand_still():
    lock = threading.Lock()
    lock.acquire()
    print(json.dumps({"first": ["stand_still", "<module>"],
                      "generator": ["wait_for_ever", "generate", "in_a_generator"],
                      "callback": ["wait_for_ever", "compare", "in_a_callback"]}), flush=True)
    if sys.argv[1:] == ["holding"]:
        ctypes.PyDLL(None).pause()  # a C function that is called without releasing the GIL
    lock.acquire()


for work in (in_a_generator, in_a_callback):
    threading.Thread(target=work, daemon=True).start()
for _ in range(THREADS):
    WAITING.acquire()
time.sleep(0.2)  # the last thread has released the semaphore and goes to sleep
stand_still()
