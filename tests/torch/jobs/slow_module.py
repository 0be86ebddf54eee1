# SPDX-License-Identifier: MIT
"""A module that takes long to load (slow_calls_job.py)."""
import time

SECONDS = globals().get("SECONDS", 0)
time.sleep(SECONDS)  # slow: import
