#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of tscope-top --html in a browser while a job runs: top_in_browser.py BUILD [TEST...]."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import at_once  # noqa: E402
import browser  # noqa: E402
from built import built  # noqa: E402
from observed import clean_environment, run  # noqa: E402
from outcomes import wait_until  # noqa: E402
from standin_job import RANKS, STANDING, Watching  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))
TOP = built(BUILD, "tscope-top")
SEEN = "const at = document.querySelector(arguments[0]); return at ? at.textContent : null"


def top(*arguments):
    return run(TOP, "--once", *arguments).stdout


class Page(Watching):
    BUILD = BUILD

    def setUp(self):
        super().setUp()
        self.page = os.path.join(self.folder, "job.html")
        self.browser = browser.Browser()
        self.addCleanup(self.browser.close)

    def until(self, look, test, what):
        def seen():
            try:
                found = look()
            except (RuntimeError, AssertionError):
                return None  # the page is loading, or there is no run yet
            return [found] if found is not None and test(found) else None
        return wait_until(what, seen)[0]

    def follow(self, job):
        """Starts tscope-top, which rewrites the page repeatedly, and opens the page in the browser."""
        program = subprocess.Popen([TOP, "--html", self.page, "--interval", "0.5", job.traces],
                                   env=clean_environment(LC_ALL="C.UTF-8"))
        self.addCleanup(lambda: (program.kill(), program.wait()))
        self.until(lambda: os.path.exists(self.page), bool, "the page")
        self.browser.open(self.page)
        return program

    def shown(self, selector):
        return self.browser.run(SEEN, selector)

    def test_it_shows_what_the_terminal_shows(self):
        job = self.job(TSCOPE_STALL="2", command=STANDING)
        of_all = (f"{RANKS} ranks stall", "ranks 0-3 .* reader_13", r"rank 1 +\S*standing_rank\.py:\d+ save",
                  "ranks 0, 2, 3 .* wait_for_others")
        self.until(lambda: top("--width", "1000", job.traces), lambda text: all(re.search(one, text) for one in of_all),
                   "stacks of all ranks")
        top("--html", self.page, "--interval", "3600", job.traces)
        self.browser.open(self.page)
        text = top("--width", "1000", job.traces)
        tree = self.shown(".tree")
        self.assertRegex(tree, r"rank 1 +\S*standing_rank\.py:\d+ save")
        self.assertIn(tree.strip().splitlines()[-1].strip(), text)
        rows = self.browser.run("return [...document.querySelectorAll('tbody tr')].map(row => row.cells[0].textContent)")
        self.assertEqual(rows, [str(rank) for rank in range(RANKS)])
        self.assertEqual(self.browser.logs(), [])
        self.assertEqual(self.browser.requests(), [])

    def test_it_follows_the_job_and_shows_when_it_does_not(self):
        job = self.job("--steps", "100000", "--slow-rank", "2", "--marks", "1")
        program = self.follow(job)
        step = lambda: int(re.match(r"step (\d+)", self.browser.run("return document.title"))[1])
        first = self.until(step_or_none(step), lambda n: n > 10, "a step")
        self.until(step_or_none(step), lambda n: n > first + 100, "that the page goes on")
        self.assertEqual(self.browser.run("return document.getElementById('old').hidden"), True)
        program.kill()
        program.wait()
        self.until(lambda: self.browser.run("return document.getElementById('old').hidden"),
                   lambda hidden: hidden is False, "that the page is old")
        self.assertIn("tscope-top no longer runs", self.shown("#old"))

    def test_sorting_is_kept_when_the_page_loads_itself(self):
        job = self.job("--steps", "100000", "--slow-rank", "2", "--marks", "1")
        self.follow(job)
        first = lambda: self.shown("tbody tr td")
        late = "[...document.querySelectorAll('th')].findIndex(heading => heading.textContent === 'late')"
        self.until(lambda: self.browser.run(f"const at = document.querySelectorAll('th')[{late}]; "
                                            "at.querySelector('button').click(); return at.getAttribute('aria-sort')"),
                   lambda sort: sort == "descending", "that it is sorted")
        self.until(first, lambda rank: rank == "2", "the slow rank first")
        written = self.browser.run("return document.body.dataset.written")
        self.until(lambda: self.browser.run("return document.body.dataset.written"), lambda now: now != written,
                   "the page written anew")
        self.until(first, lambda rank: rank == "2", "the slow rank first, still")

    def test_names_of_the_job_are_escaped(self):
        name = "<b id=\"bad\">x&amp;'<script>alert(1)<.py"
        script = shutil.copy(STANDING[1], os.path.join(self.folder, name))
        job = self.job(TSCOPE_STALL="2", command=[STANDING[0], script])
        self.until(lambda: top("--width", "160", job.traces), lambda text: f"{RANKS} ranks stall" in text and
                   "reader_13" in text, "stalls of all ranks")
        top("--html", self.page, "--interval", "3600", job.traces)
        self.browser.open(self.page)
        self.assertIn(name, self.shown(".tree"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('b, main script').length"), 0)
        self.assertEqual(self.browser.logs(), [])

    def test_the_page_of_an_ended_job_is_not_old(self):
        job = self.job("--steps", "30")
        for rank in job.ranks:
            rank.wait()
        top("--html", self.page, "--interval", "0.2", job.traces)
        self.browser.open(self.page)
        self.assertEqual(self.browser.run("return document.body.dataset.over"), "yes")
        loads = "return performance.timeOrigin"
        begin = self.browser.run(loads)
        self.until(lambda: self.browser.run(loads), lambda at: at > begin + 2000, "that the page was loaded again")
        self.assertEqual(self.browser.run("return document.getElementById('old').hidden"), True)


def step_or_none(step):
    def look():
        try:
            return step()
        except TypeError:
            return None  # no step yet
    return look


if __name__ == "__main__":
    browser.need()
    at_once.main(2)
