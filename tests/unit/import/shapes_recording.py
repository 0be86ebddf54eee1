#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's profiler records jobs of other shapes than those of training_recording.py, where their simulation is:
shapes_recording.py TSCOPE-REPORT."""
import os
import sys
import tempfile
import unittest

from training_recording import (ALL_REDUCE, HOUR, STREAM, Expecting, collective, job, reduce_gradients, report_of, report_on, without,
                                write)
from findings import findings_of, ids_of


def replay_graphs(j, ranks):
    """Each pass is one launch of a graph with a kernel for each layer. The second begins just before the wait before it ends, rounded."""
    for what, kernel, took in ("forward", "gemm_bf16_tn", j.forward), ("backward", "gemm_bf16_nt", j.backward):
        for rank in ranks:
            if what == "backward":
                rank.waits_for_device(j)
            rank.correlation += 1
            rank.record("cuda_runtime", "cudaGraphLaunch", rank.host - 0.002 * (what == "backward"), j.launch, correlation=rank.correlation)
            rank.host += j.launch
            rank.compute = max(rank.host + j.latency, rank.compute)
            for layer in range(j.layers):
                own = rank.cured(rank.number, what, took * (1 + j.jitter * j.chance.gauss(0, 1)))
                own += rank.cured(rank.number, "slow replay", j.slow_replay.get(rank.number, 0)) if layer == 2 else 0
                rank.runs(kernel if layer != 2 else "layer_norm", rank.compute + 0.9, own, STREAM, rank.correlation)
                rank.compute += own + 0.9
    collective(j, ranks, ALL_REDUCE, True)


def save_meanwhile(j, ranks):
    """Each fifth step begins to copy to the host what it saves, on a stream of its own, for longer than the step lasts."""
    for rank in ranks if ranks[0].step % 5 == 4 else ():
        for _ in range(20):
            begin, correlation = rank.launches(j, "aten::copy_")
            begin = max(begin, rank.streams[STREAM + 1] + 1, rank.compute)
            rank.record("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", begin, 500, device=rank.number, stream=STREAM + 1,
                        correlation=correlation, bytes=1 << 24)
            rank.streams[STREAM + 1] = begin + 500
    reduce_gradients(j, ranks)


def run_more_kernels(j, ranks):
    """In some steps some ranks run twice as many."""
    for rank in ranks:
        for _ in range(2 * j.layers if rank.step in j.more_in and rank.number in j.more_on else 0):
            rank.computes(j, "more", "aten::conv", "conv_bf16", j.forward)
    reduce_gradients(j, ranks)


class Shapes(Expecting):
    def test_graphs_of_which_one_rank_replays_a_kernel_slowly(self):
        j = job(schedule=replay_graphs, slow_replay={1: 1500}, steps=12)
        report = self.expect(j, "DIST.STRAGGLER", without("slow replay"), [1])
        self.assertIsNone(report["critical_path"]["what_if_reason"])
        _, report = report_of(job(schedule=replay_graphs, slow_replay={}, steps=12))
        self.assertEqual(ids_of(report), ["DIST.EXPOSED_COMM"])

    def test_copies_that_go_on_beside_the_next_step_make_none_longer(self):
        step, report = report_of(job(schedule=save_meanwhile, steps=30, syncs=False))
        self.assertEqual({one["id"] for one in report["findings"] if one["severity"] != "info"}, {"DIST.EXPOSED_COMM"})
        self.assertAlmostEqual(report["distributed"]["mean_step_wall_ms"] * 1e3, step, delta=0.01 * step)

    def test_host_work_behind_a_slow_device_saves_nothing(self):
        """Nor is it told what it would save without the slow rank."""
        host = {rank: {"aten::nonzero_numpy": 9000} for rank in range(4)}
        _, report = report_of(job(slow={1: 1.3}, steps=20, syncs=False, host=host))
        self.assertEqual(ids_of(report), ["DIST.STRAGGLER"])

    def test_two_jobs_of_other_sizes_are_not_one(self):
        """The later one has two ranks, the other four, of which none is of it."""
        with tempfile.TemporaryDirectory(prefix="tscope-shapes-") as folder:
            write(job(), folder)
            for name in os.listdir(folder):
                os.rename(os.path.join(folder, name), os.path.join(folder, "earlier_" + name))
            step = write(job(ranks=2, slow={1: 1.3}, clocks={0: HOUR, 1: HOUR}), folder)
            report = report_on(folder)
        self.assertEqual([row["rank"] for row in report["distributed"]["ranks"]], [0, 1])
        self.assertAlmostEqual(report["distributed"]["mean_step_wall_ms"] * 1e3, step, delta=0.01 * step)
        self.assertEqual(sum("is left out: its job has 4 ranks" in note for note in report["quality"]["notes"]), 4)

    def test_steps_that_hold_more_kernels_say_so(self):
        for more_in in (5, 7, 9, 13, 22, 23, 30, 37), range(4, 40, 7):
            _, report = report_of(job(schedule=run_more_kernels, steps=40, more_in=more_in, more_on=range(4)))
            found, = findings_of(report, "TIMING.JITTER")
            self.assertRegex(found["title"], ": they hold more work$|, with more kernels than other steps have, on all devices$")
            self.assertIn("25 kernels in such a step, in others 13.", found["evidence"])
            self.assertEqual(found["ranks"], [])
        _, report = report_of(job(schedule=run_more_kernels, steps=40, more_in=range(4, 40, 7), more_on=[1]))
        found, = findings_of(report, "TIMING.JITTER")
        self.assertIn("The device of rank 1 runs 25 kernels in such a step, in others 13.", found["evidence"])
        self.assertRegex(found["action"], "^Compare what that rank is given to compute")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
