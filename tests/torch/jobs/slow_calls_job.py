# SPDX-License-Identifier: MIT
"""More shapes of slow_shapes_job.py: the slow line is called by a library, not by the program. As there, comments at the
ends of lines are what slow_shapes.py looks for."""
import copy
import dataclasses
import functools
import importlib
import logging
import sys
import time

import numpy
import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from slow_shapes_job import Shape, Samples, busy


class Items(Shape):
    """A loader without workers."""

    class Slow(Samples):
        def __getitem__(self, index):
            time.sleep(self.seconds)  # slow: items
            return index

    def batches(self, steps):
        return iter(DataLoader(Items.Slow(steps, self.s)))


class Schedule(Shape):
    """A learning rate that is looked up."""

    def setup(self):
        parameter = torch.nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([parameter], lr=0.1)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor)

    def factor(self, step):
        if step:
            time.sleep(self.s)  # slow: schedule
        return 0.5

    def slow(self):
        self.optimizer.step()
        self.schedule.step()


class SortKey(Shape):
    def key(self, row):
        busy(self.s / 8)  # slow: sortkey
        return row

    def slow(self):
        sorted(range(8), key=self.key)


class Handler(logging.Handler):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def emit(self, record):
        time.sleep(self.seconds)  # slow: logged


class Logged(Shape):
    def setup(self):
        self.log = logging.getLogger("shapes")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        self.log.addHandler(Handler(self.s))

    def slow(self):
        self.log.info("step %d", self.step)


class Copied(Shape):
    """What is copied says how."""

    class State:
        def __init__(self, seconds):
            self.seconds = seconds

        def __deepcopy__(self, memo):
            time.sleep(self.seconds)  # slow: copied
            return self

    def slow(self):
        copy.deepcopy({"state": [Copied.State(self.s)]})


class Dataclass(Shape):
    @dataclasses.dataclass
    class Batch:
        seconds: float

        def __post_init__(self):
            time.sleep(self.seconds)  # slow: dataclass

    def slow(self):
        Dataclass.Batch(self.s)


class Partial(Shape):
    def wait(self, a, b):
        time.sleep(self.s)  # slow: partial
        return a + b

    def slow(self):
        list(map(functools.partial(self.wait, b="b"), ["a"]))


class Recomputed(Shape):
    """The forward pass is made again in the backward pass, in autograd's thread."""

    def inner(self, x):
        time.sleep(self.s / 2)  # slow: recomputed
        return self.model(x)

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


class Arrays(Shape):
    """In a library of C, called at one line."""

    def setup(self):
        self.array = numpy.random.default_rng(1).random(1 << 15)

    def slow(self):
        until = time.perf_counter() + self.s
        while time.perf_counter() < until:
            numpy.sort(self.array)  # slow: arrays


class Fresh(Shape):
    """Memory that nobody has touched before."""

    def slow(self):
        until = time.perf_counter() + self.s
        while time.perf_counter() < until:
            bytearray(1 << 24)  # slow: fresh


class Import(Shape):
    """A module is loaded again in each step."""

    def slow(self):
        import slow_module
        slow_module.SECONDS = self.s
        importlib.reload(slow_module)


class Made(Shape):
    """Code that is made at run time belongs to the line that runs it."""

    def setup(self):
        self.code = compile("import time\ntime.sleep(seconds)\n", "<made>", "exec")

    def slow(self):
        exec(self.code, {"seconds": self.s})  # slow: made


class Pickled(Shape):
    """An object for all ranks: it is written inside of PyTorch's function, before the collective."""

    class State:
        def __init__(self, seconds):
            self.seconds = seconds

        def __getstate__(self):
            time.sleep(self.seconds)  # slow: pickled
            return {"seconds": self.seconds}

        def __setstate__(self, state):
            self.seconds = state["seconds"]

    def exchange(self):
        dist.all_gather_object([None] * self.world, Pickled.State(self.s))
        self.own[-1] += self.s
        super().exchange()


class Plain(Pickled):
    """The other ranks of it."""

    def __init__(self, rank, world, slow_ms):
        super().__init__(rank, world, 0)


class Statement(Shape):
    """Of many lines, of which one is slow."""

    def slow(self):
        return max(len("a"),
                   time.sleep(self.s) or 1,  # slow: statement
                   len("b"))


class Module(torch.nn.Module):
    def __init__(self, inner, seconds):
        super().__init__()
        self.inner, self.seconds = inner, seconds

    def forward(self, x):
        time.sleep(self.seconds)  # slow: nested
        return self.inner(x)


class Nested(Shape):
    """Deep in a model of containers."""

    def setup(self):
        layers = torch.nn.Sequential(Module(torch.nn.Identity(), self.s))
        for _ in range(6):
            layers = torch.nn.Sequential(layers, torch.nn.Identity())
        self.layers = layers

    def forward(self, x):
        return self.model(self.layers(x))


def add_shapes():
    """run() of slow_shapes_job.py looks for classes there."""
    module = sys.modules["slow_shapes_job"]
    for name, value in list(globals().items()):
        if isinstance(value, type) and issubclass(value, Shape) and value is not Shape:
            setattr(module, name, value)


add_shapes()
