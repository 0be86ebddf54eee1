# SPDX-License-Identifier: MIT
"""tscope from Python: read reports, and mark steps and ranges of a job.

    import libtscope

    libtscope.report("/tmp/tscope")["steps"]      # the report of the newest run, as a dict
    libtscope.tables("/tmp/tscope")               # the same and all calls, as tables of SQLite
    libtscope.show("/tmp/tscope")                 # the page, in a notebook's cell

    for number, batch in enumerate(batches):      # in the job: never needed, and does nothing
        libtscope.step(number)                    # where tscope is not loaded
        with libtscope.range("data"):
            ...

docs/python.md says more. Nothing but Python's own library is needed.
"""
import contextlib
import ctypes
import html
import importlib.metadata
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Union

__all__ = ["Page", "TscopeError", "log_to_mlflow", "log_to_wandb", "parquet", "program", "range", "report", "scalar", "show",
           "step", "tables"]

Path = Union[str, "os.PathLike[str]"]


class TscopeError(RuntimeError):
    """The message of tscope-report when it failed."""


def program(name: str) -> str:
    """The path of the program `name` of this installation: "tscope", "tscope-run", "tscope-report"."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("libtscope") or []:
            path = os.path.realpath(str(file.locate()))
            if file.name == name and os.access(path, os.X_OK):
                return path
    found = shutil.which(name)
    if not found:
        raise TscopeError(f"{name} is not there; is tscope installed completely, or PATH too short?")
    return found


def _report(arguments: List[str], paths: "tuple[Path, ...]", run: Optional[str]) -> bytes:
    if not paths:
        raise TypeError("which traces? give their directory")
    command = [program("tscope-report"), *arguments, *(["--run", run] if run else []),
               "--", *(os.fspath(path) for path in paths)]
    # If the job itself is watched, the report program must not be recorded.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise TscopeError(done.stderr.decode(errors="replace").strip()
                          or f"tscope-report ended with status {done.returncode}")
    return done.stdout


def report(*paths: Path, run: Optional[str] = None) -> Dict[str, Any]:
    """The report on `paths`, as docs/outputs/report-json.md describes it: the newest run there, or `run`."""
    document: Dict[str, Any] = json.loads(_report(["--format", "json"], paths, run))
    return document


def tables(*paths: Path, run: Optional[str] = None) -> sqlite3.Connection:
    """The report on `paths` and all calls, as tables of a database. It is gone once it is closed."""
    with tempfile.TemporaryDirectory(prefix="tscope-") as folder:
        file = os.path.join(folder, "tables.sqlite")
        _report(["--format", "sqlite", "--output", file], paths, run)
        return sqlite3.connect(file)  # it stays readable although the file is deleted


def parquet(folder: Path, *paths: Path, run: Optional[str] = None) -> List[str]:
    """The tables of the report on `paths` as files FOLDER/TABLE/RUN.parquet, for many runs together. Needs pyarrow."""
    from libtscope import for_others
    return for_others.parquet(folder, *paths, run=run)


def log_to_wandb(wandb_run: Any, *paths: Path, run: Optional[str] = None) -> None:
    """Adds figures and the page of the report on `paths` to a run of Weights & Biases."""
    from libtscope import for_others
    for_others.log_to_wandb(wandb_run, *paths, run=run)


def log_to_mlflow(*paths: Path, run: Optional[str] = None) -> None:
    """Adds figures and the page of the report on `paths` to the active run of MLflow."""
    from libtscope import for_others
    for_others.log_to_mlflow(*paths, run=run)


class Page:
    """The report as one page of HTML. Notebooks show it; elsewhere, `save` it for a browser."""

    def __init__(self, text: str) -> None:
        self.html = text

    def save(self, path: Path) -> str:
        """Writes the page to the file `path`, and returns its full name."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)
        return os.path.abspath(path)

    def _repr_html_(self) -> str:
        # In a frame, so that the page's style and script do not affect the notebook.
        return ('<iframe style="width: 100%; height: 80vh; border: 0" sandbox="allow-scripts" '
                f'srcdoc="{html.escape(self.html)}"></iframe>')

    def __repr__(self) -> str:
        return f"<tscope's page, {len(self.html)} characters; save(PATH) writes it for a browser>"


def show(*paths: Path, run: Optional[str] = None) -> Page:
    """The page of the report on `paths`; as the last thing in a notebook's cell, it is shown."""
    return Page(_report(["--format", "html"], paths, run).decode())


class _Loaded:
    """The functions of tscope.h if libtscope.so was preloaded into this process; else None."""

    def __init__(self) -> None:
        self.step: Any = self._find("tscope_step", ctypes.c_uint64)
        self.scalar: Any = self._find("tscope_scalar", ctypes.c_char_p, ctypes.c_double,
                                      ctypes.c_uint64)
        self.push: Any = self._find("tscope_range_push", ctypes.c_char_p)
        self.pop: Any = self._find("tscope_range_pop")

    @staticmethod
    def _find(name: str, *takes: Any) -> Any:
        function = getattr(ctypes.CDLL(None), name, None)
        if function is not None:
            function.argtypes, function.restype = takes, None
        return function


_loaded = _Loaded()
_next_step = 0
_NO_STEP = 2**64 - 1  # format/records.def: the reader counts the values of a name


def step(number: Optional[int] = None) -> None:
    """Marks the start of training step `number`; without it, of the step after the last marked one."""
    global _next_step
    number = _next_step if number is None else number
    _next_step = number + 1
    if _loaded.step:
        _loaded.step(number)


def scalar(name: str, value: float, number: Optional[int] = None) -> None:
    """Records a value such as a loss, at step `number`; without it, at the last marked step. If no step is marked, the
    values of a name are counted from 0."""
    if _loaded.scalar:
        last = _next_step - 1 if _next_step else _NO_STEP
        _loaded.scalar(name.encode(), float(value), last if number is None else number)


@contextlib.contextmanager
def range(name: str) -> Iterator[None]:  # it is called as libtscope.range
    """`with range("name"):` or `@range("name")`: names what this thread does inside it. Names such as "data",
    "forward", "backward" and "optimizer" are phases of a step."""
    if not _loaded.push:
        yield
        return
    _loaded.push(name.encode())
    try:
        yield
    finally:
        _loaded.pop()
