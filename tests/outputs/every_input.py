#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Page, timeline and database of every input, alone and compared with every other, and of inputs with only hostile
names: every_input.py TSCOPE-REPORT TRACEGEN. Each output is read the way its users read it, and must match what the
input was made of."""
import itertools
import json
import os
import pickle
import random
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import inputs  # noqa: E402
from in_folder import InOneFolder  # noqa: E402
from observed import run  # noqa: E402
from outcomes import Skip  # noqa: E402
from page_data import data_of  # noqa: E402

REPORT, TRACEGEN = sys.argv[1:3]
try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError as why:
    raise Skip(f"the package perfetto is not there ({why}): scripts/setup test") from None

BEGIN, COUNTER = 1, 4


def snapshot(path, names):
    """A memory snapshot with a block for each name, allocated at the place that the name gives."""
    frames = [[{"filename": name, "name": name, "line": 7}] for name in names]
    blocks = [{"address": 4096 * i, "size": 4096, "requested_size": 4000, "state": "active_allocated",
               "frames": frames[i]} for i in range(len(names))]
    events = [{"action": "alloc", "addr": 4096 * i, "size": 4096, "stream": 0, "time_us": 10 * i, "frames": frames[i]}
              for i in range(len(names))]
    with open(path, "wb") as file:
        pickle.dump({"segments": [{"device": 0, "address": 0, "total_size": 4096 * len(names), "stream": 0,
                                   "segment_type": "large", "allocated_size": 4096 * len(names),
                                   "active_size": 4096 * len(names), "blocks": blocks}],
                     "device_traces": [events], "allocator_settings": {}}, file)
    return [path]


def dumps(folder, names):
    """Flight-recorder dumps of two ranks: rank 1 has not made the last call."""
    os.mkdir(folder)
    for rank in range(2):
        entries = [{"record_id": i, "pg_id": 0, "process_group": ("0", name), "collective_seq_id": i + 1,
                    "p2p_seq_id": 0, "op_id": i + 1, "profiling_name": "nccl:" + name,
                    "time_created_ns": 10**9 + 1000 * i, "input_sizes": [[8]], "input_dtypes": [name],
                    "output_sizes": [[8]], "output_dtypes": [name], "state": "completed" if rank else "scheduled",
                    "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": False,
                    "timeout_ms": 600000, "is_p2p": False,
                    "frames": [{"name": name, "filename": name, "line": 3}]}
                   for i, name in enumerate(names[:len(names) - rank])]
        with open(os.path.join(folder, "_dump_%d" % rank), "wb") as file:
            pickle.dump({"version": "2.4", "pg_config": {"0": {"name": "0", "desc": names[0], "ranks": "[0, 1]"}},
                         "pg_status": {}, "entries": entries}, file)
    return [os.path.join(folder, "_dump_0"), os.path.join(folder, "_dump_1")]


def log(path, names):
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        for step in range(40):
            file.write(json.dumps({"step": step, "loss": 3 - step / 50, **{name: step for name in names}}) + "\n")
    return [path]


class Outputs(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        plain = ["gemm", "relu", "copy"]
        cls.made = {
            "own": inputs.synthetic(TRACEGEN, cls.folder, "own", "--ranks", "3", "--steps", "20", "--phases"),
            "kineto": inputs.kineto(cls.path("kineto.json"), plain, world=1),
            "dumps": dumps(cls.path("dumps"), plain),
            "snapshot": snapshot(cls.path("snapshot.pickle"), plain),
            "log": log(cls.path("log.jsonl"), ["accuracy"]),
        }

    def write(self, kind, *arguments):
        output = self.path("output")
        if os.path.exists(output):
            os.remove(output)
        run(REPORT, *arguments, "--format", kind, "--output", output)
        with open(output, "rb") as file:
            return file.read()

    def page(self, *arguments):
        text = self.write("html", *arguments).decode()  # it is UTF-8
        self.assertEqual(len(re.findall(r"<script", text)), 2, "a name became a script")
        return data_of(text)

    def timeline(self, *arguments):
        trace = perfetto.Trace()
        trace.ParseFromString(self.write("perfetto", *arguments))
        events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
        tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
        for packet in trace.packet:
            for interned in packet.interned_data.event_names:
                interned.name.encode()  # UTF-8
        return events, tracks

    def database(self, *arguments):
        self.write("sqlite", *arguments)
        db = sqlite3.connect("file:%s?mode=ro" % self.path("output"), uri=True)
        self.addCleanup(db.close)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
            db.execute(f"SELECT * FROM {table}").fetchall()  # text that is not UTF-8 is an error
        return db

    # Each alone, and each compared with each.

    HOLDS = {"own": "gpu_work", "kineto": "gpu_work", "dumps": "recorded_calls", "snapshot": "counters",
             "log": "scalars"}

    def one(self, name):
        paths = self.made[name]
        report = self.page(*paths)["report"]
        self.assertEqual(sum(each["files"] for each in report["run"]["inputs"]), len(paths) if name != "own" else 3)
        events, _ = self.timeline(*paths)
        self.assertTrue([event for event in events if event.type == (COUNTER if name in ("snapshot", "log") else BEGIN)])
        db = self.database(*paths)
        self.assertGreater(db.execute(f"SELECT count(*) FROM {self.HOLDS[name]}").fetchone()[0], 0)

    def test_each_alone(self):
        for name in self.made:
            with self.subTest(name):
                self.one(name)

    def test_each_against_each(self):
        for one, other in itertools.product(self.made, repeat=2):
            with self.subTest(before=one, after=other):
                sides = ["diff", *self.made[one], "--", *self.made[other]]
                if len(self.made[one]) == len(self.made[other]) == 1:
                    sides.remove("--")
                elif one == "dumps" or other == "dumps":  # the dumps of a run are given as their folder
                    sides = ["diff", *(self.path("dumps") if name == "dumps" else self.made[name][0]
                                       for name in (one, other))]
                self.assertIn("diff", self.page(*sides)["report"])
                events, tracks = self.timeline(*sides)
                self.assertTrue(events)
                names = {track.name.split(" · ")[0] for track in tracks if track.name}
                self.assertTrue({"1 before", "2 after"} <= names, names)
                db = self.database(*sides)
                self.assertEqual(db.execute("SELECT run FROM runs ORDER BY run").fetchall(), [(1,), (2,)])
                for run, name in ((1, one), (2, other)):
                    rows, = db.execute(f"SELECT count(*) FROM {self.HOLDS[name]} WHERE run = ?", [run]).fetchone()
                    self.assertGreater(rows, 0, f"{name} as run {run}")

    def test_a_log_without_times_is_drawn_by_its_steps(self):
        events, tracks = self.timeline(*self.made["log"])
        self.assertEqual(len([event for event in events if event.type == COUNTER]), 40)
        self.assertIn("each step is drawn as one millisecond", " ".join(event.name for event in events))

    def hostile(self, names, tag):
        one_line = [re.sub(r"[\ud800-\udfff]", "?", name) for name in names]
        return {
            "own": inputs.named(TRACEGEN, self.folder, tag, one_line, "--ranks", "3", "--steps", "10", "--phases"),
            "kineto": inputs.kineto(self.path(f"{tag}.json"), one_line, host=one_line[0], world=1),
            "dumps": dumps(self.path(f"{tag}-dumps"), one_line),
            "snapshot": snapshot(self.path(f"{tag}.pickle"), one_line),
            # A log with lines that are too long or with NUL in a name is refused with a message.
            "log": log(self.path(f"{tag}.jsonl"), [name.replace("\0", "")[:90] for name in one_line[:12]]),
        }

    def all_three(self, made):
        for name, paths in made.items():
            with self.subTest(name):
                self.page(*paths)
                self.timeline(*paths)
                db = self.database(*paths)
                self.assertGreater(db.execute(f"SELECT count(*) FROM {self.HOLDS[name]}").fetchone()[0], 0)
                given = [paths[0]] if name != "dumps" else [os.path.dirname(paths[0])]
                for sides in ([*given, *self.made["own"]], [*self.made["own"], *given]):
                    self.page("diff", *sides)
                    self.timeline("diff", *sides)
                    self.database("diff", *sides)

    def test_hostile_names(self):
        made = self.hostile(inputs.HOSTILE, "hostile")
        self.all_three(made)
        db = self.database(*made["kineto"])
        whole = {name for name, in db.execute("SELECT whole_name FROM gpu_work")}
        for name in inputs.HOSTILE[:5]:
            self.assertIn(name, whole)

    def test_random_names(self):
        seed = int(os.environ.get("TSCOPE_FUZZ_SEED", "11"))
        for turn in range(int(os.environ.get("TSCOPE_FUZZ_TURNS", "4"))):
            dice = random.Random(seed + turn)
            alphabet = [*"<>&'\"/\\`${}()[];:=!-#%@ \n\t\0\x7f\x1b", "script", "</", "<!--", "]]>", "\u2028", "\u202e",
                        "\U0001f4a3", "é", "\ufffe", "\x80", "::", "x" * 700, "void ", "<int, ", "'); DROP TABLE runs; --"]
            names = ["".join(dice.choice(alphabet) for _ in range(dice.randint(1, 60))) for _ in range(12)]
            with self.subTest(seed=seed + turn):
                self.all_three(self.hostile(names, f"random{turn}"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
