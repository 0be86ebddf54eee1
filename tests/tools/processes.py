# SPDX-License-Identifier: MIT
"""What the kernel says of other processes."""
import os

from outcomes import wait_until


def state_of(path):
    """The letter of a process, by its number, or of a thread, by its folder in /proc."""
    with open(f"/proc/{path}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def states_of_threads(pid):
    return {int(tid): state_of(f"{pid}/task/{tid}") for tid in os.listdir(f"/proc/{pid}/task")}


def wait_for_state(pid, letters):
    wait_until(f"process {pid} is {letters}", lambda: state_of(pid) in letters, each=0.001)
