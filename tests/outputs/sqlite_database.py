#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--format sqlite: compares the database with what tracegen had to write, and tries every question of
docs/outputs/sqlite.md: sqlite_database.py TSCOPE-REPORT TRACEGEN DOCS."""
import collections
import glob
import os
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from in_folder import InOneFolder  # noqa: E402
import observed  # noqa: E402
import profiler_file  # noqa: E402

REPORT, TRACEGEN, DOCS = sys.argv[1:4]
RANKS, STEPS, BUCKETS, KERNELS, SLOW = 4, 30, 4, 5, 2
WORK = 1 + 2 * BUCKETS * KERNELS + 1 + BUCKETS  # in a step: a copy, kernels, the optimizer, all-reduces
PAGE = open(os.path.join(DOCS, "outputs", "sqlite.md"), encoding="utf-8").read()


def run(*arguments):
    return observed.run(REPORT, *arguments, ok=None)


class Databases(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.common = common = ["--ranks", str(RANKS), "--steps", str(STEPS), "--phases", "--skew"]
        cls.slow = cls.tracegen("slow", *common, "--slow-rank", str(SLOW), "--slow-factor", "1.4")
        cls.even = cls.tracegen("even", *common, "--data-ns", "1000")
        cls.db = cls.write("slow.db", cls.slow)
        cls.both = cls.write("both.db", "diff", cls.even, cls.slow)

    @classmethod
    def tracegen(cls, name, *options):
        observed.run(TRACEGEN, *options, cls.path(name))
        return cls.path(name)

    @classmethod
    def write(cls, name, *arguments):
        observed.run(REPORT, *arguments, "--format", "sqlite", "--output", cls.path(name))
        db = sqlite3.connect("file:%s?mode=ro" % cls.path(name), uri=True)
        db.row_factory = sqlite3.Row
        return db

    def ask(self, sql, db=None):
        return [tuple(row) for row in (db or self.db).execute(sql)]


class Tables(Databases):
    def test_all_that_ran_is_there(self):
        steps = self.ask("SELECT count(DISTINCT step) FROM steps")[0][0]
        self.assertGreater(steps, STEPS - 3)
        self.assertEqual(self.ask("SELECT count(*) FROM left_out"), [(0,)])
        each = self.ask("SELECT DISTINCT count(*) FROM gpu_work WHERE step BETWEEN 5 AND 20 GROUP BY rank, step")
        self.assertEqual(each, [(WORK,)])
        kinds = dict(self.ask("SELECT kind, count(*) FROM gpu_work WHERE step = 7 AND rank = 1 GROUP BY kind"))
        self.assertEqual(kinds, {"copy": 1, "kernel": WORK - 1 - BUCKETS, "collective": BUCKETS})
        self.assertEqual(self.ask("SELECT DISTINCT bytes FROM gpu_work WHERE kind = 'copy'"), [(1 << 20,)])
        self.assertEqual(self.ask("SELECT count(*) FROM launches WHERE step = 7"), [(RANKS * WORK,)])

    def test_collectives_have_their_members(self):
        self.assertEqual(self.ask("SELECT count(*) FROM collectives"), [(BUCKETS * STEPS,)])
        self.assertEqual(self.ask("SELECT count(*) FROM members"), [(RANKS * BUCKETS * STEPS,)])
        self.assertEqual(self.ask("SELECT DISTINCT op, dtype, complete, mismatched FROM collectives"),
                         [("all_reduce", "float32", 1, 0)])
        self.assertEqual(sorted(self.ask("SELECT DISTINCT bytes FROM collectives")), [(4_000_000,), (16_000_000,)])
        wrong = self.ask("SELECT count(*) FROM members WHERE wait_ns + transfer_ns <> end_ns - begin_ns")
        self.assertEqual(wrong, [(0,)])
        # The work of a member has the same rank, run and collective as the member.
        self.assertEqual(self.ask("SELECT count(*) FROM gpu_work w JOIN members m USING (run, rank, collective)"
                                  " WHERE w.begin_ns <> m.begin_ns OR w.end_ns <> m.end_ns"), [(0,)])

    def test_figures_are_those_of_the_report(self):
        report = observed.json_of(REPORT, self.slow)
        self.assertEqual(self.ask("SELECT title, evidence, action FROM findings ORDER BY finding"),
                         [(one["title"], one["evidence"], one["action"]) for one in report["findings"]])
        median = self.ask("SELECT step_median_ns FROM runs")[0][0]
        self.assertAlmostEqual(median / 1e6, report["steps"]["median_ms"], places=4)
        kernels = {one["short_name"] if "short_name" in one else one["name"]: one
                   for one in report["kernels"]["by_name"]} if "by_name" in report.get("kernels", {}) else None
        if kernels:
            for name, total in self.ask("SELECT name, total_ns FROM kernels"):
                self.assertAlmostEqual(total / 1e6, kernels[name]["sum_ms"], places=3)

    def test_who_came_last_is_as_in_the_report(self):
        for number, trace in enumerate((self.even, self.slow), 1):
            last = dict(self.ask("SELECT last_rank, count(*) FROM collectives WHERE run = %d AND step IN (SELECT step"
                                 " FROM steps WHERE run = %d AND NOT warmup) GROUP BY last_rank" % (number, number),
                                 self.both))
            for one in observed.json_of(REPORT, trace)["distributed"]["ranks"]:
                self.assertEqual(last.get(one["rank"], 0), one["last_collectives"], (number, one))

    def test_the_critical_path_has_no_gaps(self):
        rows = self.ask("SELECT step, begin_ns, end_ns FROM critical_path ORDER BY step, begin_ns")
        for before, after in zip(rows, rows[1:]):
            if before[0] == after[0]:
                self.assertEqual(before[2], after[1])

    def test_steps_and_ranks_are_chosen(self):
        db = self.write("some.db", "--steps", "5:6", "--ranks", "1-2", self.slow)
        self.assertEqual(self.ask("SELECT DISTINCT rank, step FROM gpu_work ORDER BY 1, 2", db),
                         [(1, 5), (1, 6), (2, 5), (2, 6)])
        self.assertEqual(self.ask("SELECT rank FROM ranks WHERE shown ORDER BY 1", db), [(1,), (2,)])
        self.assertEqual(self.ask("SELECT count(*) FROM ranks", db), [(RANKS,)])

    def test_omissions_are_reported(self):
        db = self.write("small.db", "--limit", "100k", self.slow)
        self.assertIn("--steps selects others", " ".join(row[0] for row in self.ask("SELECT what FROM left_out", db)))
        self.assertIn((SLOW,), self.ask("SELECT DISTINCT rank FROM gpu_work", db))

    def test_two_runs_in_one(self):
        self.assertEqual(self.ask("SELECT run, ranks FROM runs", self.both), [(1, RANKS), (2, RANKS)])
        for table in ("collectives", "gpu_work", "steps", "members"):
            counts = dict(self.ask("SELECT run, count(*) FROM %s GROUP BY run" % table, self.both))
            self.assertEqual(set(counts), {1, 2}, table)
        mixed = self.ask("SELECT count(*) FROM members m JOIN collectives c USING (collective) WHERE m.run <> c.run",
                         self.both)
        self.assertEqual(mixed, [(0,)])

    def test_several_runs_of_each_side(self):
        again = self.tracegen("again", *self.common, "--data-ns", "1100", "--realtime", "1700000001000000000")
        slow = self.tracegen("slow again", *self.common, "--slow-rank", "1", "--realtime", "1700000002000000000")
        several = self.write("several.db", "diff", self.even, again, "--", slow)
        self.assertEqual(self.ask("SELECT run FROM runs ORDER BY run", several), [(1,), (2,), (3,)])

    def test_it_is_whole(self):
        for db in (self.db, self.both):
            self.assertEqual(self.ask("PRAGMA integrity_check", db), [("ok",)])
        self.assertEqual(glob.glob(self.path("*.db.*")), [])
        self.assertEqual(self.ask("PRAGMA user_version"), [(1,)])

    def test_no_file_without_a_place(self):
        done = run("--format", "sqlite", self.slow)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--output", done.stderr)

    def test_hostile_names(self):
        names = ["a" * 1_000_000, "'); DROP TABLE runs; --", "\u202e", "bad \udcff \\u0000"]
        profiler_file.write(self.path("hostile.json"), rank=0, escaped=False, events=[
            profiler_file.event("kernel", name, 1000 + 10 * index, 5, stream=7, correlation=index + 1)
            for index, name in enumerate(names)])
        db = self.write("hostile.db", self.path("hostile.json"))
        self.assertEqual(self.ask("SELECT count(*) FROM gpu_work", db), [(len(names),)])
        self.assertIn(("'); DROP TABLE runs; --",), self.ask("SELECT whole_name FROM gpu_work", db))


class Questions(Databases):
    """Every question of the page, in the same order."""

    def answers(self, question, db=None):
        for text, sql in re.findall(r"\n([^\n]+\?)\n\n```sql\n(.*?)```", PAGE, re.S):
            if text == question:
                self.tried.add(text)
                cursor = (db or self.db).execute(sql)
                return [dict(row) for row in cursor]
        self.fail("docs/outputs/sqlite.md does not ask: " + question)

    def test_questions(self):
        self.tried = set()
        slow_rank = {"rank": SLOW}
        rows = self.answers("Which steps took longest, and which rank was slowest in each?")
        self.assertEqual(len(rows), 5)
        self.assertEqual(rows, sorted(rows, key=lambda row: -row["ms"]))

        rows = self.answers("Which collectives did rank 2 enter last, and by how much?")
        self.assertEqual({row["op"] for row in rows}, {"all_reduce"})
        self.assertGreater(rows[0]["last_by_us"], 100)

        rows = self.answers("Who keeps the others waiting, and for how long in all?")
        self.assertEqual(rows[0]["last_rank"], SLOW)
        self.assertGreater(rows[0]["ms"], 10 * sum(row["ms"] for row in rows[1:]))

        rows = self.answers("Which work takes the GPUs longest?")
        self.assertIn(rows[0]["name"], ("gemm_backward", "gelu_backward", "norm_backward", "all_reduce",
                                        "gemm_forward", "gelu_forward", "norm_forward"))
        self.assertEqual(rows, sorted(rows, key=lambda row: -row["ms"]))

        # In the second run rank 2 of 4 takes 1.4 times as long: on average a tenth longer.
        rows = self.answers("Which kernels became slower between two runs?", self.both)
        compute = [row["slower"] for row in rows if "gemm" in row["name"]]
        self.assertTrue(compute)
        for slower in compute:
            self.assertAlmostEqual(slower, 0.1, delta=0.01)

        rows = self.answers("When was a GPU idle for long, and what did it wait for?")
        self.assertGreater(rows[0]["idle_us"], 100)  # each step waits 300 us for input

        rows = self.answers("Which work came late after its launch?")
        self.assertEqual(len(rows), 20)
        self.assertGreater(rows[0]["delay_us"], 0)

        rows = self.answers("How fast are collectives, by operation and size?")
        self.assertEqual([(row["bytes"], row["times"]) for row in rows],
                         [(16_000_000, (BUCKETS - 1) * STEPS), (4_000_000, STEPS)])
        for row in rows:  # nccl-tests: 2 (n - 1) / n x size / time
            self.assertAlmostEqual(row["busbw_gbps"], 2 * (RANKS - 1) / RANKS * row["bytes"] / row["us"] / 1e3,
                                   delta=0.02 * row["busbw_gbps"])

        rows = self.answers("What lies on the critical path?")
        by_rank = collections.Counter()
        for row in rows:
            by_rank[row["rank"]] += row["ms"]
        self.assertEqual(by_rank.most_common(1)[0][0], SLOW)

        rows = self.answers("How long does each rank spend in each phase of a step?")
        self.assertEqual([row["rank"] for row in rows], list(range(RANKS)))
        for row in rows:
            self.assertAlmostEqual(row["data_ms"], 0.3, delta=0.02)

        self.assertEqual(self.answers("When did each rank hold most memory?"), [])  # tracegen writes none
        self.assertEqual(self.answers("Who sends how much to whom?"), [])  # nor messages
        self.assertEqual(self.answers("At which lines of the program does the host wait, and for how long in a step?"),
                         [])  # nor lines: see tests/torch/lines.py
        self.assertEqual(self.tried, set(re.findall(r"\n([^\n]+\?)\n\n```sql", PAGE)))


class Page(Databases):
    def test_the_page_names_every_table_and_column(self):
        documented = collections.defaultdict(dict)
        table = None
        for line in PAGE.splitlines():
            heading = re.match(r"\*\*`(\w+)`\*\*: (.*)\.$", line)
            row = re.match(r"\| `(\w+)` \| (.*) \|$", line)
            if heading:
                table = heading[1]
                documented[table][None] = heading[2]
            elif line.startswith("## Views"):
                table = "views"
            elif row and table == "views":
                documented[row[1]][None] = row[2]
            elif row and table:
                documented[table][row[1]] = row[2]
        in_database = collections.defaultdict(dict)
        for name, column, what in self.ask("SELECT object, column_name, what FROM documentation"):
            in_database[name][column] = what
        self.assertEqual(documented, in_database)
        for name in in_database:
            columns = {row[1] for row in self.ask("PRAGMA table_info(%s)" % name)}
            if None in in_database[name] and len(in_database[name]) > 1:
                self.assertEqual(columns, set(in_database[name]) - {None})


class OtherReaders(Databases):
    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas: scripts/setup test")
        frame = pandas.read_sql("SELECT rank, took_ns FROM gpu_work WHERE step = 7", self.db)
        self.assertEqual(len(frame), RANKS * WORK)

    def test_duckdb(self):
        try:
            import duckdb
        except ImportError:
            self.skipTest("no duckdb: scripts/setup test")
        connection = duckdb.connect()
        try:
            connection.execute("LOAD sqlite")
            connection.execute("ATTACH '%s' AS run (TYPE sqlite, READ_ONLY); USE run" % self.path("slow.db"))
        except duckdb.Error as why:
            # DuckDB downloads its reader of SQLite from its own server; if it cannot, it gets the tables through
            # pandas.
            print("\nDuckDB's own reader of SQLite is not here: %s" % str(why).splitlines()[0])
            self.copy_tables(connection)
        rows = connection.execute("SELECT count(*) FROM gpu_work WHERE step = 7").fetchall()
        self.assertEqual(rows, [(RANKS * WORK,)])
        sql = re.search(r"Which work takes the GPUs longest\?\n\n```sql\n(.*?)```", PAGE, re.S)[1]
        result = {row[0]: row[2:4] for row in connection.execute(sql).fetchall()}
        self.assertEqual(result, {row[0]: row[2:4] for row in self.ask(sql)})

    def copy_tables(self, connection):
        try:
            import pandas
        except ImportError:
            self.skipTest("neither DuckDB's reader of SQLite nor pandas: scripts/setup test")
        names = [name for name, in self.ask("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        for name in names:
            connection.register(name, pandas.read_sql("SELECT * FROM %s" % name, self.db))
        self.assertGreater(len(names), 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
