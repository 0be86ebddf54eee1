#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's profiler records jobs on GPUs, without stacks: training_recording.py TSCOPE-REPORT. Gradients are reduced, or
layers are sharded, or stages send to each other. The truth is the schedule that is written here, run again without what
is said to cost time: worth, place and kind of steps."""
import collections
import os
import random
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of, ids_of, ranks_of  # noqa: E402
from observed import json_of  # noqa: E402
import profiler_file  # noqa: E402

REPORT = sys.argv[1]
STREAM, COMM_STREAM = 7, 20
HOUR = 3600e6  # us, as all times here
NOT_COMPUTE = ("host", "launch", "transfer")
ALL_REDUCE = ("c10d::allreduce_", "allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
GATHER = ("c10d::_allgather_base_", "_allgather_base", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
SCATTER = ("c10d::_reduce_scatter_base_", "_reduce_scatter_base",
           "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
BROADCAST = ("c10d::broadcast_", "broadcast", "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
EXCHANGE = ("c10d::alltoall_base_", "all_to_allv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
MESSAGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def job(**changed):
    return types.SimpleNamespace(**{
        "ranks": 4, "steps": 8, "layers": 6, "forward": 400, "backward": 800, "optimizer": 600, "launch": 12, "latency": 4,
        "buckets": 2, "transfer": 500, "overlap": True, "syncs": True, "jitter": 0.01, "slow": {}, "slow_in": range(1000), "slow_each": 1, "turns": 1,
        "slow_backward": {}, "slow_links": {}, "tokens": {}, "slow_host": {}, "slow_copies": {}, "copy": 500, "gpus": {}, "host": {},
        "every": {}, "in_group": 2, "info": True, "marks": True, "events": False, "closures": 0, "closure_host": {}, "engine": "",
        "schedule": reduce_gradients, "micro_batches": 6, "elements": 1 << 20, "sizes": (1 << 20, 3 << 18), "unseen": {}, "updates": True, "before": {}, "lost": lambda event: False, "not_linked": False, "prefix": "cuda",
        "clocks": {}, "seed": 1, "evaluates": {}, **changed})


class Rank:
    """Where the host and both streams of a rank are, and what it has recorded."""

    def __init__(self, number, cured):
        self.number, self.cured, self.events = number, cured, []
        self.host = self.compute = self.communication = 0.0
        self.streams = collections.defaultdict(float)  # when the last work on others ended
        self.correlation = self.step = self.turn = 0

    def record(self, category, name, at, took, **args):
        process = 1000 + self.number
        self.events.append(profiler_file.event(category, name, at, took, process, process, **args))

    def does(self, name, took, category):
        took = self.cured(self.number, "host " + name, took)
        self.record(category, name, self.host, took)
        self.host += took

    def launches(self, j, operator):
        """The time from which the kernel can run, and its correlation id."""
        took = self.cured(self.number, "launch", j.launch + j.slow_host.get(self.number, 0))
        self.correlation += 1
        self.record("cpu_op", operator, self.host + 0.1, 0.9 * took)
        self.record("cuda_runtime", j.prefix + "LaunchKernel", self.host + 0.2 * took, 0.6 * took, correlation=self.correlation)
        self.host += took
        return self.host + j.latency, self.correlation

    def runs(self, kernel, at, took, stream, correlation, **more):
        self.record("kernel", kernel, at, took, device=self.number, stream=stream, correlation=correlation, **more)

    def computes(self, j, what, operator, kernel, took):
        possible, correlation = self.launches(j, operator)
        in_turn = j.turns == 1 or self.step % j.turns == self.number
        slow = j.slow.get(self.number, 1) if in_turn and self.step in j.slow_in and self.turn % j.slow_each == 0 else 1
        took *= slow * (1 + j.jitter * j.chance.gauss(0, 1))
        took = self.cured(self.number, what, took)
        begin = max(possible, self.compute + 0.8)
        self.runs(kernel, begin, took, STREAM, correlation)
        self.compute = begin + took

    def copies_to_device(self, j, stream):
        """What is launched from then on waits for it."""
        possible, correlation = self.launches(j, "aten::copy_")
        took = self.cured(self.number, "copy", j.copy * j.slow_copies.get(self.number, 1))
        begin = max(possible, self.streams[stream] + 1)
        self.record("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", begin, took, device=self.number, stream=stream,
                    correlation=correlation, bytes=1 << 24)
        self.streams[stream] = begin + took
        self.compute = max(self.compute, begin + took + 0.7)

    def lets_wait(self, j, stream, other):
        """What is launched on a stream from now on waits for what is on the other; recorded if `events`."""
        if not j.events:
            return
        for call, kind in ("EventRecord", ""), ("StreamWaitEvent", "Stream Wait Event"):
            self.correlation += 1
            self.record("cuda_runtime", j.prefix + call, self.host, 1, correlation=self.correlation)
            if kind:
                self.record("cuda_sync", kind, self.host, 1, stream=stream, wait_on_stream=other, correlation=self.correlation,
                            wait_on_cuda_event_record_corr_id=self.correlation - 1, device=self.number)
            self.host += 1

    def waits_for_device(self, j):
        self.correlation += 1
        end = max(self.host, self.compute) + 5
        self.record("cuda_runtime", j.prefix + "DeviceSynchronize", self.host, end - self.host, correlation=self.correlation)
        self.host = end


def facts(j, what, numbers, **more):
    return {"Collective name": what, "In msg nelems": j.elements, "Out msg nelems": j.elements, "Group size": len(numbers),
            "dtype": "Float", "Process Group Name": "0" if len(numbers) == j.ranks else f"of {numbers}",
            "Process Group Description": "default_pg", "Process Group Ranks": str(numbers), **more} if j.info else {}


def collective(j, ranks, kind, after_compute, stream=COMM_STREAM, behind=None, link="transfer"):
    """When it ends, on all ranks. It waits for what is on its stream, and on the one it is behind."""
    operator, what, kernel = kind
    begins = []
    for rank in ranks:
        rank.lets_wait(j, stream, behind or STREAM)
        possible, correlation = rank.launches(j, operator)
        begins.append((max(possible, rank.streams[stream] + 1, after_compute * (rank.compute + 1.5),
                           rank.streams[behind] + 1.2), correlation))
    end = max(begin for begin, _ in begins) + ranks[0].cured(0, link, j.transfer * (4 if link == "slow link" else 1))
    for rank, (begin, correlation) in zip(ranks, begins):
        rank.runs(kernel, begin, end - begin, stream, correlation, **facts(j, what, [one.number for one in ranks]))
        rank.streams[stream] = end
        rank.communication = max(rank.communication, end)
    return end


def message(j, sender, receiver):
    """What the receiver launches from then on waits for it."""
    begins = []
    for rank, operator, other, after in ((sender, "c10d::send", receiver, sender.compute + 1.5),
                                         (receiver, "c10d::recv_", sender, 0)):
        possible, correlation = rank.launches(j, operator)
        stream = 2 * COMM_STREAM + 2 * other.number + (rank is sender)
        begins.append((max(possible, after, rank.streams[stream] + 1), correlation, stream))
    more = sender.cured(0, f"transfer {sender.number} {receiver.number}", j.slow_links.get((sender.number, receiver.number), 0))
    end = max(begin for begin, _, _ in begins) + sender.cured(0, "transfer", j.transfer) + more
    for rank, what, (begin, correlation, stream) in zip((sender, receiver), ("send", "recv"), begins):
        rank.runs(MESSAGE, begin, end - begin, stream, correlation,
                  **facts(j, what, list(range(j.ranks)), **{"Src Rank": sender.number, "Dst Rank": receiver.number}))
        rank.streams[stream] = end
    receiver.compute = max(receiver.compute, end + 0.7)


def forward(j, rank):
    rank.computes(j, "forward", "aten::mm", "gemm_bf16_tn", j.forward)


def backward(j, rank):
    more = rank.cured(rank.number, "slow backward", j.backward * (j.slow_backward.get(rank.number, 1) - 1))
    rank.computes(j, "backward", j.engine + "MmBackward0", "gemm_bf16_nt", j.backward + more)


def reduce_gradients(j, ranks):
    for _ in range(j.layers):
        for rank in ranks:
            forward(j, rank)
    for layer in reversed(range(j.layers)):
        for rank in ranks:
            backward(j, rank)
        if j.overlap and layer % (j.layers // j.buckets) == 0:
            collective(j, ranks, ALL_REDUCE, True)
    for _ in range(0 if j.overlap else j.buckets):
        collective(j, ranks, ALL_REDUCE, True)


def run_closures(j, ranks):
    """As LBFGS, which is handed a closure and calls it several times: some host work, forward and backward."""
    for _ in range(j.closures):
        for rank in ranks:
            for name, took in j.closure_host.items():
                rank.does(name, took, "cpu_op")
        reduce_gradients(j, ranks)


def ask_experts(j, ranks):
    """Each rank has an expert, of which one gets more tokens."""
    for rank in ranks:
        forward(j, rank)
    collective(j, ranks, EXCHANGE, True)
    for rank in ranks:
        rank.compute = max(rank.compute, rank.communication + 0.7)
        more = rank.cured(rank.number, "tokens", j.tokens.get(rank.number, 0))
        rank.computes(j, "expert", "aten::bmm", "gemm_bf16_experts", j.backward + more)
    collective(j, ranks, EXCHANGE, True)
    for rank in ranks:
        rank.compute = max(rank.compute, rank.communication + 0.7)
        backward(j, rank)
    collective(j, ranks, ALL_REDUCE, True)


def ask_many_experts(j, ranks):
    """Each layer has experts, which get more tokens on one rank or another, in each step the same."""
    for layer in range(j.layers):
        for rank in ranks:
            forward(j, rank)
        collective(j, ranks, EXCHANGE, True)
        for rank in ranks:
            rank.compute = max(rank.compute, rank.communication + 0.7)
            rank.computes(j, f"expert {layer}", "aten::bmm", "gemm_bf16_experts", j.tokens[layer][rank.number])
        collective(j, ranks, EXCHANGE, True)
        for rank in ranks:
            rank.compute = max(rank.compute, rank.communication + 0.7)
            backward(j, rank)
    collective(j, ranks, ALL_REDUCE, True)


def gather_layers(j, ranks):
    """Each layer is gathered while the one before it is computed, and its gradients are scattered."""
    passes = [(forward, layer) for layer in range(j.layers)] + [(backward, layer) for layer in reversed(range(j.layers))]
    gathered = collective(j, ranks, GATHER, False)
    for number, (compute, _) in enumerate(passes):
        next_one = collective(j, ranks, GATHER, False) if number + 1 < len(passes) else 0
        for rank in ranks:
            rank.compute = max(rank.compute, gathered + 0.7)
            compute(j, rank)
        if compute is backward:
            collective(j, ranks, SCATTER, True)
        gathered = next_one


def gather_in_groups(j, ranks):
    """Layers are sharded in groups. All that have the same shard reduce its gradients, while the next layer is computed."""
    groups = [ranks[first:first + j.in_group] for first in range(0, j.ranks, j.in_group)]
    for compute in forward, backward:
        for _ in range(j.layers):
            for group in groups:
                collective(j, group, GATHER, False)
            for rank in ranks:
                rank.compute = max(rank.compute, rank.streams[COMM_STREAM] + 0.7)
                compute(j, rank)
            if compute is backward:
                for group in groups:
                    collective(j, group, SCATTER, True)
                for shard in range(j.in_group):
                    collective(j, ranks[shard::j.in_group], ALL_REDUCE, False, COMM_STREAM + 1, COMM_STREAM)


def split_layers(j, ranks):
    """Tensors and sequences are split: in each layer all wait for each other, before it is computed and after."""
    for compute in forward, backward:
        for _ in range(j.layers):
            for kind in GATHER, SCATTER:
                end = collective(j, ranks, kind, True)
                for rank in ranks:
                    rank.compute = max(rank.compute, end + 0.7)
                    if kind is GATHER:
                        compute(j, rank)


def reduce_in_pairs(j, ranks):
    """Each layer is split between two ranks; between 4 and 5 the link is slow. All reduce at the end."""
    for compute in forward, backward:
        for _ in range(j.layers):
            for first in range(0, j.ranks, 2):
                pair, link = ranks[first:first + 2], "slow link" if first == 4 else "transfer"
                for rank in pair:
                    compute(j, rank)
                end = collective(j, pair, ALL_REDUCE, True, link=link)
                for rank in pair:
                    rank.compute = max(rank.compute, end + 0.7)
    collective(j, ranks, ALL_REDUCE, True, COMM_STREAM + 1)


def copy_and_gather(j, ranks):
    """Parameters of a layer are copied in on a stream of their own once the layer but one before it is computed, then gathered."""
    done = [[rank.compute] * 2 for rank in ranks]
    for layer in range(j.layers):
        for rank, before in zip(ranks, done):
            possible, correlation = rank.launches(j, "aten::split_with_sizes_copy")
            begin = max(possible, rank.streams[COMM_STREAM + 1] + 1, before[layer] + 1.5)
            took = rank.cured(rank.number, "copies", j.copy * j.slow_copies.get(rank.number, 1))
            rank.runs("split_with_sizes_copy_out", begin, took, COMM_STREAM + 1, correlation)
            rank.streams[COMM_STREAM + 1] = begin + took
        end = collective(j, ranks, GATHER, False, behind=COMM_STREAM + 1)
        for rank, before in zip(ranks, done):
            rank.compute = max(rank.compute, end + 0.7)
            forward(j, rank)
            before.append(rank.compute)


def copy_layers(j, ranks):
    """Each layer is copied from the host, for each pass."""
    for compute in forward, backward:
        for _ in range(j.layers):
            for rank in ranks:
                rank.copies_to_device(j, COMM_STREAM + 1)
                compute(j, rank)
    collective(j, ranks, ALL_REDUCE, True)


def pass_stages(j, ranks):
    """All micro-batches go forward through the stages, then all go back."""
    for compute, stages in (forward, ranks), (backward, ranks[::-1]):
        for turn in range(j.micro_batches):
            for before, stage in zip([None, *stages], stages):
                if before:
                    message(j, before, stage)
                stage.turn = turn
                for _ in range(j.layers):
                    compute(j, stage)


def train_by_turns(j, ranks):
    """Two models of other sizes, each with its optimizer."""
    for number, j.elements in enumerate(j.sizes):
        reduce_gradients(j, ranks)
        for rank in ranks if number + 1 < len(j.sizes) else ():
            update(j, rank)


def generate_and_train(j, ranks):
    """The last two ranks generate, token by token, what the others train on; then they get the new weights."""
    trainers, generators = ranks[:-2], ranks[-2:]
    for _ in range(30):
        for rank in generators:
            rank.computes(j, "generate", "aten::mm", "gemv_bf16", 120)
        end = collective(j, generators, ALL_REDUCE, True)
        for rank in generators:
            rank.compute = end + 0.7
    end = collective(j, ranks, GATHER, True, COMM_STREAM + 1)
    for rank in ranks:
        rank.compute = max(rank.compute, end + 0.7)
    reduce_gradients(j, trainers)
    for rank in trainers:
        update(j, rank)
    end = collective(j, ranks, BROADCAST, True, COMM_STREAM + 1)
    for rank in ranks:
        rank.compute = max(rank.compute, end + 0.7)


def serve_parameters(j, ranks):
    """Rank 0 gets gradients from each other rank, and sends it what it made of them."""
    server, workers = ranks[0], ranks[1:]
    for worker in workers:
        for compute in forward, backward:
            for _ in range(j.layers):
                compute(j, worker)
        message(j, worker, server)
        server.computes(j, "server", "aten::add_", "add_kernel", 50)
    for worker in workers:
        message(j, server, worker)


def share_layers_in_stages(j, ranks):
    """Pairs share each layer; of two stages each has a pair; two such pipelines reduce their gradients."""
    pairs = [ranks[first:first + 2] for first in range(0, 8, 2)]
    for compute, stages in (forward, (0, 1)), (backward, (1, 0)):
        for _ in range(j.micro_batches):
            for replica in pairs[:2], pairs[2:]:
                for number, stage in enumerate(stages):
                    for before, rank in zip(replica[stages[0]], replica[stage]) if number else ():
                        message(j, before, rank)
                    for _ in range(j.layers):
                        for rank in replica[stage]:
                            compute(j, rank)
                        end = collective(j, replica[stage], ALL_REDUCE, True)
                        for rank in replica[stage]:
                            rank.compute = max(rank.compute, end + 0.7)
    for one, other in zip(ranks[:4], ranks[4:]):
        collective(j, [one, other], ALL_REDUCE, True, COMM_STREAM + 1)


def accumulate(j, ranks):
    """Gradients of another number of micro-batches in each step are reduced together."""
    batches = (1, 3, 2, 4, 2, 3, 1, 4)[ranks[0].step % 8]
    for batch in range(batches):
        for _ in range(j.layers):
            for rank in ranks:
                forward(j, rank)
        for layer in reversed(range(j.layers)):
            for rank in ranks:
                backward(j, rank)
            if batch == batches - 1 and layer % (j.layers // j.buckets) == 0:
                collective(j, ranks, ALL_REDUCE, True)


def pass_around(j, ranks):
    """Ring attention: keys and values go round, each by one kernel that sends and receives, while a block is computed."""
    n, numbers = j.ranks, list(range(j.ranks))
    for compute in forward, backward:
        for _ in range(j.layers):
            for turn in range(n - 1):
                begins = []
                for rank in ranks:
                    for what, source in ("send", rank.number), ("recv", (rank.number - 1) % n):
                        rank.record("cpu_op", "record_param_comms", rank.host, 3,
                                    **facts(j, what, numbers, **{"Src Rank": source, "Dst Rank": (source + 1) % n}))
                        rank.host += 4
                    possible, correlation = rank.launches(j, "c10d::coalesced")
                    begins.append((max(possible, rank.streams[COMM_STREAM] + 1, (turn == 0) * (rank.compute + 1.5)), correlation))
                transfer = ranks[0].cured(0, "transfer", j.transfer)
                ends = [max(begins[i - 1][0], begins[i][0], begins[(i + 1) % n][0]) + transfer for i in numbers]
                for rank, (begin, correlation), end in zip(ranks, begins, ends):
                    rank.runs(MESSAGE, begin, end - begin, COMM_STREAM, correlation)
                    rank.streams[COMM_STREAM] = end
                    compute(j, rank)
                    rank.compute = max(rank.compute, end + 0.7)
            for rank in ranks:
                compute(j, rank)
    collective(j, ranks, ALL_REDUCE, True, COMM_STREAM + 1)


def wait_unseen(j, ranks):
    """Before each layer goes back a rank may wait for something that no record tells, while another stream is busy."""
    for rank in ranks:
        possible, correlation = rank.launches(j, "aten::norm")
        begin = max(possible, rank.compute)
        rank.runs("norm_kernel", begin, 0.9 * j.layers * (j.forward + j.backward), STREAM + 1, correlation)
    for _ in range(j.layers):
        for rank in ranks:
            forward(j, rank)
    for _ in range(j.layers):
        for rank in ranks:
            rank.compute += rank.cured(rank.number, "unseen", j.unseen.get(rank.number, 0))
            backward(j, rank)
    collective(j, ranks, ALL_REDUCE, True)


def begin_step(j, rank, step):
    rank.begins_closures = rank.host
    rank.step = step
    for name, took in j.host.get(rank.number, {}).items():
        rank.does(name, took, "user_annotation" if name == LOADER else "cpu_op")
    period, name, took = j.every.get(rank.number, (0, "", 0))
    if period and step % period == period - 1:
        rank.does(name, took, "user_annotation")


def update(j, rank):
    begin = rank.begins_closures if j.closures else rank.host
    rank.compute = max(rank.compute, rank.communication + 0.7)
    rank.lets_wait(j, STREAM, COMM_STREAM)
    rank.computes(j, "optimizer", "aten::_foreach_add_", "multi_tensor_apply_kernel<AdamW>", j.optimizer)
    rank.record("user_annotation", "Optimizer.step#AdamW.step", begin, rank.host - begin)


def end_step(j, rank):
    if j.updates:
        update(j, rank)
    period, batches = j.evaluates.get(rank.number, (0, 0))
    for _ in range(batches if period and rank.step % period == period - 1 else 0):
        rank.computes(j, "evaluation", "aten::mm", "gemm_bf16_tn", j.forward)
    if j.syncs:
        rank.waits_for_device(j)


def run(j, cured=lambda rank, what, took: took):
    """The ranks, and how long a step takes after the first."""
    j.chance = random.Random(j.seed)
    ranks = [Rank(number, cured) for number in range(j.ranks)]
    for number, kernels in j.before.items():
        for _ in range(kernels):
            ranks[number].computes(j, "before", "aten::mm", "gemm_bf16_tn", j.forward)
        ranks[number].waits_for_device(j)
    marks, ends = [[] for _ in ranks], []
    for step in range(j.steps):
        for rank in ranks:
            marks[rank.number].append(rank.host)
            begin_step(j, rank, step)
        j.schedule(j, ranks)
        for rank in ranks:
            end_step(j, rank)
        ends.append(max(max(rank.host, rank.compute) for rank in ranks))
    for rank in ranks if j.marks else ():
        bounds = [*marks[rank.number], rank.host]
        for step, begin in enumerate(bounds[:-1]):
            rank.record("user_annotation", f"ProfilerStep#{step + 10}", begin, bounds[step + 1] - begin)
    return ranks, (ends[-1] - ends[0]) / (j.steps - 1)


def write(j, folder):
    """Times are rounded to nanoseconds, begin and duration apart."""
    ranks, step = run(j)
    for rank in ranks:
        for event in rank.events if j.not_linked else ():
            event["args"].pop("correlation", None)
        events = [{**event, "ts": round(event["ts"] + 5.8e9 + j.clocks.get(rank.number, 0), 3), "dur": round(event["dur"], 3)}
                  for event in rank.events if not j.lost(event)]
        info = {"rank": rank.number, "ranks": j.ranks} if j.info else {}
        if j.gpus:
            info["deviceProperties"] = [{"id": rank.number, "name": j.gpus[rank.number]}]
        profiler_file.write(os.path.join(folder, f"rank{rank.number}.pt.trace.json"), events, **info)
    return step


def report_on(folder):
    return json_of(REPORT, folder)


def report_of(j):
    with tempfile.TemporaryDirectory(prefix="tscope-training-") as folder:
        return write(j, folder), report_on(folder)


def as_fast(slow):
    return lambda rank, what, took: took / slow[rank] if rank in slow and not what.startswith(NOT_COMPUTE) else took


def never_slow(j):
    """Run again without what is slow in some steps only."""
    return run(job(**{**vars(j), "slow": {}}))[1]


def without(*parts):
    return lambda rank, what, took: 0 if what in parts else took


class Expecting(unittest.TestCase):
    maxDiff = None

    def expect(self, j, finding, cured, ranks=None, place=None, first=True):
        """The finding is the first, its saving is within 1 % of a step, and it names the place."""
        step, report = report_of(j)
        truth = step - (run(j, cured)[1] if cured else never_slow(j))
        self.assertEqual(report["steps"]["agreement"], 1)
        titles = [found["title"] for found in report["findings"]]
        found = findings_of(report, finding)
        self.assertTrue(found, titles)
        if first:
            self.assertEqual(report["findings"][0]["id"], finding, titles)
        steps = report["steps"]["training"]
        self.assertAlmostEqual(found[0]["saving_s"] * 1e6 / steps / step, truth / step, delta=0.01, msg=found[0])
        if ranks is not None:
            self.assertEqual(sorted(rank for one in found for rank in one["ranks"]), ranks)
        if place:
            self.assertIn("at " + place, found[0]["title"])
        return report


class Training(Expecting):
    def test_a_quiet_job_names_nobody(self):
        for more in ({}, {"overlap": False}, {"syncs": False}, {"ranks": 2}, {"jitter": 0},
                     {"schedule": gather_layers, "transfer": 200}, {"schedule": split_layers, "transfer": 60},
                     {"schedule": gather_in_groups, "transfer": 150}, {"schedule": pass_stages, "layers": 2, "transfer": 100}):
            _, report = report_of(job(**more))
            self.assertEqual([one for one in report["findings"] if one["id"] != "DIST.EXPOSED_COMM"], [])
            self.assertEqual(report["steps"]["count"], 8)

    def test_a_slow_rank(self):
        slow = {1: 1.2}
        for more in ({}, {"clocks": {0: HOUR, 2: -2 * HOUR, 3: 17.3}}, {"info": False}, {"prefix": "hip"}, {"overlap": False},
                     {"syncs": False}, {"ranks": 2}, {"ranks": 24}):
            self.expect(job(slow=slow, **more), "DIST.STRAGGLER", as_fast(slow), [1])

    def test_ranks_that_hide_each_other_where_hosts_are_steps_ahead(self):
        """What was launched before the steps that are replayed has an order, too."""
        slow = {0: 1.6, 1: 1.3, 2: 1.15}
        j = job(ranks=8, syncs=False, slow=slow)
        step, report = report_of(j)
        all_alike = run(j, as_fast(slow))[1]
        truth = {0: step - run(j, as_fast({0: 1.6}))[1], 1: run(j, as_fast({0: 1.6, 2: 1.15}))[1] - all_alike,
                 2: run(j, as_fast({0: 1.6, 1: 1.3}))[1] - all_alike}
        found = {one["ranks"][0]: one["saving_s"] * 1e6 / report["steps"]["training"]
                 for one in report["findings"] if one["id"] == "DIST.STRAGGLER"}
        self.assertEqual(sorted(found), [0, 1, 2])
        for rank, saves in found.items():
            self.assertAlmostEqual(saves / step, truth[rank] / step, delta=0.01, msg=(rank, truth))

    def test_a_slow_rank_where_layers_are_sharded(self):
        slow = {1: 1.2}
        for more in {}, {"syncs": False}:
            self.expect(job(schedule=gather_layers, transfer=200, slow=slow, **more), "DIST.STRAGGLER", as_fast(slow), [1])

    def test_a_slow_rank_where_layers_are_sharded_in_groups(self):
        for more in ({"clocks": {0: HOUR, 2: -7}}, {"ranks": 16, "in_group": 4}):
            slow = {more.get("ranks", 4) // 2 - 1: 1.2}
            self.expect(job(schedule=gather_in_groups, transfer=150, slow=slow, **more), "DIST.STRAGGLER", as_fast(slow),
                        list(slow), first=False)

    def test_slow_copies_before_layers_are_gathered(self):
        """The others copy while they wait."""
        for copy, work in (250, 400), (300, 300):
            j = job(schedule=copy_and_gather, steps=40, layers=8, forward=work, copy=copy, transfer=60, optimizer=150, slow_copies={2: 3.4})
            report = self.expect(j, "DIST.STRAGGLER", lambda rank, what, took: took / 3.4 if (rank, what) == (2, "copies") else took, [2])
            self.assertRegex(report["findings"][0]["title"], "slow compute")
            self.assertIn("as often as its peers", report["findings"][0]["evidence"])

    def test_a_rank_that_is_slow_in_some_steps(self):
        for steps in range(20, 40), range(15), range(15, 30), range(0, 40, 4):
            report = self.expect(job(steps=40, slow={1: 1.3}, slow_in=steps), "DIST.STRAGGLER", None, [1], first=False)
            self.assertIn("slow compute", [one["title"] for one in findings_of(report, "DIST.STRAGGLER")][0])
        for slow in [1], [1, 3]:
            self.expect(job(steps=40, slow=dict.fromkeys(slow, 1.3), slow_in=range(20, 40)), "DIST.FAIL_SLOW", None, slow)

    def test_what_a_replay_cannot_tell_is_not_told(self):
        """Where it is not recorded what waits are for, or what launched work."""
        _, report = report_of(job(schedule=wait_unseen, unseen={1: 250}))
        found, = findings_of(report, "DIST.LOAD_IMBALANCE")
        self.assertEqual((found["ranks"], found["saving_s"]), ([], None))
        self.assertRegex(found["title"], "but what mending that saves cannot be told$")
        self.assertEqual(report["distributed"]["ranks"][1]["no_straggler"], "what it waits for itself is not recorded")
        step, report = report_of(job(slow={1: 1.2}, not_linked=True))
        self.assertEqual(report["critical_path"]["what_if_reason"],
                         "of 100 % of the GPUs' work it is not recorded what launched it")
        found = report["findings"][0]
        self.assertEqual((found["id"], found["ranks"]), ("DIST.STRAGGLER", [1]))
        _, report = report_of(job(slow={1: 1.2}, lost=lambda event: event["cat"] == "kernel"))
        self.assertEqual(set(ids_of(report)), {"DATA.PARTIAL"})

    def test_a_slow_host_where_layers_are_sharded(self):
        j = job(schedule=gather_layers, transfer=200, host={2: {"aten::nonzero_numpy": 2500}})
        self.expect(j, "DIST.STRAGGLER", without("host aten::nonzero_numpy"), [2], "aten::nonzero_numpy")

    def test_a_slow_stage(self):
        for stage in range(4):
            slow = {stage: 1.5}
            j = job(schedule=pass_stages, layers=2, transfer=100, slow=slow)
            self.expect(j, "DIST.PIPELINE_BUBBLE", as_fast(slow), [stage])

    def test_a_stage_that_is_slow_in_backward_only(self):
        """A send of its may begin just when something was received, but it waits for what was computed."""
        j = job(schedule=pass_stages, layers=2, transfer=100, slow_backward={1: 1.8})
        self.expect(j, "DIST.PIPELINE_BUBBLE", without("slow backward"), [1])

    def test_a_stage_that_is_slow_in_every_third_micro_batch(self):
        self.expect(job(schedule=pass_stages, layers=2, transfer=100, slow={1: 2.2}, slow_each=3), "DIST.PIPELINE_BUBBLE", None, [1])

    def test_an_expert_in_demand(self):
        for jitter in 0.01, 0.1:
            j = job(schedule=ask_experts, ranks=3, transfer=100, steps=20, jitter=jitter, tokens={2: 2400})
            self.expect(j, "DIST.STRAGGLER", without("tokens"), [2])

    def test_experts_that_differ_for_good_and_by_layer(self):
        """Each rank gets its part of each layer's tokens, and of these no more than the median rank has in all."""
        for tokens in ([[300 + 600 * rank + 2400 * (rank == layer) for rank in range(4)] for layer in range(4)],
                       [[200 + 1500 * (rank == 0) + 1500 * (rank == layer) for rank in range(4)] for layer in range(4)]):
            of_ranks = [sum(layer[rank] for layer in tokens) for rank in range(4)]
            part = [min(of, sorted(of_ranks)[1]) / sum(of_ranks) for of in of_ranks]
            j = job(schedule=ask_many_experts, layers=4, transfer=100, steps=12, tokens=tokens)
            step, report = report_of(j)
            even = run(job(**{**vars(j), "tokens": [[sum(layer) * one for one in part] for layer in tokens]}))[1]
            saved, = [row["saving_fraction"] for row in report["critical_path"]["what_if"] if row["change"].startswith("every")]
            self.assertAlmostEqual(saved, 1 - even / step, delta=0.01)

    def test_a_slow_link_between_stages(self):
        """One way, and both: then each is worth what it saves alone."""
        links = {(1, 2): 1900, (2, 1): 2400}
        for slow in {(1, 2): 1900}, links:
            j = job(schedule=pass_stages, layers=2, transfer=100, slow_links=slow)
            step, report = report_of(j)
            found = findings_of(report, "DIST.SLOW_LINK")
            self.assertEqual(sorted(tuple(one["ranks"]) for one in found), sorted(slow), report["findings"])
            for one in found:
                truth = step - run(j, without("transfer {} {}".format(*one["ranks"])))[1]
                self.assertAlmostEqual(one["saving_s"] * 1e6 / report["steps"]["training"] / step, truth / step, delta=0.01, msg=one)

    def test_a_slow_rank_where_no_step_is_marked(self):
        slow = {1: 1.2}
        self.expect(job(slow=slow, marks=False, steps=16), "DIST.STRAGGLER", as_fast(slow), [1])

    def test_slow_ranks_are_one_finding_and_worth_what_all_save(self):
        for more in {"slow": {1: 1.2, 3: 1.2}}, {"slow": dict.fromkeys(range(8, 16), 1.25), "ranks": 24, "layers": 4}:
            report = self.expect(job(**more), "DIST.STRAGGLER", as_fast(more["slow"]), list(more["slow"]))
            self.assertEqual(ids_of(report).count("DIST.STRAGGLER"), 1)
            self.assertRegex(report["findings"][0]["title"], "^Ranks .* keep their peers waiting: slow compute$")

    def test_a_slow_rank_where_layers_are_split(self):
        slow = {1: 1.2}
        report = self.expect(job(schedule=split_layers, transfer=60, slow=slow), "DIST.STRAGGLER", as_fast(slow), [1])
        self.assertIn("by little at each. Reason: slow compute", report["findings"][0]["evidence"])

    def test_a_slow_link_between_two(self):
        """What one kernel in each step waits for is known too, where others on its stream wait for others."""
        j = job(schedule=reduce_in_pairs, ranks=16, transfer=50)
        report = self.expect(j, "DIST.SLOW_LINK", lambda rank, what, took: took / 4 if what == "slow link" else took, [4, 5],
                             first=False)
        self.assertEqual(ranks_of(report, "DIST.STRAGGLER"), [])

    def test_a_slow_rank_where_messages_go_around_in_one_kernel_each(self):
        slow = {1: 1.3}
        for transfer in 100, 600:
            self.expect(job(schedule=pass_around, layers=3, transfer=transfer, slow=slow), "DIST.STRAGGLER", as_fast(slow), [1])

    def test_who_has_another_part_in_the_job_is_not_slow(self):
        """Who generates waits for who trains; but one of two that train may be slow, and one of two that generate."""
        j = job(schedule=generate_and_train, transfer=20, steps=12, updates=False)
        _, report = report_of(j)
        self.assertEqual([one for one in report["findings"] if one["severity"] != "info"], [])
        for slow in {1: 1.3}, {3: 1.5}:
            j.slow = slow
            self.expect(j, "DIST.STRAGGLER", as_fast(slow), list(slow))

    def test_models_by_turns_are_one_step(self):
        """Where all optimizers have one name."""
        slow = {1: 1.2}
        j = job(schedule=train_by_turns, layers=4, slow=slow, marks=False, steps=12)
        self.assertEqual(self.expect(j, "DIST.STRAGGLER", as_fast(slow), [1])["steps"]["count"], 12)

    def test_ranks_that_are_slow_in_turns(self):
        """One in even steps, the other in odd ones: each is worth what it alone saves."""
        for ranks, steps in (2, 16), (4, 16), (4, 40):
            j = job(ranks=ranks, steps=steps, slow={0: 1.3, 1: 1.3}, turns=2)
            step, report = report_of(j)
            found = findings_of(report, "DIST.STRAGGLER")
            self.assertEqual(sorted(one["ranks"] for one in found), [[0], [1]], report["findings"])
            for one in found:
                self.assertIn("in every 2nd step: slow compute", one["title"])
                other = run(job(**{**vars(j), "slow": {1 - one["ranks"][0]: 1.3}}))[1]
                self.assertAlmostEqual(one["saving_s"] * 1e6 / report["steps"]["training"] / step, 1 - other / step, delta=0.02)

    def test_who_works_for_a_server_of_parameters(self):
        slow = {2: 1.3}
        for steps in 12, 30:
            self.expect(job(schedule=serve_parameters, transfer=60, steps=steps, slow=slow), "DIST.STRAGGLER", as_fast(slow), [2])
        _, report = report_of(job(schedule=serve_parameters, transfer=60, steps=12))
        self.assertEqual(report["findings"], [])

    def test_ranks_that_share_the_layers_of_a_stage(self):
        for slow in {3: 1.3}, {2: 1.3, 3: 1.3}:
            j = job(schedule=share_layers_in_stages, ranks=8, layers=2, transfer=40, slow=slow)
            self.expect(j, "DIST.STRAGGLER", as_fast(slow), list(slow))

    def test_as_many_micro_batches_as_a_step_happens_to_have(self):
        slow = {1: 1.2}
        self.expect(job(schedule=accumulate, steps=24, slow=slow), "DIST.STRAGGLER", as_fast(slow), [1])

    def test_slow_copies_to_a_device(self):
        j = job(schedule=copy_layers, slow_copies={2: 2})
        report = self.expect(j, "DIST.STRAGGLER", lambda rank, what, took: j.copy if what == "copy" else took, [2], first=False)
        found, = findings_of(report, "DIST.STRAGGLER")
        self.assertIn("slow memory copies", found["title"])

    def test_devices_of_another_kind(self):
        slow = {2: 1.5, 3: 1.5}
        gpus = ["NVIDIA H100 80GB HBM3"] * 2 + ["NVIDIA A100-SXM4-80GB"] * 2
        report = self.expect(job(slow=slow, gpus=gpus), "DIST.STRAGGLER", as_fast(slow), [2, 3])
        self.assertIn("is NVIDIA A100-SXM4-80GB, on its peers NVIDIA H100 80GB HBM3", report["findings"][0]["action"])

    def test_a_rank_that_does_more_on_its_host(self):
        for more in {}, {"marks": False, "steps": 16}:
            j = job(host={2: {"aten::nonzero_numpy": 2500}}, **more)
            self.expect(j, "DIST.STRAGGLER", without("host aten::nonzero_numpy"), [2], "aten::nonzero_numpy")

    def test_a_rank_that_launches_slowly(self):
        for latency, events, syncs in (2, True, True), (9, True, True), (20, True, True), (2, False, True), (20, False, False):
            j = job(forward=20, backward=40, optimizer=30, transfer=40, launch=20, latency=latency, slow_host={2: 25},
                    events=events, syncs=syncs)
            self.expect(j, "DIST.STRAGGLER", lambda rank, what, took: 20 if what == "launch" else took, [2])

    def test_all_ranks_do_much_on_their_hosts(self):
        j = job(host={rank: {"aten::nonzero_numpy": 2500} for rank in range(4)})
        self.expect(j, "TIMING.OUTSIDE_PHASES", without("host aten::nonzero_numpy"), place="aten::nonzero_numpy")
        self.expect(j, "EFFICIENCY.RECOVERABLE", without("host aten::nonzero_numpy"), first=False)

    def test_what_is_in_a_closure_is_not_the_optimizer(self):
        j = job(schedule=run_closures, closures=3, closure_host={"aten::nonzero_numpy": 2500}, jitter=0,
                engine="autograd::engine::evaluate_function: ")
        report = self.expect(j, "TIMING.OUTSIDE_PHASES", without("host aten::nonzero_numpy"), place="aten::nonzero_numpy")
        pays = {row["name"]: row["saves_at_0"] for row in report["critical_path"]["pays"]}
        self.assertAlmostEqual(pays["outside the phases"], pays["aten::nonzero_numpy"], delta=0.001, msg=pays)
        self.assertNotIn("optimizer", pays)

    def test_input(self):
        for loading in ([3], range(4)):
            self.expect(job(host={rank: {LOADER: 3000} for rank in loading}), "TIMING.DATALOADER_BOUND",
                        without("host " + LOADER))

    def test_communication(self):
        for more in ({"transfer": 6000}, {"schedule": gather_layers, "transfer": 900},
                     {"schedule": pass_stages, "layers": 2, "transfer": 1500}):
            self.expect(job(**more), "DIST.COMM_BOUND", without("transfer"))

    def test_steps_that_hold_more_work_promise_nothing(self):
        j = job(steps=40, slow=dict.fromkeys(range(4), 4), slow_in=(5, 7, 9, 13, 22, 23, 30, 37))
        found, = findings_of(report_of(j)[1], "TIMING.JITTER")
        self.assertIn("the devices of all ranks compute", found["evidence"])
        self.assertIn("They run no more kernels (13, in others 13).", found["evidence"])
        self.assertEqual((found["severity"], found["saving_s"]), ("warning", None))

    def test_what_one_rank_does_each_fifth_step(self):
        step, report = report_of(job(steps=20, every={0: (5, "save_checkpoint", 40000)}))
        found = report["findings"][0]
        self.assertEqual((found["id"], found["ranks"]), ("TIMING.JITTER", [0]))
        self.assertRegex(found["title"], "40.0 ms every 5 steps, on rank 0 alone .* at save_checkpoint of rank 0$")
        self.assertAlmostEqual(found["saving_s"], 4 * 40e-3, delta=0.01 * step / 1e6)

    def test_what_one_rank_evaluates_at_the_end_of_each_tenth_step(self):
        """Its peers wait for that in the step behind."""
        for ranks, batches, more in ([2], 10, {}), ([2], 40, {"syncs": False}), ([1, 2], 30, {}):
            report = self.expect(job(steps=41, evaluates=dict.fromkeys(ranks, (10, batches)), **more), "TIMING.JITTER",
                                 without("evaluation"), ranks, first=False)
            found, = [one for one in report["findings"] if one["id"] == "TIMING.JITTER"]
            self.assertRegex(found["title"], ": rank 2 has more work then$|: ranks 1, 2 have more work then$")
            self.assertRegex(found["evidence"], f"rank.* in such a step or in the one before.* {13 + batches} kernels then, in others 13")
            self.assertNotIn("nothing recorded shows", found["evidence"])

    def test_who_computes_longer_in_long_steps_is_named(self):
        """Too seldom for a slow rank, or where only two ranks meet. Where all compute longer, steps hold more work."""
        for more in ({"schedule": split_layers, "transfer": 60, "slow": {3: 1.6}, "slow_in": range(16, 29)},
                     {"schedule": gather_in_groups, "transfer": 150, "slow": {3: 1.8}, "slow_in": (12, 18, 19, 21, 27, 31, 32, 38)}):
            j = job(steps=40, **more)
            step, report = report_of(j)
            found, = [one for one in report["findings"] if one["id"] == "TIMING.JITTER"]
            self.assertTrue(found["title"].endswith(": rank 3 computes longer then"), found["title"])
            self.assertEqual(found["ranks"], [3])
            self.assertAlmostEqual(found["saving_s"] * 1e6 / 39 / step, (step - never_slow(j)) / step, delta=0.01)
        report = report_of(job(steps=60, schedule=accumulate))[1]
        for found in report["findings"]:
            if found["id"] == "TIMING.JITTER":
                self.assertEqual((found["ranks"], found["saving_s"]), ([], None), found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
