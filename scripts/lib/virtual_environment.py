# SPDX-License-Identifier: MIT
"""Where scripts/setup puts the virtual environment: as scripts/env.sh says it to the shell."""
import os


def virtual_environment():
    """Its folder; beside it are other versions of PyTorch and of Python, and libraries of other machines."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("TSCOPE_VENV") or os.path.join(cache, "tscope", "venv")
