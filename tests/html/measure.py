#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how large a page is, and how fast it opens and zooms: measure.py TSCOPE-REPORT PATH... Checks nothing.

CPU time is that of the page's own thread, because other processes of the machine do not change it."""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import browser  # noqa: E402
from observed import run  # noqa: E402

# Zooms and pans the first picture for two seconds, with a change in each frame.
ZOOM = """
const canvas = document.querySelector(arguments[0]), done = arguments[arguments.length - 1];
canvas.scrollIntoView({block: 'center'});
canvas.focus();
const keys = ['+', '+', 'd', 'd', '-', 'a', '-', 'a'];
let frames = 0, worst = 0, begin = 0, last = 0;
function next(now) {
  if (!begin) begin = now;
  else worst = Math.max(worst, now - last);
  last = now;
  if (now - begin > 2000) return done([frames / ((now - begin) / 1000), worst]);
  canvas.dispatchEvent(new KeyboardEvent('keydown', {key: keys[frames % keys.length], bubbles: true}));
  frames++;
  requestAnimationFrame(next);
}
requestAnimationFrame(next);
"""


def main():
    report, *paths = sys.argv[1:]
    browser.need()
    with tempfile.TemporaryDirectory(prefix="tscope-measure-") as folder:
        page = os.path.join(folder, "page.html")
        begin = time.monotonic()
        run(report, "--format", "html", "--output", page, *paths)
        print(f"written in {time.monotonic() - begin:.2f} s, {os.path.getsize(page):,} bytes")
        with browser.Browser(still=False) as chromium:
            chromium.do("POST", "/timeouts", {"script": 60000})
            for _ in range(5):
                chromium.command("Performance.enable", timeDomain="threadTicks")
                took = chromium.open(page)
                spent = metrics(chromium)
                print(f"ready {took:.2f} s after it was asked for; CPU {spent['TaskDuration']:.2f} s (script "
                      f"{spent['ScriptDuration']:.2f}, layout "
                      f"{spent['LayoutDuration'] + spent['RecalcStyleDuration']:.2f})")
            for canvas in ("canvas.strip", "canvas.heat", "canvas.timeline"):
                if chromium.run("return document.querySelectorAll(arguments[0]).length", canvas):
                    before = metrics(chromium)["TaskDuration"]
                    rate, worst = chromium.wait_run(ZOOM, canvas)
                    each = (metrics(chromium)["TaskDuration"] - before) / (2 * rate)
                    print(f"{canvas}: {rate:.0f} frames a second while zooming, the slowest took {worst:.0f} ms; "
                          f"CPU {1e3 * each:.1f} ms a frame")


def metrics(chromium):
    return {one["name"]: one["value"] for one in chromium.command("Performance.getMetrics")["metrics"]}


if __name__ == "__main__":
    main()
