# SPDX-License-Identifier: MIT
"""Jobs over gloo in which a rank is slow at one place, each in another shape. slow_shapes.py forks the ranks: it imports
PyTorch once. The comments at the ends of lines are what it looks for."""
import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

NOISE = os.urandom(1 << 20)
PATTERN = re.compile("(?:a|b)*c")


def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(50))


class Shape:
    """One rank. A shape has `setup`, `before` (in the step, before the collective) or `every`."""

    def __init__(self, rank, world, slow_ms):
        self.rank, self.world, self.s = rank, world, slow_ms / 1e3
        self.step = 0

    def setup(self):
        pass

    def slow(self):
        pass

    def batches(self, steps):
        return iter(range(steps))

    def forward(self, x):
        return self.model(x)

    def train(self, steps, base_ms):
        self.model = torch.nn.Linear(32, 16)
        self.setup()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        x = torch.ones(4, 32)
        batches = self.batches(steps)
        self.own = []  # seconds of each step up to the collective, which the report must agree with
        self.slow_took, self.between_took = [], []
        began = time.perf_counter()
        for self.step in range(steps):
            next(batches)
            time.sleep(base_ms / 1e3)  # the work of all
            slow_began = time.perf_counter()
            self.slow()
            self.slow_took.append(time.perf_counter() - slow_began)
            optimizer.zero_grad()
            self.forward(x).square().mean().backward()
            self.own.append(time.perf_counter() - began)
            self.exchange()
            began = time.perf_counter()
            optimizer.step()
            self.after()

    def exchange(self):
        for i, p in enumerate(self.model.parameters()):
            if i:
                self.timed_between()
            dist.all_reduce(p.grad)  # the wait

    def timed_between(self):
        began = time.perf_counter()
        self.between()
        took = time.perf_counter() - began
        self.own[-1] += took
        self.between_took.append(took)

    def between(self):
        pass

    def after(self):
        pass


class Sleep(Shape):
    def slow(self):
        time.sleep(self.s)  # slow: sleep


class Loop(Shape):
    def slow(self):
        until = time.perf_counter() + self.s
        while time.perf_counter() < until: sum(range(100))  # slow: loop


def parse(seconds):
    return decode_deep(seconds)


def decode_deep(seconds):
    for _ in range(2):
        time.sleep(seconds / 2)  # slow: callee


class Callee(Shape):
    def slow(self):
        parse(self.s)


class Callback(Shape):
    def key(self, value):
        time.sleep(self.s / 4)  # slow: callback
        return value

    def slow(self):
        sorted([3, 1, 2, 4], key=self.key)


class JsonCallback(Shape):
    def default(self, _):
        busy_until = time.perf_counter() + self.s
        while time.perf_counter() < busy_until: zlib.crc32(NOISE[:4096])  # slow: json
        return 1

    def slow(self):
        json.dumps({"a": object()}, default=self.default)


class Hook(Shape):
    def hook(self, *_):
        time.sleep(self.s)  # slow: hook

    def setup(self):
        self.model.register_forward_hook(self.hook)


class BackwardHook(Shape):
    def hook(self, grad):
        time.sleep(self.s)  # slow: gradhook
        return grad

    def setup(self):
        self.model.weight.register_hook(self.hook)


class Function(torch.autograd.Function):
    seconds = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        time.sleep(Function.seconds)  # slow: autograd
        return grad * 2


class Autograd(Shape):
    def forward(self, x):
        Function.seconds = self.s
        return Function.apply(self.model(x))


class Generator(Shape):
    def batches(self, steps):
        for i in range(steps):
            time.sleep(self.s)  # slow: generator
            yield i


class Compiled(Shape):
    def setup(self):
        self.compiled = torch.compile(self.inner, backend="eager")

    def inner(self, x):
        y = self.model(x)
        torch._dynamo.graph_break()
        pause(self.s)
        return y

    def forward(self, x):
        return self.compiled(x)


def pause(seconds):
    time.sleep(seconds)  # slow: compiled


class Extension(Shape):
    def work(self, size):
        zlib.compress(NOISE[:size], 9)  # slow: extension

    def setup(self):
        began, n = time.thread_time(), 0  # on a busy machine much less than the time that passes
        while time.thread_time() - began < 0.2:
            self.work(65536)
            n += 1
        self.size = int(65536 * self.s * n / 0.2)

    def slow(self):
        self.work(self.size)


class Digest(Extension):
    """One call into C that releases the GIL."""

    def work(self, size):
        hashlib.pbkdf2_hmac("sha256", b"key", b"salt", size // 100)  # slow: digest


class Regex(Extension):
    """One call into C that keeps the GIL."""

    def work(self, size):
        PATTERN.match("a" * size)  # slow: regex


class Pool(Shape):
    def setup(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def load(self):
        time.sleep(self.s)  # slow: pool

    def slow(self):
        self.pool.submit(self.load).result()  # slow: result


class Lock(Shape):
    def setup(self):
        self.lock = threading.Lock()
        self.go = threading.Semaphore(0)
        self.held = threading.Semaphore(0)
        threading.Thread(target=self.holder, daemon=True).start()

    def holder(self):
        while self.go.acquire():
            with self.lock:
                self.held.release()
                time.sleep(self.s)

    def slow(self):
        self.go.release()
        self.held.acquire()
        with self.lock:  # slow: lock
            pass


class Disk(Shape):
    def slow(self):
        until = time.perf_counter() + self.s
        with tempfile.TemporaryFile(dir=os.environ.get("SLOW_DISK")) as file:
            while time.perf_counter() < until:
                file.write(NOISE[:65536])
                file.flush()
                os.fsync(file.fileno())  # slow: disk


class Network(Shape):
    def setup(self):
        self.mine, other = socket.socketpair()
        threading.Thread(target=self.server, args=(other,), daemon=True).start()

    def server(self, other):
        while other.recv(1):
            time.sleep(self.s)
            other.send(b"y")

    def slow(self):
        self.mine.send(b"x")
        self.mine.recv(1)  # slow: network


class Process(Shape):
    def slow(self):
        subprocess.run(["sleep", str(self.s)], env={"PATH": os.environ["PATH"]}, check=True)  # slow: process


class Collect(Shape):
    def setup(self):
        self.kept = [[i] for i in range(int(6e6 * self.s))]

    def slow(self):
        gc.collect()  # slow: gc


class Many(Shape):
    """No single line is slow: a function is."""

    def slow(self):
        self.many()

    def many(self):
        time.sleep(self.s / 5)
        time.sleep(self.s / 5)
        time.sleep(self.s / 5)
        time.sleep(self.s / 5)
        time.sleep(self.s / 5)


class Async(Shape):
    async def fetch(self):
        await asyncio.sleep(0)
        time.sleep(self.s)  # slow: async

    def slow(self):
        asyncio.run(self.fetch())


class Decorated(Shape):
    @functools.lru_cache(maxsize=None)
    def cached(self, step):
        busy(self.s)  # slow: decorated
        return step

    def slow(self):
        self.cached(self.step)


class Recursive(Shape):
    def down(self, n):
        if n == 0:
            time.sleep(self.s)  # slow: recursive
        else:
            self.down(n - 1)

    def slow(self):
        self.down(20)


class Tensors(Shape):
    def setup(self):
        self.big = torch.ones(1 << 16)

    def slow(self):
        until = time.perf_counter() + self.s
        while time.perf_counter() < until:
            self.big.sin().cos().sum()  # slow: tensors


class Print(Shape):
    def slow(self):
        until = time.perf_counter() + self.s
        with open(os.devnull, "w", encoding="utf-8") as file:
            while time.perf_counter() < until:
                print(list(range(2000)), file=file)  # slow: print


class Samples(Dataset):
    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        time.sleep(self.seconds)  # slow: worker
        return index


class Worker(Shape):
    def batches(self, steps):
        return iter(DataLoader(Samples(steps + 2, self.s), num_workers=1, prefetch_factor=1))


class Tenth(Shape):
    period = 10

    def slow(self):
        if self.step % self.period == self.period - 1:
            time.sleep(self.s)  # slow: tenth


class Seventh(Tenth):
    period = 7


class Sixteenth(Tenth):
    period = 16


class Early(Shape):
    def slow(self):
        if self.step <= 20:
            time.sleep(self.s)  # slow: early


class Middle(Shape):
    def slow(self):
        if 20 <= self.step < 40:
            time.sleep(self.s)  # slow: middle


class Checkpoint(Shape):
    def after(self):
        if self.step % 20 == 19:
            time.sleep(self.s)  # slow: checkpoint


class Second(Shape):
    def slow(self):
        time.sleep(self.s)  # slow: second


class Property(Shape):
    """What looks like an attribute computes."""

    @property
    def vocabulary(self):
        busy(self.s)  # slow: property
        return 1

    def slow(self):
        _ = self.vocabulary


class Context(Shape):
    @contextlib.contextmanager
    def timed(self):
        yield
        time.sleep(self.s)  # slow: context

    def slow(self):
        with self.timed():
            pass


class Retry(Shape):
    def slow(self):
        for attempt in range(2):
            try:
                if attempt == 0:
                    raise OSError("storage is busy")
            except OSError:
                time.sleep(self.s)  # slow: retry


class Comprehension(Shape):
    def slow(self):
        rows = range(4)
        return [busy(self.s / 4) or row for row in rows]  # slow: comprehension


class Signal(Shape):
    def handler(self, *_):
        time.sleep(self.s)  # slow: signal

    def setup(self):
        signal.signal(signal.SIGUSR1, self.handler)

    def slow(self):
        signal.raise_signal(signal.SIGUSR1)


class Handle:
    def __init__(self, seconds):
        self.seconds = seconds

    def __del__(self):
        time.sleep(self.seconds)  # slow: finalizer


class Finalizer(Shape):
    def slow(self):
        self.handle = Handle(self.s)
        del self.handle


class Alternate(Shape):
    """As with gradient accumulation: something every second step."""

    def slow(self):
        if self.step % 2:
            time.sleep(2 * self.s)  # slow: alternate


class Uneven(Shape):
    """Long samples: most cost little, some much."""

    def slow(self):
        random.seed(self.step)
        time.sleep(random.expovariate(1 / self.s))  # slow: uneven


class Growing(Shape):
    """A list that is never emptied is gone through in each step."""

    def slow(self):
        time.sleep(2 * self.s * self.step / 60)  # slow: growing


class Between(Shape):
    """Between two collectives of the step, not before the first."""

    def between(self):
        time.sleep(self.s)  # slow: between


class Parts(Shape):
    """At one line before the first collective and at another before the second."""

    def slow(self):
        time.sleep(0.6 * self.s)  # slow: parts

    def between(self):
        time.sleep(0.4 * self.s)  # slow: rest


class After(Shape):
    def after(self):
        time.sleep(self.s)  # slow: after


class Hog(Shape):
    """A thread of metrics keeps the GIL while the training thread wants it."""

    def setup(self):
        self.go = threading.Event()
        threading.Thread(target=self.metrics, daemon=True).start()

    def metrics(self):
        while True:
            self.go.wait()
            self.go.clear()
            sorted(NOISE[:int(self.s * 4e6)])  # slow: hog

    def slow(self):
        self.go.set()
        time.sleep(0.0005)  # slow: waits


class Collate(Shape):
    def collate(self, rows):
        time.sleep(self.s)  # slow: collate
        return rows

    def batches(self, steps):
        return iter(DataLoader(Samples(steps, 0), collate_fn=self.collate))


class Experts(Shape):
    """The expert of rank 1 gets twice as many tokens as the others."""

    def exchange(self):
        gets = [8 * (1 + (to == 1)) for to in range(self.world)]
        tokens, mine = torch.ones(sum(gets), 16), [gets[self.rank]] * self.world
        here, back = torch.empty(sum(mine), 16), torch.empty_like(tokens)
        dist.all_to_all_single(here, tokens, mine, gets)
        self.timed_between()
        dist.all_to_all_single(back, here, gets, mine)


class SlowExpert(Experts):
    def between(self):
        time.sleep(self.s)  # slow: experts


class Sharded(Shape):
    """Each rank updates its part of the parameters and sends it to all others, all parts at once."""

    def exchange(self):
        dist.all_reduce(self.model.weight.grad)
        self.timed_between()
        parts = [torch.ones(4096) for _ in range(4 * self.world)]
        for sent in [dist.broadcast(part, i % self.world, async_op=True) for i, part in enumerate(parts)]:
            sent.wait()


class Turns(Shape):
    """In each step another rank has something to do."""

    def slow(self):
        if self.step % self.world == self.rank:
            time.sleep(self.s)  # slow: turns


class Routed(Shape):
    """Each layer's tokens go mostly to one expert, now to one and now to another: in all, ranks have equally much."""

    def setup(self):
        self.parts = []  # seconds of each step between two exchanges

    def exchange(self):
        tokens = torch.ones(8 * self.world)
        self.parts.append([])
        for layer in range(3):
            dist.all_to_all_single(torch.empty_like(tokens), tokens)
            began = time.perf_counter()
            time.sleep(self.s * (0.2 + ((self.step + layer) % self.world == self.rank)))
            self.parts[-1].append(time.perf_counter() - began)
            dist.all_to_all_single(torch.empty_like(tokens), tokens)


class Lengths(Shape):
    """Sequences of other lengths on each rank: no rank has more of them than its peers."""

    def setup(self):
        self.random = random.Random(self.rank)

    def slow(self):
        time.sleep(self.random.expovariate(1 / self.s))  # slow: lengths


class SlowShard(Sharded):
    def between(self):
        time.sleep(self.s)  # slow: sharded


class Local(Shape):
    """As in local SGD: ranks meet in every eighth step only."""

    def exchange(self):
        for p in self.model.parameters():
            if self.step % 8 == 7:
                dist.all_reduce(p.data)


class SlowLocal(Local):
    def slow(self):
        time.sleep(self.s)  # slow: local


class Polled(Shape):
    """Asks again and again whether the gradients are there, and calls nothing that waits."""

    def exchange(self):
        for sent in [dist.all_reduce(p.grad, async_op=True) for p in self.model.parameters()]:
            while not sent.is_completed():
                pass


class SlowPolled(Polled):
    def slow(self):
        time.sleep(self.s)  # slow: polled


class PolledAsleep(Shape):
    """The same, of all at once, and sleeps between the questions."""

    def exchange(self):
        sent = [dist.all_reduce(p.grad, async_op=True) for p in self.model.parameters()]
        while not all([one.is_completed() for one in sent]):
            time.sleep(0.0003)


class SlowPolledAsleep(PolledAsleep):
    def slow(self):
        time.sleep(self.s)  # slow: polled-asleep


class PolledBeside(Shape):
    """Has work of its own to do beside it, and asks now and then, before it only asks."""

    def exchange(self):
        sent = [dist.all_reduce(p.grad, async_op=True) for p in self.model.parameters()]
        for _ in range(4):
            busy(0.0005)
            sent[-1].is_completed()
        while not sent[-1].is_completed():
            time.sleep(0)


class SlowPolledBeside(PolledBeside):
    def slow(self):
        time.sleep(self.s)  # slow: polled-beside


class InThread(Sleep):
    """As under Ray Train: the loop runs in a thread of its own."""

    def train(self, steps, base_ms):
        thread = threading.Thread(target=super().train, args=(steps, base_ms))
        thread.start()
        thread.join()


class Quiet(Shape):
    pass


def run(rank, world, store, shape, slow_ms, steps, base_ms, other="Quiet"):
    """`shape`: the class of each rank that is slow, by rank; `other`: that of the others."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    kind = getattr(sys.modules[__name__], shape.get(rank, other))
    job = kind(rank, world, slow_ms)
    job.train(steps, base_ms)
    with open(f"{store}-own-{rank}", "w", encoding="utf-8") as file:
        json.dump({"own": job.own, "slow": job.slow_took, "between": job.between_took, "parts": getattr(job, "parts", [])}, file)
    dist.barrier()
    dist.destroy_process_group()
