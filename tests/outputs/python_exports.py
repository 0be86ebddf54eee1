#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the module libtscope hands to other programs, read as they read it: Parquet by DuckDB and pandas, a run of W&B and
of MLflow (offline), and the fixture for pytest: python_exports.py BUILD-FOLDER SOURCE [CLASS]. Ends with 77 if all
tests were skipped."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = sys.argv[1:3]
PACKAGE = os.path.join(SOURCE, "scripts", "packaging", "python")
sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = PACKAGE
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import libtscope  # noqa: E402
from built import built, programs_of, standins_of  # noqa: E402
from in_folder import InOneFolder  # noqa: E402
from observed import clean_environment, run  # noqa: E402
from outcomes import SKIPPED  # noqa: E402

TRACEGEN, TRAIN = built(BUILD, "tracegen"), built(BUILD, "train")
os.environ["PATH"] = programs_of(BUILD) + os.pathsep + os.environ["PATH"]


def needs(*names):
    missing = [name for name in names if not importlib.util.find_spec(name)]
    return unittest.skipIf(missing, f"no {' and no '.join(missing)} in this Python: scripts/setup test, or long, installs them")


class WithTwoRuns(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, options in (("one", ["--slow-rank", "1", "--slow-factor", "3"]), ("two", [])):
            run(TRACEGEN, "--run", name, "--ranks", "2", "--steps", "30", "--phases", *options, os.path.join(cls.folder, name))


class Scalars(unittest.TestCase):
    def values(self, program):
        with tempfile.TemporaryDirectory(prefix="tscope-scalars-") as folder:
            run("tscope-run", "--quiet", "--dir", folder, "--", sys.executable, "-c", f"import libtscope\n{program}")
            series = libtscope.report(folder)["convergence"]["series"]
            return {one["name"]: list(zip(one["step"], one["value"])) for one in series}

    def test_a_job_that_marks_no_step_counts_the_values_of_each_name(self):
        found = self.values("for i in range(40):\n  libtscope.scalar('loss', 80 - i); libtscope.scalar('lr', i + 1)")
        self.assertEqual(found, {"loss": [(i, 80 - i) for i in range(40)], "lr": [(i, i + 1) for i in range(40)]})

    def test_numbers_of_any_name_are_shown(self):
        found = self.values("for i in range(9):\n  libtscope.step(); libtscope.scalar('tokens', 2 * i)\n"
                            "  [libtscope.scalar(f'n{k:02}', i) for k in range(20)]")
        self.assertEqual(sorted(found), [f"n{k:02}" for k in range(16)])
        self.assertEqual(self.values("libtscope.scalar('tokens', 7, 3)"), {"tokens": [(3, 7)]})

    def test_marked_and_given_steps(self):
        found = self.values("for i in range(20):\n  libtscope.step(); libtscope.scalar('loss', 9 + i)\n"
                            "  libtscope.scalar('lr', i + 1, 100 + i)")
        self.assertEqual(found, {"loss": [(i, 9 + i) for i in range(20)], "lr": [(100 + i, i + 1) for i in range(20)]})


class Exports(WithTwoRuns):
    @needs("pyarrow", "duckdb", "pandas")
    def test_parquet_of_two_runs_is_what_sqlite_has(self):
        import duckdb
        import pandas
        lake = self.path("lake")
        for name in ("one", "two"):
            self.assertGreater(len(libtscope.parquet(lake, self.path(name))), 20)
        for name in ("one", "two"):
            tables = libtscope.tables(self.path(name))
            for table, in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                count = tables.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                files = os.path.join(lake, table, "*.parquet")
                found = duckdb.sql(f"SELECT count(*) FROM '{files}' WHERE run_id = '{name}'").fetchall()[0][0]
                self.assertEqual(found, count, table)
                frame = pandas.read_parquet(os.path.join(lake, table, name + ".parquet"))
                self.assertEqual(len(frame), count)
            expected = tables.execute("SELECT rank, step, begin_ns, end_ns FROM steps ORDER BY 1, 2").fetchall()
            frame = pandas.read_parquet(os.path.join(lake, "steps", name + ".parquet")).sort_values(["rank", "step"])
            self.assertEqual(list(frame[["rank", "step", "begin_ns", "end_ns"]].itertuples(index=False, name=None)), expected)
            tables.close()

    @needs("pytest")
    def test_pytest_profiles_a_test_and_judges_it(self):
        project = self.path("project")
        os.mkdir(project)
        with open(os.path.join(project, "conftest.py"), "w", encoding="utf-8") as file:
            file.write('pytest_plugins = ["libtscope.pytest_plugin"]\n')
        with open(os.path.join(project, "test_speed.py"), "w", encoding="utf-8") as file:
            file.write(f"COMMAND = [{TRAIN!r}, '--ranks', '2', '--steps', '30', '--slow-rank', '1', '--slow-factor', '3']\n"
                       "def test_good(tscope):\n"
                       "    assert tscope.run(COMMAND)['steps']['count'] == 30\n"
                       "    tscope.check('fail-on critical:MEMORY', 'expect steps.count >= 30')\n"
                       "def test_bad(tscope):\n"
                       "    tscope.run(COMMAND)\n"
                       "    tscope.check('fail-on warning:DIST.STRAGGLER')\n"
                       "def test_exit(tscope):\n"
                       "    tscope.run(['sh', '-c', 'exit 3'])\n"
                       "def test_kill(tscope):\n"
                       "    tscope.run(['sh', '-c', 'kill -9 $$'])\n"
                       "def test_no_training(tscope):\n"
                       "    tscope.run(['echo', 'hello'])\n")
        env = clean_environment(LD_LIBRARY_PATH=standins_of(BUILD))
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", project], env=env,
                              capture_output=True, text=True, timeout=120)
        self.assertIn("4 failed, 1 passed", done.stdout, done.stdout + done.stderr)
        self.assertIn("sh -c 'exit 3' ended with status 3", done.stdout)
        self.assertIn("sh -c 'kill -9 $$' ended with signal 9 (SIGKILL)", done.stdout)
        self.assertRegex(done.stdout, "echo hello left no report: .*no traces")
        for file in ("subprocess.py", "libtscope/__init__.py"):
            self.assertNotIn(file, done.stdout)
        self.assertRegex(done.stdout, "gate: FAILED  .*DIST.STRAGGLER: Rank 1")


class Trackers(WithTwoRuns):
    @needs("wandb")
    def test_a_run_of_wandb_gets_summary_and_page(self):
        import wandb
        os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=self.folder)
        run = wandb.init(project="tscope", dir=self.folder)
        libtscope.log_to_wandb(run, self.path("one"))
        median = libtscope.report(self.path("one"))["steps"]["median_ms"]
        self.assertEqual(run.summary["tscope/steps/median_ms"], median)
        self.assertGreaterEqual(run.summary["tscope/findings/critical"], 1)
        run.finish()
        pages = [name for _, _, names in os.walk(self.folder) for name in names if name.endswith(".html")]
        self.assertGreaterEqual(len(pages), 1)

    @needs("mlflow")
    def test_a_run_of_mlflow_gets_metrics_and_page(self):
        import mlflow
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        mlflow.set_tracking_uri("file://" + self.path("mlruns"))
        with mlflow.start_run() as run:
            libtscope.log_to_mlflow(self.path("one"))
        found = mlflow.get_run(run.info.run_id).data.metrics
        self.assertEqual(found["tscope/steps/median_ms"], libtscope.report(self.path("one"))["steps"]["median_ms"])
        pages = [name for _, _, names in os.walk(self.path("mlruns")) for name in names if name == "tscope.html"]
        self.assertEqual(len(pages), 1)


if __name__ == "__main__":
    ran = unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2, exit=False).result
    sys.exit(1 if not ran.wasSuccessful() else SKIPPED if len(ran.skipped) == ran.testsRun else 0)
