#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two ranks of a job on a device, as PyTorch's profiler records them: rank_recordings.py TSCOPE-REPORT. Whatever the
device's calls are named, however long each was recorded and wherever its clock stands, the truth is the schedule that is
written here: rank 1 computes half as long again as rank 0, which waits for it in an all-reduce."""
import math
import os
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of  # noqa: E402
from observed import json_of  # noqa: E402
import profiler_file  # noqa: E402

REPORT = sys.argv[1]
STEPS, RANKS = 12, 2
KERNEL, KERNELS, TRANSFER, REST = 4.0, 6, 3.0, 0.26  # ms
COMPUTE = KERNEL * KERNELS
STEP = 1.5 * COMPUTE + TRANSFER + REST
SAVING = 0.5 * COMPUTE
HOUR = 3600e3

CUDA = {"calls": "cuda_runtime", "launch": "cudaLaunchKernel", "wait": "cudaStreamSynchronize",
        "all_reduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}
AMD = {**CUDA, "calls": "hip_runtime", "launch": "hipLaunchKernel", "wait": "hipStreamSynchronize",
       "all_reduce": "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"}
INTEL = {"calls": "xpu_runtime", "launch": "urEnqueueKernelLaunch", "wait": "urQueueFinish",
         "all_reduce": "oneccl_allreduce_pcie"}
HUAWEI = {"calls": "privateuse1_runtime", "launch": "aclrtLaunchKernelWithConfig", "wait": "aclrtSynchronizeStream",
          "all_reduce": "hcom_allReduce__503_0_1"}


class Rank:
    """Its events, in microseconds."""

    def __init__(self, rank, device, kernel):
        self.rank, self.device, self.kernel, self.process = rank, device, kernel, 1000 + rank
        self.events, self.correlation = [], 100000 * (rank + 1)

    def add(self, category, name, start, us, where=None, **args):
        pid, tid = where or (self.process, self.process)
        self.events.append(profiler_file.event(category, name, start, us, pid, tid, **args))

    def launch(self, call, name, start, us, stream, **facts):
        self.correlation += 1
        self.add(self.device["calls"], self.device["launch"], call, 8, correlation=self.correlation)
        self.add("kernel", name, start, us, correlation=self.correlation, device=self.rank, stream=stream, **facts)

    def add_step(self, step, begin):
        call, start = begin + 20, begin + 60
        takes = 1e3 * KERNEL * (1.5 if self.rank == 1 else 1)
        ends = start + 1e3 * (1.5 * COMPUTE + TRANSFER)
        for i in range(KERNELS):
            self.launch(call, self.kernel.format(i), start, takes, 7)
            call, start = call + 12, start + takes
        facts = {"Collective name": "allreduce", "In msg nelems": 1000000, "Out msg nelems": 1000000, "Group size": RANKS,
                 "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg",
                 "Process Group Ranks": str(list(range(RANKS))), "Seq": step}
        self.add("cpu_op", "record_param_comms", call - 1, 10, **facts)
        self.launch(call, self.device["all_reduce"], start, ends - start, 20, **facts)
        self.add(self.device["calls"], self.device["wait"], call + 12, ends - call - 2, correlation=self.correlation + 50000)
        self.add("user_annotation", "Optimizer.step#SGD.step", ends + 20, 100)
        self.add("user_annotation", f"ProfilerStep#{step}", begin, 1e3 * STEP)


def events_of(rank, device=CUDA, kernel="gemm_{}", steps=STEPS, ahead_ms=0.0):
    one = Rank(rank, device, kernel)
    for step in range(steps):
        one.add_step(step, 1e6 + 1e3 * (ahead_ms + step * STEP))
    return one.events


def report_on(files, **info):
    with tempfile.TemporaryDirectory(prefix="tscope-ranks-") as folder:
        for name, events in files.items():
            profiler_file.write(os.path.join(folder, name), events, escaped=False, **info.get(name[:-5], {}))
        return json_of(REPORT, folder)


def report_of_ranks(*ranks, **info):
    return report_on({f"rank{i}.json": ranks[i] for i in range(len(ranks))}, **info)


LAYERS, LAYER, INNER, OUTER = 4, 2.0, 0.3, 1.0  # ms; all-reduces of two ranks in each layer, and of two others after all


class Member(Rank):
    def __init__(self, rank):
        super().__init__(rank, CUDA, "")
        self.free = self.call = 0.0

    def compute(self, ms):
        self.launch(self.call, "gemm", self.free, 1e3 * ms, 7)
        self.call, self.free = self.call + 12, self.free + 1e3 * ms


def all_reduce(members, name, number, ms, elements=1000000):
    end = max(one.free for one in members) + 1e3 * ms
    for one in members:
        facts = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements,
                 "Group size": len(members), "dtype": "Float", "Process Group Name": name,
                 "Process Group Ranks": str([of.rank for of in members]),
                 "Seq": number}
        one.add("cpu_op", "record_param_comms", one.call - 1, 10, **facts)
        one.launch(one.call, CUDA["all_reduce"], one.free, end - one.free, 20, **facts)
        one.call, one.free = one.call + 12, end


def saving_every_tenth():
    """Rank 0 saves for 60 ms after every tenth step of 100 ms, and the other waits for it in a collective of its own. Of the
    other steps some 40 % take 60 to 150 ms longer on one, as on a busy machine: the time alone shows no kind of steps."""
    ranks, chance = [Member(0), Member(1)], random.Random(1)
    for step in range(60):
        begin, longer = max(one.free for one in ranks), [0, 0]
        if chance.random() < 0.4 and step % 10 != 9:
            longer[chance.random() < 0.3] = chance.uniform(60, 150)
        for one in ranks:
            one.call = one.free = begin
            one.add("cpu_op", "aten::mm", begin, 10)
            one.compute(100 + longer[one.rank])
        all_reduce(ranks, "0", 2 * step, 1.0)
        if step % 10 == 9:
            ranks[0].call = ranks[0].free = max(one.free for one in ranks) + 60e3
            all_reduce(ranks, "0", 2 * step + 1, 0.1, elements=1)
        for one in ranks:
            one.add(CUDA["calls"], CUDA["wait"], one.call + 12, one.free - one.call - 2, correlation=one.correlation + 50000)
            one.add("user_annotation", f"ProfilerStep#{step}", begin, one.free - begin + 10)
            one.free += 10
    return [one.events for one in ranks]


def drifting(alone):
    """Two ranks on a busy machine: in some steps a neighbour keeps one back for many steps on, so that steps are like those
    before them. Rank 1 is the last in all but two. Returns the recordings, and of each step what rank 1 takes longer. `alone`: it is then
    in a function that rank 0 never calls; else in one that both call."""
    ranks, more = [Member(0), Member(1)], []
    for step in range(27):
        swing = 300 + 250 * math.sin(step / 4) if step not in (12, 13) else -300
        begin = max(one.free for one in ranks)
        for one in ranks:
            own = 40 + max(0, swing if one.rank else -swing)
            one.call = begin
            name = "extra" if alone and one.rank else "work"
            one.add("python_function", f"train.py(9): {name}", begin, 1e3 * own)
            one.add("cpu_op", "aten::sort", begin + 1, 1e3 * own - 2)
            one.call = one.free = begin + 1e3 * own
            one.compute(1.0)
        all_reduce(ranks, "0", step, 1.0)
        for one in ranks:
            one.add(CUDA["calls"], CUDA["wait"], one.call + 12, one.free - one.call - 2, correlation=one.correlation + 50000)
            one.add("user_annotation", f"ProfilerStep#{step}", begin, one.free - begin + 10)
            one.free += 10
        more.append(swing)
    return [one.events for one in ranks], more


def four(slower, inner=2):
    """Four ranks of which rank 3 computes `slower` times as long: two groups of two and across these two more, or one of
    four. And how long a step takes, ms."""
    ranks = [Member(rank) for rank in range(4)]
    begin = 1e6
    for step in range(STEPS):
        for one in ranks:
            one.free, one.call = begin + 100, begin + 10
        for layer in range(LAYERS):
            for one in ranks:
                one.compute(LAYER * (slower if one.rank == 3 else 1))
            for first in range(0, 4, inner):
                all_reduce(ranks[first:first + inner], str(first), LAYERS * step + layer, INNER)
        for first in range(inner if inner < 4 else 0):
            all_reduce(ranks[first::inner], f"across {first}", step, OUTER)
        end = max(one.free for one in ranks)
        for one in ranks:
            one.add("cuda_runtime", "cudaDeviceSynchronize", one.call, one.free + 5 - one.call,
                    correlation=one.correlation + 50000)
            one.add("user_annotation", f"ProfilerStep#{step}", begin, end + 100 - begin)
        begin = end + 100
    return [one.events for one in ranks], (begin - 1e6) / 1e3 / STEPS


MICRO_BATCHES, FORWARD, BACKWARD, MESSAGE = 4, 2.0, 4.0, 0.1  # ms, of a pipeline's faster stage


class Stage(Rank):
    """A stage of two. It has kernels of its own, as an embedding and a loss are."""

    def __init__(self, rank):
        super().__init__(rank, CUDA, "")
        self.free = self.messages_free = self.call = 0.0

    def begin(self, step, begin):
        self.free = self.messages_free = begin + 100
        self.call, self.step, self.begun = begin + 10, step, begin

    def work(self, name, ms, after=0.0):
        start = max(self.free, after)
        self.launch(self.call, f"{name}_of_stage_{self.rank}", start, 1e3 * ms, 7)
        self.call, self.free = self.call + 12, start + 1e3 * ms
        return self.free

    def exchange(self, kind, start, end, number):
        peer = 1 - self.rank
        source, target = (self.rank, peer) if kind == "send" else (peer, self.rank)
        facts = {"Collective name": kind, "In msg nelems": 100000, "Out msg nelems": 100000, "Group size": RANKS,
                 "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg",
                 "Process Group Ranks": "[0, 1]", "Seq": 2 * MICRO_BATCHES * self.step + number, "Src Rank": source,
                 "Dst Rank": target}
        self.add("cpu_op", "record_param_comms", self.call - 1, 10, **facts)
        self.launch(self.call, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", start, end - start, 20, **facts)
        self.call, self.messages_free = self.call + 12, end

    def end(self, at):
        self.add("cuda_runtime", "cudaDeviceSynchronize", self.call, at + 5 - self.call, correlation=self.correlation + 50000)
        self.add("user_annotation", "Optimizer.step#SGD.step", at + 10, 50)
        self.add("user_annotation", f"ProfilerStep#{self.step}", self.begun, at + 100 - self.begun)


def send(sender, receiver, ready, number):
    end = max(ready, sender.messages_free, receiver.messages_free) + 1e3 * MESSAGE
    for stage, kind in ((sender, "send"), (receiver, "recv")):
        start = max(ready, stage.messages_free) if kind == "send" else stage.messages_free
        stage.exchange(kind, start, end, number)
    return end


def pipeline(slower):
    """Of both stages the events, and how long a step takes (ms): stage 1 works `slower` times as long."""
    first, last = Stage(0), Stage(1)
    begin = 1e6
    for step in range(STEPS):
        first.begin(step, begin)
        last.begin(step, begin)
        forwards = [first.work("forward", FORWARD) for _ in range(MICRO_BATCHES)]
        for i in range(MICRO_BATCHES):
            last.work("forward", slower * FORWARD, send(first, last, forwards[i], i))
            done = last.work("backward", slower * BACKWARD)
            first.work("backward", BACKWARD, send(last, first, done, MICRO_BATCHES + i))
        end = max(first.free, last.free)
        first.end(end)
        last.end(end)
        begin = end + 100
    return (first.events, last.events), (begin - 1e6) / 1e3 / STEPS


class RankRecordings(unittest.TestCase):
    def check_slow_rank(self, report):
        self.assertEqual(report["steps"]["count"], STEPS)
        self.assertAlmostEqual(report["steps"]["median_ms"], STEP, delta=0.01)
        found, = findings_of(report, "DIST.STRAGGLER")
        self.assertEqual(found["ranks"], [1])
        self.assertIn("slow compute", found["title"])
        self.assertAlmostEqual(1e3 * found["saving_s"] / report["steps"]["training"], SAVING, delta=0.05)
        self.assertIs(report["findings"][0], found)
        return found

    def check_all(self, report):
        found = self.check_slow_rank(report)
        self.assertIn("the same work", found["evidence"])
        self.assertAlmostEqual(report["overlap"]["exposed_wait_ms"], SAVING / 2, delta=0.01)
        self.assertAlmostEqual(report["overlap"]["exposed_transfer_ms"], TRANSFER, delta=0.01)
        saved = {row["change"]: row["saving_fraction"] for row in report["critical_path"]["what_if"]}
        self.assertIsNone(report["critical_path"]["what_if_reason"])
        self.assertAlmostEqual(saved["rank 1 as fast as its peers"], SAVING / STEP, delta=0.002)
        self.assertAlmostEqual(saved["communication takes no time"], TRANSFER / STEP, delta=0.002)

    def report_of_four(self, inner):
        (slow, step), (_, least) = four(1.3, inner), four(1, inner)
        report = report_of_ranks(*slow)
        self.assertAlmostEqual(report["steps"]["median_ms"], step, delta=0.01)
        return report, step - least

    def test_devices(self):
        for device in (CUDA, AMD, INTEL, HUAWEI):
            with self.subTest(device["launch"]):
                self.check_all(report_of_ranks(*(events_of(rank, device) for rank in range(RANKS))))

    def test_names_in_other_scripts(self):
        self.check_all(report_of_ranks(*(events_of(rank, kernel="矩阵乘法_{}_🚀") for rank in range(RANKS))))

    def test_clocks_an_hour_apart(self):
        self.check_all(report_of_ranks(events_of(0), events_of(1, ahead_ms=HOUR)))

    def test_a_rank_that_its_world_does_not_have(self):
        info = {"distributedInfo": {"backend": "nccl", "rank": 5, "world_size": RANKS}}
        report = report_of_ranks(*(events_of(rank) for rank in range(RANKS)), rank1=info)
        self.assertEqual(report["run"]["ranks_found"], [0, 1])
        self.check_all(report)

    def test_steps_that_one_rank_lacks_are_no_more_work_of_the_other(self):
        found = self.check_slow_rank(report_of_ranks(events_of(0, steps=7), events_of(1)))
        self.assertIn("the same work", found["evidence"])

    def test_several_ranks_in_a_file(self):
        report = report_on({"all.json": events_of(0) + events_of(1)})
        self.assertTrue([note for note in report["quality"]["notes"] if "SEVERAL PROCESSES" in note], report["quality"])
        report = report_of_ranks(events_of(0), events_of(1))
        self.assertFalse([note for note in report["quality"]["notes"] if "SEVERAL PROCESSES" in note])

    def test_stages_that_run_kernels_of_their_own(self):
        slow, step = pipeline(2)
        even, least = pipeline(1)
        report = report_of_ranks(*slow)
        self.assertAlmostEqual(report["steps"]["median_ms"], step, delta=0.01)
        self.assertEqual(report["pipeline"]["microbatches"], MICRO_BATCHES)
        found = report["findings"][0]
        self.assertIn("Stage 1 of the pipeline is slow", found["title"])
        self.assertAlmostEqual(1e3 * found["saving_s"] / report["steps"]["training"], step - least, delta=0.05)
        self.assertFalse([f for f in report_of_ranks(*even)["findings"] if "Stage" in f["title"]])

    def test_a_clock_is_known_to_the_collectives_that_tie_it(self):
        """Those of rank 2 and rank 0 take three times as long as the others, and tell its clock no better than that."""
        report, saves = self.report_of_four(2)
        found, = findings_of(report, "DIST.STRAGGLER")
        self.assertEqual(found["ranks"], [3])
        self.assertAlmostEqual(1e3 * found["saving_s"] / report["steps"]["training"], saves, delta=0.05)
        self.assertIs(report["findings"][0], found)

    def test_waits_for_a_slow_rank_in_each_layer_are_no_others(self):
        report, saves = self.report_of_four(4)
        found = {finding["id"]: finding for finding in report["findings"]}
        saved = found["DIST.STRAGGLER"]["saving_s"]
        self.assertAlmostEqual(1e3 * saved / report["steps"]["training"], saves, delta=0.05)
        self.assertNotIn("DIST.LOAD_IMBALANCE", found)

    def test_a_wait_in_a_call_of_its_own_shows_a_kind_of_steps(self):
        work, = report_of_ranks(*saving_every_tenth())["steps"]["other"]
        self.assertEqual((work["every"], work["rank"], work["what"]), (10, 0, "on rank 0 alone while the others wait"))
        self.assertAlmostEqual(work["ms"], 60, delta=1)

    def test_a_line_of_its_own_is_no_chance(self):
        ranks, more = drifting(True)
        report = report_of_ranks(*ranks)
        found, = findings_of(report, "DIST.STRAGGLER")
        self.assertEqual(found["ranks"], [1])
        self.assertIn("train.py:9", found["title"])
        judged = more[report["steps"]["warmup_excluded"]:]
        self.assertAlmostEqual(1e3 * found["saving_s"], sum(judged), delta=0.05 * sum(judged))
        self.assertFalse(findings_of(report_of_ranks(*drifting(False)[0]), "DIST.STRAGGLER"))

    def test_work_without_its_launches(self):
        ranks = [events_of(rank) for rank in range(RANKS)]
        for event in (event for rank in ranks for event in rank):
            event["args"].pop("correlation", None)
        for finding in report_of_ranks(*ranks)["findings"]:
            self.assertNotIn("CUPTI", finding["title"] + finding["evidence"] + finding["action"])


del sys.argv[1:]
unittest.main()
