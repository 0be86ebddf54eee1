# SPDX-License-Identifier: MIT
"""Which Python has PyTorch."""
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "lib"))
from outcomes import Skip  # noqa: E402
from virtual_environment import virtual_environment  # noqa: E402


def python_with_torch():
    """The one that scripts/setup installed; if TSCOPE_TORCH names a version, as 2.15, the one beside it."""
    other = os.environ.get("TSCOPE_TORCH")
    if other:
        beside = os.path.join(os.path.dirname(virtual_environment()), "torch-" + other, "bin", "python3")
        return beside if os.path.exists(beside) else None
    for python in (sys.executable, os.path.join(virtual_environment(), "bin", "python3"), "python3"):
        question = "import importlib.metadata as m; print(m.version('torch'))"
        try:
            answer = subprocess.run([python, "-c", question], capture_output=True, text=True)
        except OSError:
            continue
        if answer.returncode == 0 and answer.stdout.startswith("2."):
            return python
    return None


def python_or_skip():
    python = python_with_torch()
    if not python:
        raise Skip(f"no Python with PyTorch {os.environ.get('TSCOPE_TORCH', '2')}; scripts/setup test installs one")
    return python
