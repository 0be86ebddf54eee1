# SPDX-License-Identifier: MIT
"""A fixture for pytest that profiles a command and judges its report. In conftest.py:

    pytest_plugins = ["libtscope.pytest_plugin"]
"""
import importlib
import os
import pathlib
import shlex
import signal
import subprocess
from typing import Any, Dict, List, Optional

import libtscope

pytest: Any = importlib.import_module("pytest")


def _ending(code: int) -> str:
    return f"status {code}" if code > 0 else f"signal {-code} ({signal.Signals(-code).name})"


class Profiled:
    """Runs commands under tscope, in one folder of traces, and judges them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.traces = folder

    def run(self, command: List[str], timeout: Optional[float] = None, **options: Any) -> Dict[str, Any]:
        """Runs a command and everything that it launches, fails if that fails, and returns the report."""
        done = subprocess.run([libtscope.program("tscope-run"), "--quiet", "--dir", os.fspath(self.traces), "--", *command],
                              check=False, timeout=timeout, **options)
        __tracebackhide__ = True  # what failed is the command, at the line of the test
        if done.returncode:
            raise AssertionError(f"{shlex.join(command)} ended with {_ending(done.returncode)}")
        try:
            return libtscope.report(self.traces)
        except libtscope.TscopeError as error:
            why = str(error)
        raise AssertionError(f"{shlex.join(command)} left no report: {why}")

    def check(self, *rules: str) -> None:
        """Fails unless the newest run follows each rule of docs/gate.md, such as "fail-on critical:DIST"."""
        options = [word for rule in rules for word in ("--" + rule.split(maxsplit=1)[0], rule.split(maxsplit=1)[1])]
        done = subprocess.run([libtscope.program("tscope-report"), *options, "--output", os.devnull, os.fspath(self.traces)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        __tracebackhide__ = True  # what failed is the line of the test
        if done.returncode:
            raise AssertionError(done.stderr.strip())


def _profiled(tmp_path: pathlib.Path) -> Profiled:
    """tscope.run(COMMAND) returns the report; tscope.check(RULE...) fails with the gate's reasons."""
    folder = tmp_path / "tscope"
    folder.mkdir(mode=0o700)
    return Profiled(folder)


tscope = pytest.fixture(name="tscope")(_profiled)
