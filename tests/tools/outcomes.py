# SPDX-License-Identifier: MIT
"""How a test ends: what it expects, what it waits for, and why it cannot run here."""
import time

SKIPPED = 77  # what meson takes for a test that cannot run


class Skip(SystemExit):
    """Raised where a test cannot run on this machine: it ends as skipped, and says why."""

    def __init__(self, why):
        print(f"skipped: {why}", flush=True)
        super().__init__(SKIPPED)


def expect(condition, *what):
    if not condition:
        raise AssertionError(*what)


def wait_until(what, look, seconds=120, each=0.05):
    """What look() returns once that is true."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(each)
    return found
