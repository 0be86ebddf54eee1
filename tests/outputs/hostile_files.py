#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that are damaged or made to do harm: hostile_files.py TSCOPE-REPORT TRACEGEN. Every report ends with a result or
with one line, within a stated memory; a file that is not believed costs its own rank and is named."""
import gzip
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import trace_header  # noqa: E402
from in_folder import InFolder  # noqa: E402
from observed import clean_environment, run, without_progress  # noqa: E402
from processes import cost_of  # noqa: E402
from read_trace import paths_under  # noqa: E402

REPORT, TRACEGEN = sys.argv[1:3]
ENV = clean_environment(LC_ALL="C.UTF-8")
MIB = 1 << 20
DOES_NOT_START = 127  # the dynamic linker says so, in one of several ways
SANITIZED = "asan" in subprocess.run(["ldd", REPORT], capture_output=True, text=True).stdout


def report(*arguments):
    """(exit status, standard output, standard error, largest memory in MiB)"""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as wrong:
        *_, peak, status = cost_of([REPORT, *arguments], ok=range(256), stdout=out, stderr=wrong, env=ENV)
        out.seek(0)
        wrong.seek(0)
        return status, out.read().decode(), without_progress(wrong.read().decode()), peak


class HostileFiles(InFolder):
    def traces(self, ranks=2):
        path = os.path.join(self.folder, "run")
        run(TRACEGEN, "--ranks", ranks, "--steps", "20", path)
        return path, paths_under(path)

    def bounded(self, most_mib, *arguments):
        status, out, wrong, used = report(*arguments)
        self.assertIn(status, (0, 2), wrong)
        if not SANITIZED:
            self.assertLess(used, most_mib, wrong)
        return status, out, wrong

    def test_a_world_size_is_believed_as_far_as_the_ranks_bear_it_out(self):
        for claimed in 2**32 - 2, 2**32 - 1, 2**31, 2**28, 2**20:
            path, files = self.traces()
            for file in files:
                trace_header.patch(file, world_size=claimed)
            for kind in "text", "json":
                status, out, _ = self.bounded(200, "--format", kind, path)
                self.assertEqual(status, 0)
                self.assertIn(f"says that the job has {claimed} ranks, and 2 are here", " ".join(out.split()))
        for file in files:
            trace_header.patch(file, world_size=1000)
        status, out, _ = self.bounded(200, "--format", "json", path)
        self.assertEqual(json.loads(out)["quality"]["partial_ranks"], list(range(2, 1000)))

    def test_any_rank_number_is_only_a_number(self):
        for rank in 2**32 - 2, 2**31, 2**28:
            path, files = self.traces()
            trace_header.patch(files[-1], rank=rank)
            status, out, _ = self.bounded(200, "--format", "json", path)
            self.assertEqual(status, 0)

    def test_without_memory_there_is_one_line(self):
        if SANITIZED:
            self.skipTest("the sanitizer needs address space")
        path, _ = self.traces(ranks=8)
        ended = set()
        for limit in range(8, 64, 2):
            done = subprocess.run([REPORT, "--threads", "2", "--format", "json", path], capture_output=True, text=True, env=ENV,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB)))
            if done.returncode == DOES_NOT_START:
                continue
            ended.add(done.returncode)
            self.assertIn(done.returncode, (0, 2), f"{limit} MiB: {done.stderr}")
            self.assertEqual(done.stderr.count("\n"), 1 if done.returncode else 0, done.stderr)
        self.assertEqual(ended, {0, 2})

    # Files that grow when they are read.

    def left_out(self, most_mib, bad, reason, *others):
        """The bad file is named with the reason; what is beside it makes the report."""
        status, out, wrong = self.bounded(most_mib, bad)
        self.assertEqual(status, 2)
        self.assertEqual(wrong.count("\n"), 1)
        self.assertIn(os.path.basename(bad), wrong)
        self.assertRegex(wrong, reason)
        if others:
            status, out, wrong = self.bounded(most_mib, "--format", "json", bad, *others)
            self.assertEqual(status, 0, wrong)
            notes = [note for note in json.loads(out)["quality"]["notes"] if os.path.basename(bad) in note]
            self.assertEqual(len(notes), 1, notes)
            self.assertRegex(notes[0], reason)

    def bomb(self, name, head, middle, n):
        """A gzip file of `head`, then n times `middle`."""
        path = os.path.join(self.folder, name)
        with gzip.open(path, "wb", compresslevel=6) as file:
            file.write(head)
            for _ in range(n):
                file.write(middle)
        return path

    def log(self):
        path = os.path.join(self.folder, "good.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"step": i, "loss": 1 / (1 + i)}) + "\n" for i in range(20))
        return path

    def test_what_decompresses_without_end_is_left_out(self):
        zeros, too_much = b" " * MIB, "would take more than [0-9]+ bytes (when decompressed|of memory)"
        for name, head in (("loss.jsonl", b'{"step": 1, "loss": 2.5}\n'), ("modules.json", b'{"mod_stats": [], "mod_order": {}, "x": "'),
                           ("snapshot_rank0.pickle", b"\x80\x02}(X\x08\0\0\0segmentsX\x0d\0\0\0device_tracesX\0\0\0\x7f"),
                           ("nccl_trace_rank_0", b'{"version": "2.4", "pg_config": {}, "entries": [], "x": "')):
            with self.subTest(name):
                self.left_out(400, self.bomb(name, head, zeros, 250), too_much, self.log())
        kineto = self.bomb("rank0.trace.json.gz", b'{"schemaVersion": 1, "traceEvents": [', zeros, 250)
        self.left_out(400, kineto, "trace.json.gz", self.log())

    def test_a_pickle_of_nothing_costs_a_small_multiple(self):
        path = os.path.join(self.folder, "snapshot_rank0.pickle")
        with open(path, "wb") as file:
            file.write(b"\x80\x02}(X\x08\0\0\0segmentsX\x0d\0\0\0device_traces")
            file.write(b"N" * (16 * MIB))
        self.left_out(16 * 13 + 64 + 64, path, "would take more than [0-9]+ bytes of memory for the values", self.log())

    def test_json_of_nothing_costs_a_bounded_multiple(self):
        path = os.path.join(self.folder, "modules.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"mod_stats": [], "mod_order": [' + "[]," * MIB + "[]]}")
        self.bounded(64 + 48 * 3 + 100, path, self.log())

    def trace_of(self, records):
        """A good run of two ranks, and the file of a third that has only these retained records."""
        path, files = self.traces()
        with open(files[0], "rb") as file:
            whole = file.read()
        header = trace_header.of(whole)
        chunk_bytes = header.chunk_bytes
        out, chunk, n, chunks = bytearray(whole[:header.header_bytes]), bytearray(), 0, 0
        for record in [*records, None]:
            if record is None or len(chunk) + len(record) > chunk_bytes - 64:
                out += struct.pack("<IBBHIIQQQ24x", 0x4B4E4843, 1, 2, 64, 0, chunks, 0, n << 32 | len(chunk), 0)
                out += chunk.ljust(chunk_bytes - 64, b"\0")
                chunk, n, chunks = bytearray(), 0, chunks + 1
            if record is not None:
                chunk += record
                n += 1
        trace_header.put(out, rank=2, world_size=3, chunks=chunks)
        bad = os.path.join(os.path.dirname(files[0]), "bad.tscope")
        with open(bad, "wb") as file:
            file.write(out)
        return path, bad

    @staticmethod
    def record(kind, tag, layout, *values, text=b""):
        body = struct.pack("<" + layout, *values) + text
        body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
        return struct.pack("<BBHI", kind, 1 + len(body) // 8, tag, 1) + body

    def a_rank_is_left_out(self, path, bad, reason):
        status, out, wrong = self.bounded(400, "--format", "json", path)
        self.assertEqual(status, 0, wrong)
        made = json.loads(out)
        self.assertEqual(made["run"]["ranks_found"], [0, 1])
        self.assertTrue([note for note in made["quality"]["notes"] if bad in note and reason in note], made["quality"]["notes"])

    def test_graphs_in_graphs_in_graphs_cost_their_own_rank(self):
        # Sixteen levels, each with four times the next: 4^16 parts.
        records = [self.record(0x2B, 0, "IIIIIIII", 1, 1, 1, 0, 0, 0, 1, 0)]
        for level in range(1, 17):
            records += [self.record(0x34, 0, "IIII", level, level + 1, 0, 0)] * 4
        records.append(self.record(0x2D, 0, "QIiII", 10, 1, 0, 0, 0))
        path, bad = self.trace_of(records)
        self.a_rank_is_left_out(path, bad, "calls in replays of CUDA graphs")

    def test_facts_are_joined_in_one_pass(self):
        # A list of 20,000 items, each of 1,000 bytes: joined one after the other it took 200 GB.
        records = [self.record(0x02, 0, "II", 1, 1000, text=b"x" * 1000), self.record(0x02, 0, "II", 2, 2, text=b"yz")]
        records += [self.record(0x06, 10, "II", 1, 2)] * 20_000
        path, _ = self.trace_of(records)
        self.bounded(400, "--format", "json", path)

    def test_a_number_of_a_definition_is_below_what_the_file_can_hold(self):
        path, bad = self.trace_of([self.record(0x02, 0, "II", number, 1, text=b"x") for number in (2**32 - 1, 2**31, 2**27, 2**20)])
        os.truncate(bad, 1 << 40)
        trace_header.patch(bad, chunks=2**40)
        self.bounded(400, "--format", "json", path)

    def test_a_communicator_is_believed_as_far_as_its_ranks_bear_it_out(self):
        # 1,500 communicators, each of 2^20 ranks, took 6 GB.
        path, _ = self.trace_of([self.record(0x08, 2, "QQIIIIII", i + 1, 0, i + 1, 0, size, 0, 0, 0)
                                 for i in range(1500) for size in (2**20, 65536)])
        self.bounded(400, "--format", "json", path)

    def test_a_file_that_does_not_say_of_which_run_it_is_is_named(self):
        path, files = self.traces(3)
        elsewhere = os.path.join(path, "node7")
        os.mkdir(elsewhere)
        cut = shutil.move(files[2], elsewhere)
        os.truncate(cut, 100)
        self.a_rank_is_left_out(path, cut, "is cut inside its header: whether it is of this run is not known")

    def test_a_terabyte_of_holes_is_read_at_once(self):
        path, files = self.traces()
        for file in files:
            trace_header.patch(file, chunks=2**63)
            os.truncate(file, 1 << 40)
        status, out, wrong = self.bounded(300, "--format", "json", path)
        self.assertEqual(status, 0, wrong)
        self.assertEqual(json.loads(out)["run"]["ranks_found"], [0, 1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
