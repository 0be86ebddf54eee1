# SPDX-License-Identifier: MIT
"""Reports in the formats and places of others: Parquet, Weights & Biases, MLflow. The module `libtscope` offers these
functions; each needs its package only when it is called."""
import importlib
import os
import re
from typing import Any, Dict, Iterator, List, Optional

import libtscope

ROWS = 65536  # of a group of rows, which is what a reader takes at once

# What is worth a curve or a column over many runs, by its path in the report.
FIGURES = ("steps.median_ms", "steps.p95_ms", "steps.cv", "overlap.comm_ms", "overlap.exposed_ms", "overlap.exposed_fraction",
           "budget.mfu", "budget.hfu", "distributed.imbalance_cv", "distributed.wall_frac_lost_to_imbalance",
           "gpu_timeline.busy_fraction", "memory.peak_allocated_bytes", "memory.peak_reserved_bytes", "run.duration_s")


def figures(report: Dict[str, Any]) -> Dict[str, float]:
    """The figures of a report that are known, by name, and how many findings there are of each severity."""
    known = {}
    for path in FIGURES:
        value: Any = report
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, (int, float)):
            known["tscope/" + path.replace(".", "/")] = float(value)
    for severity in ("critical", "warning", "info"):
        known[f"tscope/findings/{severity}"] = float(sum(f["severity"] == severity for f in report["findings"]))
    return known


def _batches(cursor: Any, schema: Any, run: str) -> Iterator[Any]:
    pyarrow: Any = importlib.import_module("pyarrow")
    while True:
        rows: List[Any] = cursor.fetchmany(ROWS)
        if not rows:
            return
        columns = [pyarrow.array([run] * len(rows), pyarrow.string())]
        columns += [pyarrow.array(values, field.type) for values, field in zip(zip(*rows), list(schema)[1:])]
        yield pyarrow.record_batch(columns, schema=schema)


def parquet(folder: "libtscope.Path", *paths: "libtscope.Path", run: Optional[str] = None) -> List[str]:
    """Writes each table of the report on `paths` to FOLDER/TABLE/RUN.parquet, with the run's name in a first column
    `run_id`, so that many runs can be read together. Returns the files. Needs pyarrow."""
    pyarrow: Any = importlib.import_module("pyarrow")
    writers: Any = importlib.import_module("pyarrow.parquet")
    types = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "TEXT": pyarrow.string(), "BLOB": pyarrow.binary()}
    written = []
    tables = libtscope.tables(*paths, run=run)
    try:
        name = next(iter(tables.execute("SELECT name FROM runs")), (None,))[0] or run or "run"
        for table, in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = tables.execute(f'PRAGMA table_info("{table}")').fetchall()
            schema = pyarrow.schema([("run_id", pyarrow.string())] +
                                    [(column[1], types.get(column[2].upper(), pyarrow.string())) for column in columns])
            place = os.path.join(os.fspath(folder), table)
            os.makedirs(place, exist_ok=True)
            file = os.path.join(place, re.sub(r"[^\w.-]", "_", name) + ".parquet")
            with writers.ParquetWriter(file, schema) as writer:
                for batch in _batches(tables.execute(f'SELECT * FROM "{table}"'), schema, name):
                    writer.write_batch(batch)
            written.append(file)
    finally:
        tables.close()
    return written


def log_to_wandb(wandb_run: Any, *paths: "libtscope.Path", run: Optional[str] = None) -> None:
    """Adds the figures of the report on `paths` to the summary of a run of Weights & Biases, and its page."""
    wandb: Any = importlib.import_module("wandb")
    wandb_run.summary.update(figures(libtscope.report(*paths, run=run)))
    wandb_run.log({"tscope": wandb.Html(libtscope.show(*paths, run=run).html)})


def log_to_mlflow(*paths: "libtscope.Path", run: Optional[str] = None) -> None:
    """Adds the figures of the report on `paths` to the active run of MLflow as metrics, and its page as an artifact."""
    mlflow: Any = importlib.import_module("mlflow")
    mlflow.log_metrics(figures(libtscope.report(*paths, run=run)))
    mlflow.log_text(libtscope.show(*paths, run=run).html, "tscope.html")
