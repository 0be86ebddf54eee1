#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads snapshots of PyTorch's memory with tscope-report: memory_snapshot.py TSCOPE-REPORT SOURCE.

The expected results come from two sources: recordings of real jobs (../shared/testdata), replayed here independently,
and the small caching allocator below, which knows what it did and writes snapshots as PyTorch does.
"""
import gzip
import itertools
import os
import pickle
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from findings import findings_of, ids_of  # noqa: E402
from in_folder import InFolder  # noqa: E402
from observed import json_of  # noqa: E402

REPORT, SOURCE = sys.argv[1:3]
RECORDINGS = os.path.join(SOURCE, "..", "shared", "testdata", "memory_snapshot")
MIB = 1 << 20


def frames(*places):
    return [{"name": name, "filename": file, "line": line} for name, file, line in places]


MODEL = frames(("forward", "/home/u/job/model.py", 10), ("_call_impl", "/x/site-packages/torch/nn/modules/module.py", 1))


class Allocator:
    """Segments of fixed size, first fit, blocks of 512 bytes; writes the same history as PyTorch."""

    def __init__(self, device=0, segment=20 * MIB, expandable=False):
        self.device, self.segment, self.expandable = device, segment, expandable
        self.segments = {}  # address: size
        self.blocks = {}  # address: (size, requested, state, frames)
        self.next, self.now = 0x7f1234000000, 1_000_000
        self.trace, self.annotations = [], []
        self.recording = True
        self.requested_peak = 0

    def note(self, action, address, size, stack=()):
        self.now += 10
        if self.recording:
            self.trace.append({"action": action, "addr": address, "size": size, "stream": 0,
                               "time_us": self.now, "frames": list(stack)})

    def gaps(self):
        for start, size in sorted(self.segments.items()):
            at = start
            for address in sorted(a for a in self.blocks if start <= a < start + size):
                if address > at:
                    yield at, address - at
                at = address + self.blocks[address][0]
            if at < start + size:
                yield at, start + size - at

    def alloc(self, requested, stack=MODEL):
        size = -(-requested // 512) * 512
        address = next((at for at, free in self.gaps() if free >= size), None)
        if address is None:
            whole = max(self.segment, -(-size // (2 * MIB)) * 2 * MIB)
            address, self.next = self.next, self.next + whole + 64 * MIB
            self.segments[address] = whole
            self.note("segment_map" if self.expandable else "segment_alloc", address, whole)
        self.blocks[address] = (size, requested, "active_allocated", list(stack))
        self.note("alloc", address, requested, stack)
        return address

    def free(self, address, wait=False):
        size, requested, _, stack = self.blocks[address]
        self.note("free_requested", address, requested)
        if wait:
            self.blocks[address] = (size, requested, "active_pending_free", stack)
        else:
            self.completed(address)

    def completed(self, address):
        _, requested, _, _ = self.blocks.pop(address)
        self.note("free_completed", address, requested)

    def empty_cache(self):
        for start, size in list(self.segments.items()):
            if not any(start <= a < start + size for a in self.blocks):
                del self.segments[start]
                self.note("segment_unmap" if self.expandable else "segment_free", start, size)

    def step(self):
        for stage in ("START", "END"):
            self.annotations.append({"stage": stage, "name": "Optimizer.step#AdamW.step",
                                     "device": self.device, "time_us": self.now})

    def snapshot_segments(self):
        out = []
        for start, size in sorted(self.segments.items()):
            blocks, at = [], start
            for address in sorted(a for a in self.blocks if start <= a < start + size) + [start + size]:
                if address > at:
                    blocks.append({"address": at, "size": address - at, "requested_size": 0,
                                   "state": "inactive", "frames": []})
                if address < start + size:
                    block = self.blocks[address]
                    blocks.append({"address": address, "size": block[0], "requested_size": block[1],
                                   "state": block[2], "frames": block[3]})
                    at = address + block[0]
            used = [b for b in blocks if b["state"] == "active_allocated"]
            out.append({"device": self.device, "address": start, "total_size": size,
                        "allocated_size": sum(b["size"] for b in used),
                        "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
                        "requested_size": sum(b["requested_size"] for b in used), "stream": 0,
                        "segment_type": "large", "segment_pool_id": (0, 0),
                        "is_expandable": self.expandable, "blocks": blocks})
        return out

    def snapshot(self, **more):
        return {"segments": self.snapshot_segments(),
                "device_traces": [[]] * self.device + [self.trace],
                "external_annotations": self.annotations, "allocator_settings": {}, **more}


def replay(snapshot):
    """The peak of allocated memory on the busiest device, found from the end backwards."""
    peaks = []
    for device, trace in enumerate(snapshot["device_traces"]):
        now = peak = sum(segment["allocated_size"] for segment in snapshot["segments"]
                         if segment["device"] == device)
        for event in reversed(trace):
            if event["action"] == "alloc":
                now -= event["size"]
            elif event["action"] == "free_requested":
                now += event["size"]
            peak = max(peak, now)
        peaks.append(peak)
    return max(peaks)


def run_in_256_mib(path):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (256 * MIB,) * 2)

    # A sanitizer alone needs more.
    fits = subprocess.run([REPORT, "--version"], capture_output=True, preexec_fn=limit).returncode == 0
    return subprocess.run([REPORT, path], capture_output=True, text=True, preexec_fn=limit if fits else None)


class Snapshot(InFolder):
    def write(self, value, name="snapshot.pickle", protocol=4):
        path = os.path.join(self.folder, name)
        data = value if isinstance(value, bytes) else pickle.dumps(value, protocol)
        with (gzip.open if name.endswith(".gz") else open)(path, "wb") as file:
            file.write(data)
        return path

    def report(self, *arguments):
        return json_of(REPORT, *arguments)

    def memory(self, allocator, *arguments, **more):
        return self.report(self.write(allocator.snapshot(**more)), *arguments)["memory"]

    def recordings(self):
        if not os.path.isdir(RECORDINGS):
            self.skipTest(f"{RECORDINGS} is not there")
        return [os.path.join(RECORDINGS, name) for name in sorted(os.listdir(RECORDINGS))
                if name.endswith(".pickle")]

    # Real recordings.

    def test_reserved_is_inactive_and_allocated_to_the_byte(self):
        for path in self.recordings():
            with open(path, "rb") as file:
                segments = pickle.load(file)["segments"]
            blocks = [block for segment in segments for block in segment["blocks"]]
            memory = self.report(path)["memory"]
            self.assertEqual(memory["reserved_bytes"], sum(s["total_size"] for s in segments))
            self.assertEqual(memory["allocated_bytes"], sum(s["allocated_size"] for s in segments))
            self.assertEqual(memory["inactive_bytes"],
                             sum(b["size"] for b in blocks if b["state"] == "inactive"))
            self.assertEqual(memory["slack_bytes"],
                             sum(b["size"] - b["requested_size"] for b in blocks
                                 if b["state"] == "active_allocated"))
            self.assertEqual(memory["inactive_bytes"] + memory["allocated_bytes"],
                             memory["reserved_bytes"])
            parts = memory["segments"]
            self.assertEqual(parts["unused_bytes"] + parts["stranded_bytes"], memory["inactive_bytes"])

    def test_peak_is_that_of_an_independent_replay(self):
        for path in self.recordings():
            with open(path, "rb") as file:
                snapshot = pickle.load(file)
            memory = self.report(path)["memory"]
            self.assertEqual(memory["peak_allocated_bytes"], replay(snapshot))
            for table in ("live_at_peak", "live_by_category"):
                self.assertEqual(sum(row["bytes"] for row in memory[table]),
                                 memory["peak_allocated_bytes"])

    def test_recorded_jobs_have_no_problems(self):
        for path in self.recordings():
            document = self.report(path, "--gpu-gb", "80")
            # scores of plain attention: 768 MiB of 2.7 GiB with sequences of 1024
            notes = [("MEMORY.PEAK", "info")] if "1024_inference" in path else []
            self.assertEqual([(f["id"], f["severity"]) for f in document["findings"]], notes)
            self.assertEqual(document["memory"]["oom_risk"], "low")

    def test_layers_of_recorded_passes_are_no_steps(self):
        for path in self.recordings():
            if "inference" in path:
                memory = self.report(path)["memory"]
                self.assertIsNone(memory["steps"], path)
                self.assertIsNone(memory["growth_bytes_per_step"], path)

    def test_gaps_are_those_beside_blocks_in_use(self):
        for path in self.recordings():
            with open(path, "rb") as file:
                segments = pickle.load(file)["segments"]
            gaps = []
            for segment in segments:
                states = [(b["state"] == "inactive", b["size"]) for b in segment["blocks"]]
                if not all(free for free, _ in states):
                    gaps += [sum(size for _, size in run)
                             for free, run in itertools.groupby(states, lambda state: state[0]) if free]
            found = self.report(path)["memory"]["segments"]
            self.assertEqual((found["gaps"], found["largest_gap_bytes"]), (len(gaps), max(gaps)), path)
            if "1024_inference" in path:  # as its README says
                self.assertEqual((found["gaps"], round(found["largest_gap_bytes"] / MIB, 1)), (2, 11.9))

    def test_categories_of_a_recorded_training_step(self):
        training = [path for path in self.recordings() if "training" in path]
        if not training:
            return
        memory = self.report(training[0])["memory"]
        rows = {(row["category"], row["source"]) for row in memory["churn"]}
        self.assertLessEqual({"optimizer", "gradients", "backward"}, {category for category, _ in rows})
        self.assertTrue(any("optimizer.py:" in (source or "") for _, source in rows))
        self.assertFalse([row for row in rows if row[0] == "matrix multiply" and "Backward" in (row[1] or "")])

    # The peak, and the blocks that were live then.

    def test_peak_and_what_was_live(self):
        a = Allocator()
        a.recording = False
        weights = [a.alloc(3 * MIB, frames(("build", "/home/u/job/train.py", 5))) for _ in range(4)]
        a.recording = True
        first = a.alloc(8 * MIB)
        a.free(first)
        big = [a.alloc(5 * MIB + 100) for _ in range(3)]
        for block in big:
            a.free(block)
        a.free(weights[0])
        memory = self.memory(a)
        self.assertEqual(memory["peak_allocated_bytes"], 12 * MIB + 3 * (5 * MIB + 100))
        self.assertEqual(memory["before_recording_bytes"], 12 * MIB)
        live = {(row["category"], row["source"]): (row["bytes"], row["blocks"])
                for row in memory["live_at_peak"]}
        self.assertEqual(live[("forward", "job/model.py:10 (forward)")],
                         (3 * (5 * MIB + 100), 3))
        # the three that still exist have a source; the one that was freed has none
        self.assertEqual(live[(None, "job/train.py:5 (build)")], (9 * MIB, 3))
        self.assertEqual(live[("before recording", None)], (3 * MIB, 1))

    def test_equal_frames_are_in_the_order_of_the_recording(self):
        """Whatever lies where in memory: what a pickle names first has the lower address."""
        first, second = (frames((name, f"/job/{name}.py", 1)) for name in ("zeta", "alpha"))
        for stacks in ([first, second], [second, first]):
            allocator = Allocator()
            for stack in stacks:
                allocator.alloc(MIB, stack)
            snapshot = {"names": [second, first], **allocator.snapshot()}
            for event in snapshot["device_traces"][0]:
                event["frames"] = next((one for one in (first, second) if one == event["frames"]), [])
            got = self.report(self.write(snapshot))["memory"]["stacks_at_peak"]
            self.assertEqual([row["frame"].split()[1] for row in got], [f"({stack[0]['name']})" for stack in stacks])

    def test_rounding_is_separate(self):
        a = Allocator()
        a.alloc(1000)
        memory = self.memory(a)
        self.assertEqual((memory["allocated_bytes"], memory["slack_bytes"]), (1024, 24))
        self.assertEqual({row["category"]: row["bytes"] for row in memory["live_at_peak"]},
                         {"forward": 1000, "not attributed": 24})

    def test_memory_that_other_streams_use_is_not_allocated(self):
        a = Allocator()
        kept, waiting = a.alloc(4 * MIB), a.alloc(2 * MIB)
        a.free(waiting, wait=True)
        memory = self.memory(a)
        self.assertEqual(memory["allocated_bytes"], 4 * MIB)
        self.assertEqual(memory["pending_bytes"], 2 * MIB)
        self.assertEqual(memory["peak_allocated_bytes"], 6 * MIB)
        self.assertEqual(memory["inactive_bytes"] + memory["allocated_bytes"], memory["reserved_bytes"])
        self.assertTrue(kept)

    def test_categories_come_from_the_stack(self):
        torch = "/x/site-packages/torch/"
        cases = [
            ("checkpoint recompute", [("layer_norm", torch + "nn/functional.py", 1), ("forward", "m.py", 2),
                                      ("recompute_fn", torch + "utils/checkpoint.py", 3)]),
            ("optimizer", [("_init_group", torch + "optim/adamw.py", 1), ("main", "train.py", 2)]),
            ("norm", [("layer_norm", torch + "nn/functional.py", 1), ("forward", "attention.py", 2)]),
            ("attention", [("at::_ops::_scaled_dot_product_flash_attention::call(at::Tensor)", "??", 0),
                           ("forward", "m.py", 2)]),
            ("quantisation", [("quantize_blockwise", "/x/bitsandbytes/functional.py", 1)]),
            ("gradients", [("at::_ops::empty_strided::call()", "??", 0),
                           ("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", "??", 0),
                           ("torch::autograd::Engine::evaluate_function()", "??", 0)]),
            ("forward", [("forward", "m.py", 9)]),
            (None, [("main", "train.py", 3)])]
        a = Allocator()
        for i, (_, stack) in enumerate(cases):
            a.alloc((i + 1) * MIB, frames(*stack))
        reported = {row["bytes"]: row["category"] for row in self.memory(a)["live_at_peak"]}
        self.assertEqual(reported, {(i + 1) * MIB: category for i, (category, _) in enumerate(cases)})

    def test_compiled_code_is_named_by_who_calls_it(self):
        """As in a recording of torch.compile on an H100: the cache is in its own folder, or in any other."""
        name = "z3/cz3vcpgktv5ml3u33u6ylioqz73qzckh5lb5msnz4b7q6gkaykiv.py"
        a = Allocator()
        for i, cache in enumerate(["/tmp/torchinductor_me/", "/scratch/cache/"]):
            a.alloc((i + 1) * 512 * MIB, frames(("at::detail::empty_strided_cuda(at::IntArrayRef)", "??", 0),
                                                ("call", cache + name, 1226), ("forward", "model.py", 205 + i), ("main", "train.py", 3)))
        document = self.report(self.write(a.snapshot()))
        self.assertEqual([(row["category"], row["source"]) for row in document["memory"]["live_at_peak"]],
                         [("compiled graphs", "model.py:206 (forward)"), ("compiled graphs", "model.py:205 (forward)")])
        peak, = findings_of(document, "MEMORY.PEAK")
        self.assertEqual(peak["title"], "100 % of the memory peak is for compiled graphs: 1.50 GiB lower without it")
        self.assertIn("activation_memory_budget", peak["action"])

    def test_churn_counts_by_source_and_size(self):
        a = Allocator()
        for _ in range(10):
            a.free(a.alloc(3 * MIB))
            a.free(a.alloc(1 * MIB, frames(("loss", "/home/u/job/train.py", 7))))
        rows = [(row["source"], row["size_bytes"], row["count"], row["bytes"])
                for row in self.memory(a)["churn"]]
        self.assertEqual(rows, [("job/model.py:10 (forward)", 3 * MIB, 10, 30 * MIB),
                                ("job/train.py:7 (loss)", MIB, 10, 10 * MIB)])

    # Segments.

    def test_gaps_and_what_keeps_them_apart(self):
        a = Allocator()
        blocks = [a.alloc(size) for size in (4 * MIB, 512, 4 * MIB, 2 * MIB)]
        a.free(blocks[0])
        a.free(blocks[2])
        other = a.alloc(30 * MIB)
        a.free(other)
        memory = self.memory(a)
        segments = memory["segments"]
        self.assertEqual(segments["unused_bytes"], 30 * MIB)
        self.assertEqual(segments["stranded_bytes"], 18 * MIB - 512)
        self.assertEqual(segments["gaps"], 3)
        self.assertEqual(segments["largest_gap_bytes"], 10 * MIB - 512)
        self.assertEqual((segments["pinned_blocks"], segments["pinned_bytes"]), (1, 512))
        self.assertEqual(segments["pinned_gap_bytes"], 8 * MIB)
        self.assertEqual(sum(row["gap_bytes"] for row in segments["by_size"]), segments["stranded_bytes"])
        self.assertEqual(sum(row["live_bytes"] for row in segments["by_size"]), memory["allocated_bytes"])

    def test_segments_without_a_block_in_use_do_not_count_at_the_peak(self):
        for pinned in (False, True):
            a = Allocator()
            big = [(a.alloc(199 * MIB), a.alloc(MIB)) for _ in range(4)]
            for large, small in big:
                a.free(large)
                if not pinned:
                    a.free(small)
            a.alloc(700 * MIB)  # PyTorch could have given back the four, if nothing is in them
            document = self.report(self.write(a.snapshot()))
            memory = document["memory"]
            in_use = sum(s["total_size"] for s in a.snapshot_segments() if s["active_size"])
            self.assertEqual(memory["peak_needed_bytes"], max(in_use, sum(a.segments.values()) - 700 * MIB))
            self.assertEqual(memory["peak_unused_bytes"],
                             memory["peak_needed_bytes"] - memory["peak_allocated_bytes"])
            self.assertEqual("MEMORY.FRAGMENTATION" in ids_of(document), pinned)

    def test_segments_given_back_while_recording_count_while_they_were_there(self):
        a = Allocator()
        pairs = [(a.alloc(19 * MIB), a.alloc(MIB)) for _ in range(30)]
        for large, _ in pairs:
            a.free(large)
        a.alloc(400 * MIB)  # 1000 MiB in segments with a block in use, 600 allocated at most
        for _, small in pairs:
            a.free(small)
        a.empty_cache()
        document = self.report(self.write(a.snapshot()))
        memory = document["memory"]
        self.assertEqual((memory["peak_needed_bytes"], memory["peak_allocated_bytes"]), (1000 * MIB, 600 * MIB))
        self.assertIn("MEMORY.FRAGMENTATION", ids_of(document))

    def fragmented(self, expandable=False, full=30, then=30):
        a = Allocator(expandable=expandable)
        pairs = [(a.alloc(19 * MIB), a.alloc(MIB)) for _ in range(full)]
        for large, _ in pairs:
            a.free(large)
        for _ in range(then):  # does not fit into the gaps
            a.alloc(20 * MIB)
        return a

    def test_fragmentation_is_judged_at_the_peak(self):
        full = self.fragmented(then=0)  # free in pieces at the end, full at the peak
        document = self.report(self.write(full.snapshot()))
        memory = document["memory"]
        self.assertEqual(memory["segments"]["stranded_bytes"], 570 * MIB)
        self.assertEqual(memory["peak_unused_bytes"], 0)
        self.assertNotIn("MEMORY.FRAGMENTATION", ids_of(document))
        self.assertEqual(memory["segments"]["expandable_frees_bytes"], 0)
        document = self.report(self.write(self.fragmented(then=6).snapshot()))
        memory = document["memory"]  # 720 MiB reserved, 600 allocated at most
        self.assertEqual(memory["segments"]["expandable_frees_bytes"], 120 * MIB)
        finding = findings_of(document, "MEMORY.FRAGMENTATION")[0]
        self.assertIn("free 120 MiB of it at most", finding["evidence"])
        self.assertNotIn("570 MiB", finding["title"])

    def peak_of(self, *parts, capacity=()):
        """The blocks that each step keeps until its end, in addition to 1 GiB of weights."""
        a = Allocator(segment=512 * MIB)
        a.recording = False
        a.alloc(1024 * MIB, frames(("build", "/home/u/job/train.py", 5)))
        a.recording = True
        for _ in range(3):
            live = [a.alloc(size, stack) for size, stack in parts]
            for block in live:
                a.free(block)
            a.alloc(700 * MIB, frames(("other", "/home/u/job/train.py", 9)))
            a.free(list(a.blocks)[-1])
        return self.report(self.write(a.snapshot()), *capacity)

    def test_causes_of_the_peak_have_a_saving(self):
        softmax = frames(("softmax", "/home/u/job/nn_utils.py", 12), ("forward", "/home/u/job/model.py", 3))
        einsum = frames(("einsum", "/x/site-packages/einops/_backends.py", 291), ("forward", "/home/u/job/model.py", 4))
        parts = ((1500 * MIB, softmax), (800 * MIB, einsum))
        document = self.peak_of(*parts)
        finding = findings_of(document, "MEMORY.PEAK")[0]
        self.assertEqual(finding["severity"], "info")
        saving = {row["category"]: row["lowers_peak_bytes"] for row in document["memory"]["live_by_category"]}
        self.assertEqual(saving["softmax"], 1500 * MIB)
        self.assertEqual(saving["matrix multiply"], 800 * MIB)
        self.assertIsNone(saving.get("before recording"))
        self.assertIn("45 % of the memory peak is for softmax: 1.46 GiB lower without it", finding["title"])
        self.assertIn("job/nn_utils.py:12", finding["evidence"])
        self.assertIn("einops/_backends.py:291", finding["evidence"])
        # a second peak of 700 MiB limits how much less the maximum is without the first
        saving = {row["category"]: row["lowers_peak_bytes"]
                 for row in self.peak_of((900 * MIB, softmax))["memory"]["live_by_category"]}
        self.assertEqual(saving["softmax"], 200 * MIB)
        tight = self.peak_of(*parts, capacity=("--gpu-gb", "4"))
        self.assertEqual([f["severity"] for f in findings_of(tight, "MEMORY.PEAK")], ["warning"])

    def test_what_a_job_must_keep_makes_no_finding(self):
        gradients = frames(("torch::autograd::AccumulateGrad::apply(x)", "??", 0))
        self.assertNotIn("MEMORY.PEAK", ids_of(self.peak_of((2000 * MIB, gradients))))
        softmax = frames(("softmax", "/home/u/job/nn_utils.py", 12))
        self.assertNotIn("MEMORY.PEAK", ids_of(self.peak_of((255 * MIB, softmax))))

    def test_a_peak_above_the_device_memory_is_reported(self):
        a = Allocator(segment=1024 * MIB)
        for _ in range(3):
            a.alloc(1024 * MIB)
        path = self.write(a.snapshot())
        text = " ".join(subprocess.run([REPORT, "--gpu-gb", "2", path], capture_output=True, text=True).stdout.split())
        self.assertIn("the peak exceeds 2.00 GiB by 1.00 GiB", text)
        self.assertIn("The peak exceeds the device's memory by 1.00 GiB", text)
        self.assertNotIn("-1", text)

    def test_fragmentation_is_found(self):
        document = self.report(self.write(self.fragmented().snapshot()))
        self.assertIn("MEMORY.FRAGMENTATION", ids_of(document))
        self.assertIs(document["memory"]["segments"]["expandable_would_help"], True)
        document = self.report(self.write(self.fragmented(expandable=True).snapshot()))
        self.assertIs(document["memory"]["segments"]["expandable_would_help"], False)
        self.assertEqual(document["memory"]["segments"]["expandable_frees_bytes"], 0)
        self.assertEqual(document["memory"]["segments"]["expandable"],
                         document["memory"]["segments"]["count"])

    def test_free_segments_are_no_fragmentation(self):
        a = self.fragmented(then=0)
        for address in list(a.blocks):
            a.free(address)
        document = self.report(self.write(a.snapshot()))
        self.assertEqual(document["memory"]["fragmentation"], 1)
        self.assertNotIn("MEMORY.FRAGMENTATION", ids_of(document))

    def test_little_fragmentation_is_none(self):
        self.assertNotIn("MEMORY.FRAGMENTATION",
                         ids_of(self.report(self.write(self.fragmented(full=3, then=3).snapshot()))))

    # Growth.

    def trained(self, steps, leak, annotated=True, stack=frames(("log", "/home/u/job/train.py", 42))):
        a = Allocator()
        for step in range(steps):
            kept = [a.alloc(2 * MIB + layer * 512) for layer in range(6)]
            for block in kept:
                a.free(block)
            if leak and step:
                a.alloc(leak, stack)
            if annotated:
                a.step()
        return a

    def test_growth_is_found_with_its_source(self):
        document = self.report(self.write(self.trained(30, 64 << 10).snapshot()), "--gpu-gb", "1")
        memory = document["memory"]
        self.assertEqual(memory["growth_bytes_per_step"], 64 << 10)
        self.assertEqual(memory["steps_method"], "ends of optimizer steps")
        self.assertEqual(memory["growth_source"], "job/train.py:42 (log)")
        self.assertIn("MEMORY.GROWTH", ids_of(document))

    def test_no_growth_is_none(self):
        document = self.report(self.write(self.trained(30, 0).snapshot()))
        self.assertEqual(document["memory"]["growth_bytes_per_step"], 0)
        self.assertNotIn("MEMORY.GROWTH", ids_of(document))

    def test_few_steps_show_no_growth(self):
        memory = self.memory(self.trained(4, 64 << 10))
        self.assertIsNone(memory["growth_bytes_per_step"])
        self.assertIn("too few", memory["growth_reason"])

    def jumping(self, steps, jumps):
        """That many steps, then a jump, and so on, and steps at last."""
        a = self.trained(steps, 0)
        for jump in range(jumps):
            a.alloc(8 * MIB)
            a.free(a.alloc(MIB))
            a.step()
            a.alloc(4 * MIB)  # what the first step of another model adds
            more, shift = self.trained(steps, 0), a.now
            for event in more.trace:
                a.trace.append({**event, "time_us": event["time_us"] + shift,
                                "addr": event["addr"] + ((jump + 1) << 40)})
            for mark in more.annotations:
                a.annotations.append({**mark, "time_us": mark["time_us"] + shift})
            a.now += more.now
        return ids_of(self.report(self.write(a.snapshot())))

    def test_a_few_jumps_are_no_growth(self):
        for jumps in (1, 2, 3):
            self.assertNotIn("MEMORY.GROWTH", self.jumping(60 // (jumps + 1), jumps), jumps)

    def test_what_is_kept_every_tenth_step_is_growth(self):
        self.assertIn("MEMORY.GROWTH", self.jumping(10, 7))

    def test_steps_from_what_repeats(self):
        document = self.report(self.write(self.trained(40, 64 << 10, annotated=False).snapshot()))
        memory = document["memory"]
        self.assertEqual(memory["growth_bytes_per_step"], 64 << 10)
        self.assertIs(memory["steps_are_certain"], False)
        growth = findings_of(document, "MEMORY.GROWTH")
        self.assertEqual([f["severity"] for f in growth], ["info"])

    def test_steps_from_what_the_optimizer_allocates(self):
        optimizer = frames(("step", "/x/site-packages/torch/optim/adamw.py", 5), ("main", "/home/u/job/train.py", 9))
        a = Allocator()
        for step in range(20):
            for size in range(step % 3 + 2):  # every step differs
                a.free(a.alloc((2 + size) * MIB))
            a.alloc(64 << 10)
            for _ in range(3):
                a.free(a.alloc(MIB, optimizer))
        memory = self.memory(a)
        self.assertEqual((memory["steps"], memory["growth_bytes_per_step"]), (20, 64 << 10))
        self.assertEqual(memory["steps_method"], "ends of the optimizer's allocations")

    def test_layers_of_a_forward_pass_are_no_steps(self):
        a = Allocator()
        for _ in range(40):  # each keeps its activations
            for size in (2 * MIB, 3 * MIB, 4 * MIB):
                a.alloc(size)
            a.free(a.alloc(MIB))
        memory = self.memory(a)
        self.assertIsNone(memory["steps"])
        self.assertIsNone(memory["growth_bytes_per_step"])

    def test_layers_that_free_all_are_no_steps(self):
        # inference: layers leave nothing; what they share is one call of the model's forward
        torch = "/x/site-packages/torch/nn/modules/module.py"
        outer = (("_call_impl", torch, 1), ("main", "/home/u/job/run.py", 7))
        for own, steps in (((("forward", "/home/u/job/model.py", 253),), None), ((("generate", "/home/u/job/run.py", 5),), 38)):
            a = Allocator()
            for _ in range(40):
                a.free(a.alloc(2 * MIB, frames(("forward", "/home/u/job/layer.py", 3), *own, *outer)))
                a.free(a.alloc(3 * MIB, frames(("forward", "/home/u/job/layer.py", 4), *own, *outer)))
                a.free(a.alloc(5 * MIB, frames(("norm", "/home/u/job/layer.py", 9), *own, *outer)))
            memory = self.memory(a)
            if steps is None:
                self.assertIsNone(memory["steps"])
                self.assertIn("no steps", memory["growth_reason"])
            else:
                self.assertGreaterEqual(memory["steps"], steps)

    # Gradients.

    def test_results_of_backward_that_the_optimizer_uses_are_gradients(self):
        node = frames(("at::_ops::bmm::call(at::Tensor)", "??", 0),
                      ("torch::autograd::generated::BmmBackward0::apply(x)", "??", 0),
                      ("torch::autograd::Engine::evaluate_function()", "??", 0))
        bmm = frames(("at::_ops::bmm::call(at::Tensor)", "??", 0), ("forward", "/home/u/job/model.py", 3))
        optimizer = frames(("step", "/x/site-packages/torch/optim/adamw.py", 5), ("main", "/home/u/job/train.py", 9))
        a = Allocator(segment=512 * MIB)
        for last in (False, False, True):
            kept = a.alloc(300 * MIB, bmm)
            gradients = [a.alloc(500 * MIB, node) for _ in range(4)]
            a.free(a.alloc(700 * MIB, node))  # of an activation
            a.free(kept)
            a.free(a.alloc(MIB, optimizer))
            for block in gradients[:0 if last else None]:
                a.free(block)
        document = self.report(self.write(a.snapshot()))
        live = {row["category"]: row["bytes"] for row in document["memory"]["live_by_category"]}
        self.assertEqual(live, {"gradients": 2000 * MIB, "backward": 700 * MIB, "matrix multiply": 300 * MIB})
        peak = findings_of(document, "MEMORY.PEAK")
        self.assertNotIn("BmmBackward0", str(peak))

    # Headroom.

    def test_headroom_and_risk(self):
        a = Allocator(segment=1000 * MIB)
        a.alloc(900 * MIB)
        path = self.write(a.snapshot())
        for gib, risk in (("1", "high"), ("1.08", "high"), ("1.09", "medium"), ("2", "low")):
            document = self.report(path, "--gpu-gb", gib)
            self.assertEqual(document["memory"]["oom_risk"], risk)
            self.assertEqual("MEMORY.OOM_RISK" in ids_of(document), risk == "high")
            self.assertAlmostEqual(document["memory"]["headroom_bytes"],
                                   float(gib) * (1 << 30) - 1000 * MIB, delta=1)
        self.assertIsNone(self.report(path)["memory"]["oom_risk"])

    def test_out_of_memory(self):
        a = self.fragmented()
        a.trace.append({"action": "oom", "size": 64 * MIB, "device_free": 3 * MIB, "stream": 0,
                        "time_us": a.now + 5, "frames": []})
        document = self.report(self.write(a.snapshot()))
        memory = document["memory"]
        self.assertEqual((memory["out_of_memory"], memory["oom_risk"]), (1, "happened"))
        found = {f["id"]: f["severity"] for f in document["findings"]}
        self.assertEqual(found["MEMORY.OOM_RISK"], "critical")
        self.assertEqual(found["MEMORY.FRAGMENTATION"], "critical")

    # Churn.

    def test_churn_is_found(self):
        a = Allocator()
        for _ in range(1200):
            a.free(a.alloc(MIB))
        self.assertIn("MEMORY.CHURN", ids_of(self.report(self.write(a.snapshot()))))
        a = Allocator()
        for i in range(900):
            a.free(a.alloc(MIB))
        self.assertNotIn("MEMORY.CHURN", ids_of(self.report(self.write(a.snapshot()))))

    def test_segments_allocated_repeatedly(self):
        for times, found in ((12, True), (6, False)):
            a = Allocator()
            for _ in range(times):
                a.free(a.alloc(4 * MIB))
                a.empty_cache()
            document = self.report(self.write(a.snapshot()))
            self.assertEqual(document["memory"]["segments"]["obtained"], times)
            self.assertEqual(document["memory"]["peak_reserved_bytes"], 20 * MIB)
            self.assertEqual("MEMORY.CHURN" in ids_of(document), found)

    def test_an_allocator_emptied_once_is_no_churn(self):
        a = Allocator(segment=2 * MIB)
        a.recording = False
        for block in [a.alloc(2 * MIB) for _ in range(40)]:  # before the recording
            a.free(block)
        a.recording = True
        a.empty_cache()
        blocks = [a.alloc(2 * MIB) for _ in range(40)]
        document = self.report(self.write(a.snapshot()))
        segments = document["memory"]["segments"]
        self.assertEqual((segments["obtained"], segments["returned"]), (40, 40))
        self.assertEqual((segments["refetched"], segments["rounds"]), (0, 0))
        self.assertNotIn("MEMORY.CHURN", ids_of(document))
        for block in blocks:  # once more, in the middle: the only round that counts
            a.free(block)
        a.empty_cache()
        for _ in range(40):
            a.alloc(2 * MIB)
        document = self.report(self.write(a.snapshot()))
        segments = document["memory"]["segments"]
        self.assertEqual((segments["refetched"], segments["rounds"]), (40, 1))
        self.assertNotIn("MEMORY.CHURN", ids_of(document))

    def test_one_magnitude_has_one_unit(self):
        a = Allocator(segment=20 << 30)
        for _ in range(3):
            a.alloc(20 << 30)
        path = self.write(a.snapshot())
        text = subprocess.run([REPORT, "--gpu-gb", "64", path], capture_output=True, text=True).stdout
        self.assertIn("64.0 GiB", text)  # a card of 64 GB has 64 GiB
        self.assertIn("60.0 GiB were reserved", " ".join(text.split()))
        self.assertNotRegex(text, r"e\+\d| [GM]B\b")

    # Shapes of files.

    def test_a_ring_that_wrapped(self):
        a = self.trained(40, 64 << 10)
        whole = self.memory(a)
        a.trace = a.trace[len(a.trace) // 2:]
        half = self.memory(a)
        self.assertEqual(half["allocated_bytes"], whole["allocated_bytes"])
        self.assertEqual(half["peak_allocated_bytes"], replay(a.snapshot()))
        self.assertEqual(half["growth_bytes_per_step"], 64 << 10)

    def test_older_and_other_shapes(self):
        a = self.trained(3, 64 << 10)
        segments = a.snapshot_segments()
        wanted = sum(s["allocated_size"] for s in segments)
        bare = [{k: v for k, v in s.items() if k not in ("is_expandable", "segment_pool_id", "requested_size")}
                for s in segments]
        for s in bare:  # PyTorch 1.13: no requested sizes, and the frames are in the block's history
            s["blocks"] = [{"size": b["size"], "state": b["state"],
                            "history": [{"addr": b["address"], "frames": b["frames"], "real_size": b["size"]}]}
                           for b in s["blocks"]]
        for value, name in ((segments, "a.pickle"), ({"segments": bare}, "b.pickle"),
                            ({"segments": segments, "device_traces": []}, "c.pickle.gz"),
                            (a.snapshot(new_key={"x": 1}, more=None), "d.pickle")):
            for protocol in (2, 4, 5):
                memory = self.report(self.write(value, name, protocol))["memory"]
                self.assertEqual(memory["allocated_bytes"], wanted, name)
        only_trace = self.report(self.write({"segments": [], "device_traces": [a.trace]}))["memory"]
        self.assertEqual(only_trace["peak_allocated_bytes"], replay(a.snapshot()))
        self.assertIsNone(only_trace["segments"]["count"])

    def test_other_actions_and_odd_events_are_passed_over(self):
        a = self.trained(3, 0)
        a.trace.insert(3, {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": a.now, "frames": []})
        a.trace.insert(5, {"action": "user_defined", "addr": 0, "size": 0, "stream": 0, "time_us": 1, "frames": []})
        a.trace.insert(7, {"action": "something_new", "size": -5})
        a.trace.insert(9, {"action": "alloc", "addr": 5})
        memory = self.memory(a)
        self.assertEqual(memory["peak_allocated_bytes"], replay(self.trained(3, 0).snapshot()))
        self.assertTrue(any("2 events are skipped" in note for note in memory["notes"]))

    def test_devices_and_ranks(self):
        small, large = Allocator(device=0), Allocator(device=1)
        small.alloc(MIB)
        large.alloc(9 * MIB)
        both = {"segments": small.snapshot_segments() + large.snapshot_segments(),
                "device_traces": [small.trace, large.trace]}
        self.write(both, "snapshot_rank3.pickle")
        self.write(small.snapshot(), "snapshot_rank0.pickle")
        memory = self.report(self.folder)["memory"]
        self.assertEqual((memory["rank"], memory["device"]), (3, 1))
        self.assertEqual(sorted((d["rank"], d["device"], d["allocated_bytes"]) for d in memory["devices"]),
                         [(0, 0, MIB), (3, 0, MIB), (3, 1, 9 * MIB)])

    def test_a_number_in_a_name_is_no_rank(self):
        a = Allocator()
        a.alloc(MIB)
        self.assertIsNone(self.report(self.write(a.snapshot(), "node7_medium_128.pickle"))["memory"]["rank"])

    # What cannot be read.

    def refused(self, data, name="snapshot.pickle"):
        path = self.write(data, name)
        done = run_in_256_mib(path)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        return done.stderr

    def test_damaged_files_are_refused_in_a_line(self):
        whole = pickle.dumps(self.trained(3, 0).snapshot())
        why = self.refused(whole[:len(whole) // 2])
        self.assertIn("snapshot.pickle", why)
        why = self.refused(pickle.dumps({"segments": 5}))
        self.assertIn("not a snapshot", why)

    def test_nothing_is_executed(self):
        class Evil:
            def __reduce__(self):
                return os.mkdir, (os.path.join(self_folder, "executed"),)
        self_folder = self.folder
        self.refused({"segments": [], "device_traces": [Evil()]})
        self.assertFalse(os.path.exists(os.path.join(self_folder, "executed")))

    def test_absurd_sizes_do_no_harm(self):
        a = self.trained(3, 0)
        for event in a.trace[::7]:
            event["size"] = (1 << 62) + 5
        snapshot = a.snapshot()
        snapshot["segments"][0]["total_size"] = 1 << 63
        snapshot["segments"][0]["blocks"][0]["size"] = (1 << 63) - 1
        self.report(self.write(snapshot))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
