# SPDX-License-Identifier: MIT
"""Control groups of the kernel, of version 1 or 2, whichever has the controller."""
import itertools
import os

from outcomes import Skip, wait_until

TOP = "/sys/fs/cgroup"
NUMBERS = itertools.count()


class ControlGroup:
    """`controller` is "memory", whose limit is in bytes, or "cpu", whose limit is in cores."""

    def __init__(self, controller, limit):
        self.controller, own = controller, os.path.join(TOP, controller)
        self.is_first = os.path.isdir(own)
        self.folder = os.path.join(own if self.is_first else TOP, f"tscope-{os.getpid()}-{next(NUMBERS)}")
        try:
            os.mkdir(self.folder)
            self.limit(limit)
        except OSError as reason:
            if os.path.isdir(self.folder):
                os.rmdir(self.folder)
            raise Skip(f"no control group with a limit for {controller}: {reason}") from reason

    def write(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def limit(self, to):
        if self.controller == "memory":
            self.write("memory.limit_in_bytes" if self.is_first else "memory.max", to)
        elif self.is_first:
            self.write("cpu.cfs_period_us", 100000)
            self.write("cpu.cfs_quota_us", int(to * 100000))
        else:
            self.write("cpu.max", f"{int(to * 100000)} 100000")

    def enter(self):
        """In a child, before it executes its program."""
        self.write("cgroup.procs", os.getpid())

    def kernel_kills(self):
        """How many processes the kernel killed because of the limit for memory."""
        with open(os.path.join(self.folder, "memory.oom_control" if self.is_first else "memory.events"), encoding="ascii") as file:
            return int(dict(line.split() for line in file)["oom_kill"])

    def remove(self):
        def removed():
            try:
                os.rmdir(self.folder)
            except OSError:
                return False
            return True
        wait_until(f"no process is left in {self.folder}", removed, seconds=10, each=0.1)
