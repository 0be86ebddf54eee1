#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Messages and GEMMs of a run on the stand-in cluster, in the database and on the timeline, compared with what the job
had to do: standin_run.py BUILD-FOLDER."""
import collections
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built, standins_of  # noqa: E402
from in_folder import InFolder  # noqa: E402
from observed import observed_environment, run  # noqa: E402

BUILD = sys.argv[1]
REPORT = built(BUILD, "tscope-report")
STAGES, STEPS, MICRO_BATCHES, MESSAGE_KB = 4, 12, 4, 128
# As in tests/standins/training/train_gemms.c: m, n, k of each kind.
LAYERS, OF_EACH, RANKS = 8, 2, 2


def train(folder, *options):
    run(built(BUILD, "train"), "--steps", STEPS, *options, env=observed_environment(
        built(BUILD, "libtscope.so"), folder, LD_LIBRARY_PATH=standins_of(BUILD),
        STANDIN_TFLOPS="10", STANDIN_GPU_NAME="NVIDIA H100 80GB HBM3"))


def database(folder, traces):
    path = os.path.join(folder, "run.db")
    run(REPORT, "--format", "sqlite", "--output", path, traces)
    return sqlite3.connect("file:%s?mode=ro" % path, uri=True)


class Run(InFolder):
    def setUp(self):
        super().setUp()
        self.traces = os.path.join(self.folder, "traces")

    def test_messages_of_a_pipeline(self):
        train(self.traces, "--ranks", str(STAGES), "--pipeline", str(STAGES), "--micro-batches", str(MICRO_BATCHES),
              "--message-kb", str(MESSAGE_KB))
        db = database(self.folder, self.traces)
        sent = db.execute("SELECT s.rank, r.rank, count(*), sum(c.bytes) FROM collectives c"
                          " JOIN members s ON s.collective = c.collective AND s.op = 'send'"
                          " JOIN members r ON r.collective = c.collective AND r.op = 'recv' GROUP BY 1, 2").fetchall()
        each = (MICRO_BATCHES * STEPS, MICRO_BATCHES * STEPS * MESSAGE_KB * 1024)
        self.assertEqual(sorted(sent), sorted((a, b, *each) for a in range(STAGES) for b in range(STAGES)
                                              if abs(a - b) == 1))

        try:
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
        except ImportError as why:
            self.skipTest("the package perfetto is not there (%s): scripts/setup test" % why)
        path = os.path.join(self.folder, "trace")
        run(REPORT, "--format", "perfetto", "--steps", "5:7", "--output", path, self.traces)
        trace, members = perfetto.Trace(), collections.defaultdict(list)
        with open(path, "rb") as file:
            trace.ParseFromString(file.read())
        for packet in trace.packet:
            event = packet.track_event
            for flow in event.flow_ids:
                if flow >> 63:  # a flow of a collective or a message, not of a launch
                    members[flow].append(packet.trusted_packet_sequence_id)
        # Two ends on two ranks; the all-reduces at the end of the run have more.
        messages = [ends for ends in members.values() if len(ends) == 2]
        self.assertTrue(all(len(set(ends)) == 2 for ends in messages))
        # A message at the boundary of the three steps may have one end outside.
        self.assertAlmostEqual(len(messages), 3 * 2 * (STAGES - 1) * MICRO_BATCHES, delta=4 * (STAGES - 1))

    def test_gemms_have_their_shapes_and_arithmetic(self):
        train(self.traces, "--ranks", str(RANKS), "--gemms", str(OF_EACH))
        db = database(self.folder, self.traces)
        for precision, m, n, k, flops in db.execute("SELECT precision, m, n, k, flops FROM gemms"):
            self.assertEqual(flops, 2 * m * n * k, precision)
        each = dict(db.execute("SELECT precision, count(*) FROM gemms WHERE step BETWEEN 4 AND 9 GROUP BY 1"))
        self.assertEqual(set(each), {"bf16/fp16", "tf32", "fp32"})
        self.assertEqual(set(each.values()), {6 * RANKS * 2 * LAYERS * OF_EACH})  # forward and backward
        # The kernel of each GEMM ran and has its operations.
        ran = db.execute("SELECT count(*), sum(flops) FROM gpu_work WHERE flops IS NOT NULL AND step BETWEEN 4 AND 9")
        count, flops = ran.fetchone()
        self.assertEqual(count, sum(each.values()))
        expected_flops = db.execute("SELECT sum(flops) FROM gemms WHERE step BETWEEN 4 AND 9").fetchone()[0]
        self.assertAlmostEqual(flops / expected_flops, 1, delta=0.02)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
