# SPDX-License-Identifier: MIT
"""One rank of a pipeline of two stages over gloo, with as many replicas as fit the world: its first half of ranks is
stage 0. Each stage works WORK_MS for a micro-batch in each direction; the slow stage, or rank, works --slow-ms more.
Writes into a folder when it did what, for pipelines.py.

    pipeline_gloo.py [--slow-stage N] [--slow-rank N] [--slow-ms MS] [--steps N] [--way irecv|recv|batch] [--times FOLDER]
"""
import argparse
import contextlib
import json
import os
import time

import torch
import torch.distributed as dist

MICRO_BATCHES, WORK_MS = 4, 2.0
times = []  # of each step: what was done, from when to when


@contextlib.contextmanager
def timed(what):
    begin = time.perf_counter()
    yield
    times[-1].append((what, begin, time.perf_counter()))


def work(ms):
    time.sleep(ms / 1e3)  # not a loop: ranks may share a core here


def own_work(extra_ms):
    work(WORK_MS)
    if extra_ms:
        with timed("slow work"):
            work(extra_ms)  # the slow work


class Link:
    """Sends to and receives from the peer of the other stage."""

    def __init__(self, peer, way):
        self.peer, self.way, self.sent = peer, way, []

    def send(self, tensor):
        with timed("send"):
            self.begin_to_send(tensor)

    def begin_to_send(self, tensor):
        if self.way == "batch":
            self.sent += dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor, self.peer)])
        else:
            self.sent.append(dist.isend(tensor, self.peer))

    def receive(self):
        tensor = torch.empty(4096)
        with timed("receive"):
            if self.way == "recv":
                dist.recv(tensor, self.peer)  # the receive
            elif self.way == "batch":
                for request in dist.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, self.peer)]):
                    request.wait()  # the receive
            else:
                dist.irecv(tensor, self.peer).wait()  # the receive
        return tensor

    def finish(self):
        for request in self.sent:
            request.wait()
        self.sent = []


def step(stage, link, extra_ms):
    if stage == 0:
        for _ in range(MICRO_BATCHES):
            own_work(extra_ms)
            link.send(torch.ones(4096))
        for _ in range(MICRO_BATCHES):
            link.receive()
            own_work(0)
    else:
        for _ in range(MICRO_BATCHES):
            link.receive()
            own_work(extra_ms)
            own_work(0)
            link.send(torch.ones(4096))
    link.finish()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slow-stage", type=int, default=-1)
    parser.add_argument("--slow-rank", type=int, default=-1)
    parser.add_argument("--slow-ms", type=float, default=6.0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--way", default="recv")
    parser.add_argument("--times")
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    stage, replicas = rank // (world // 2), world // 2
    groups = [dist.new_group(list(range(s * replicas, (s + 1) * replicas))) for s in range(2)]
    link = Link((rank + replicas) % world, options.way)
    weights = torch.ones(10000, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.01)
    dist.barrier()
    extra_ms = options.slow_ms if stage == options.slow_stage or rank == options.slow_rank else 0
    for _ in range(options.steps):
        times.append([])
        step(stage, link, extra_ms)
        weights.grad = torch.ones_like(weights)
        with timed("reduce"):
            if replicas > 1:
                dist.all_reduce(weights.grad, group=groups[stage])
        with timed("update"):
            optimizer.step()
    if options.times:
        with open(os.path.join(options.times, f"rank{rank}.json"), "w", encoding="utf-8") as out:
            json.dump(times, out)
    dist.destroy_process_group()


main()
