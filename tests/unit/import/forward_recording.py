#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training as PyTorch's profiler records it without stacks: forward_recording.py TSCOPE-REPORT. Nobody marks the forward
passes; operators have the sequence numbers of their gradients. The truth is the schedule that is written here."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import profiler_file  # noqa: E402
from findings import findings_of  # noqa: E402

REPORT = sys.argv[1]
STEPS = 12
MAIN, AUTOGRAD = 4000, 4001


class Recording:
    """Times are milliseconds."""

    def __init__(self, forward_thread=1):
        self.forward_thread = forward_thread
        self.events, self.at, self.sequence, self.graph = [], 0.0, 0, []
        self.truth = {"forward": 0.0, "backward": 0.0, "optimizer": 0.0, "other": 0.0}

    def add(self, name, start, ms, thread=MAIN, category="cpu_op", **args):
        self.events.append(profiler_file.event(category, name, 1e9 + 1e3 * start, 1e3 * ms, MAIN, thread, **args))

    def spend(self, phase, ms):
        self.truth[phase] += ms
        self.at += ms

    def operator(self, name, ms, phase="other", gradient=False):
        """An operator; with a gradient an inner one has its number, too, and one before it may show the same."""
        numbers = {"Sequence number": self.sequence, "Fwd thread id": 0} if gradient else {}
        self.add(name, self.at, ms, **numbers)
        self.add("aten::empty", self.at + 0.1, ms - 0.2, **numbers)
        if gradient:
            self.graph.append((self.sequence, ms))
            self.sequence += 1
        self.spend(phase, ms)

    def pause(self, ms, phase="other"):
        self.spend(phase, ms)

    def forward(self, pauses=2.0):
        """Three operators with what Python does between them. The first looks like the input's copy, which has none."""
        self.add("aten::to", self.at - 0.4, 0.3, **{"Sequence number": self.sequence, "Fwd thread id": 0})
        for i, ms in enumerate((5.0, 3.0, 4.0)):
            if i:
                self.pause(pauses, "forward")
            self.operator("aten::linear", ms, "forward", True)

    def backward(self, thread=AUTOGRAD, recomputes=False):
        for sequence, ms in reversed(self.graph):
            begin, takes = self.at, 2 * ms
            self.add("autograd::engine::evaluate_function: AddmmBackward0", begin, takes, thread,
                     **{"Sequence number": sequence, "Fwd thread id": self.forward_thread})
            if recomputes:
                inner = {"Sequence number": sequence % 7, "Fwd thread id": 0}
                self.add("aten::linear", begin + 0.1, ms, thread, **inner)
                self.add("autograd::engine::evaluate_function: AddmmBackward0", begin + 0.2 + ms, ms / 2, thread,
                         **{"Sequence number": sequence % 7, "Fwd thread id": 2})
            self.spend("backward", takes)
        self.graph = []

    def optimizer(self):
        self.add("Optimizer.step#SGD.step", self.at, 1.5, category="user_annotation")
        self.spend("optimizer", 1.5)


def report_on(recording):
    return profiler_file.report_on_events(REPORT, recording.events)


class Forward(unittest.TestCase):
    def check(self, recording):
        document = report_on(recording)
        told = {name: document["phases"][f"{name}_ms"] for name in recording.truth}
        step = recording.at / STEPS
        for name, ms in recording.truth.items():
            self.assertAlmostEqual(told[name], ms / STEPS, delta=0.02 * step, msg=f"{name} of {told}")
        return document

    def test_plain_steps(self):
        """The program may have had many threads before the one that trains."""
        for forward_thread in 1, 200, 2000:
            one = Recording(forward_thread)
            for _ in range(STEPS):
                one.operator("aten::randn", 6.0)
                one.forward()
                one.backward()
                one.optimizer()
            document = self.check(one)
            outside, = findings_of(document, "TIMING.OUTSIDE_PHASES")
            self.assertIn("aten::randn", outside["title"])

    def test_an_operator_in_the_loader_is_not_where_it_waits(self):
        """It takes 1 ms of the 60 for which the program waits for its batch."""
        one = Recording()
        for _ in range(STEPS):
            one.add("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", one.at, 60.0, category="user_annotation")
            one.add("aten::empty", one.at + 30, 1.0)
            one.pause(60.0)
            one.forward()
            one.backward()
            one.optimizer()
        found, = findings_of(report_on(one), "TIMING.DATALOADER_BOUND")
        self.assertNotIn("aten::empty", found["title"] + found["evidence"])

    def test_accumulation(self):
        one = Recording()
        for _ in range(STEPS):
            for _ in range(3):
                one.operator("aten::randn", 2.0)
                one.forward()
                one.backward(MAIN)
            one.optimizer()
        self.check(one)

    def test_one_backward_pass_of_two_forward_passes(self):
        """With long work of another kind between them, as of micro-batches that are summed: it belongs to them."""
        one = Recording()
        for _ in range(STEPS):
            one.operator("aten::randn", 6.0)
            one.forward()
            one.pause(8.0, "forward")
            one.forward()
            one.backward()
            one.optimizer()
        self.check(one)

    def test_recomputed_activations_are_backward(self):
        one = Recording()
        for _ in range(STEPS):
            one.operator("aten::randn", 6.0)
            one.forward()
            one.backward(recomputes=True)
            one.optimizer()
        self.check(one)

    def test_what_has_no_gradient_is_in_no_pass(self):
        """Validation after every step: as many operators, of which no backward pass computes gradients."""
        one = Recording()
        for _ in range(STEPS):
            one.forward()
            one.backward()
            one.optimizer()
            for _ in range(3):
                one.operator("aten::linear", 4.0)
        self.check(one)

    def test_a_marked_forward_pass_counts(self):
        one = Recording()
        for _ in range(STEPS):
            one.operator("aten::randn", 6.0)
            one.add("DistributedDataParallel.forward", one.at, 12.0, category="user_annotation")
            one.forward(0.0)
            one.backward()
            one.optimizer()
        self.check(one)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
