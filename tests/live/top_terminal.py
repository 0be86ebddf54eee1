#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tscope-top in a terminal of tmux, while a job of the stand-in cluster starts, slows down, hangs and dies:
top_terminal.py BUILD [TEST...]."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import at_once  # noqa: E402
from built import built  # noqa: E402
from observed import clean_environment  # noqa: E402
from outcomes import wait_until  # noqa: E402
from standin_job import STANDING, Watching  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))
TOP = built(BUILD, "tscope-top")
STORY = ("--steps", "100000", "--slow-rank", "2", "--slow-factor", "3", "--slow-from", "120", "--fault", "1",
         "--fault-rank", "1", "--fault-step", "320", "--marks", "1")


class Terminal:
    """A shell in a window of tmux, which has its own server."""
    def __init__(self, folder, columns, lines, **variables):
        self.socket = os.path.join(folder, f"tmux-{time.monotonic_ns()}")
        self.env = clean_environment(LC_ALL="C.UTF-8", PS1="$ ", HOME=folder, **variables)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), "/bin/sh -i")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *words], env=self.env, check=True,
                              capture_output=True, text=True).stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def command(self, text):
        self.tmux("send-keys", "-l", text)
        self.type("Enter")

    def screen(self, *how):
        return self.tmux("capture-pane", "-p", *how)

    def is_on(self, what):
        return self.tmux("display-message", "-p", "#{%s}" % what).strip() == "1"

    def until(self, test, what):
        """Waits until the screen passes the test, and returns it."""
        def seen():
            screen = self.screen()
            return screen if (test(screen) if callable(test) else re.search(test, screen)) else None
        return wait_until(what, seen)

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, check=False, capture_output=True)


def step_of(screen):
    found = re.search(r"^step (\d+)", screen, re.M)
    return int(found[1]) if found else -1


@unittest.skipUnless(shutil.which("tmux"), "no tmux here: scripts/setup test")
class InTerminal(Watching):
    BUILD = BUILD

    def setUp(self):
        super().setUp()
        self.traces = os.path.join(self.folder, "traces")
        os.mkdir(self.traces)

    def terminal(self, columns=80, lines=24, **variables):
        terminal = Terminal(self.folder, columns, lines, **variables)
        self.addCleanup(terminal.end)
        return terminal

    def watch(self, columns, lines):
        terminal = self.terminal(columns, lines)
        terminal.command(f"{TOP} {self.traces}")
        terminal.until("no traces", "that there is nothing yet")
        return terminal

    def check_page(self, terminal, columns, test, what):
        screen = terminal.until(test, what)
        self.assertTrue(screen.startswith("tscope top"), screen)
        self.assertTrue(all(len(line) <= columns for line in screen.splitlines()))
        return screen

    def test_story(self):
        """One job, watched in two terminals: of 80 and of 200 columns."""
        watchers = [(self.watch(80, 24), 80), (self.watch(200, 50), 200)]
        job = self.job(*STORY)
        for terminal, columns in watchers:
            first = self.check_page(terminal, columns, lambda screen: step_of(screen) > 20, "steps of the job that starts")
            self.assertIn("4 running", first)
            self.assertNotIn("!", first.partition("rank doing")[0])
        for terminal, columns in watchers:
            slow = self.check_page(terminal, columns, r"(?m)^ +2 .* \+\d[\d.]* ms", "that rank 2 is late")
            self.assertGreater(step_of(slow), 100)
        hangs = [self.check_page(terminal, columns, r"! rank 1 has not come to all_reduce", "whom the others wait for")
                 for terminal, columns in watchers]
        for hang in hangs:
            self.assertRegex(hang, r"no step for")
            self.assertRegex(hang, r"3 ranks wait for")
            self.assertEqual(len(re.findall(r"waits for rank 1", hang)), 3)
            self.assertRegex(hang, r"(?m)^ +1 +quiet")
            self.assertIn(step_of(hang), (320, 321, 322)) # the hosts are up to two steps ahead of the GPUs
        self.assertNotIn("records", hangs[0].partition("rank doing")[2])
        self.assertRegex(hangs[1], r"called ago +of +records")
        job.send(signal.SIGSTOP, 3)
        for terminal, columns in watchers:
            self.check_page(terminal, columns, r"! rank 3: its process is stopped", "that rank 3 is stopped")
        job.end()
        for terminal, columns in watchers:
            dead = self.check_page(terminal, columns, r"! ranks 0-3: its process is gone", "that all are gone")
            self.assertIn("not running", dead)
            terminal.type("q")
            terminal.until(lambda screen: "tscope top  job" not in screen, "the shell")

    def test_a_new_size_redraws_the_page(self):
        self.job("--steps", "100000")
        terminal = self.terminal(80, 24)
        terminal.command(f"{TOP} {self.traces}")
        terminal.until(r"(?m)^ +3 ", "four ranks")
        terminal.tmux("resize-window", "-x", "200", "-y", "40")
        terminal.until(r"called ago +of", "the columns of a wide page")
        terminal.tmux("resize-window", "-x", "60", "-y", "10")
        narrow = terminal.until(lambda screen: "called ago" not in screen and "of 4 ranks" in screen, "fewer ranks")
        self.assertTrue(narrow.startswith("tscope top"), narrow)
        self.assertLessEqual(len(narrow.splitlines()), 10)

    def test_no_color(self):
        self.job("--steps", "100000")
        for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            terminal = self.terminal(100, 24, **variables)
            terminal.command(f"{TOP} {self.traces}")
            terminal.until(r"(?m)^ +3 .*all_reduce", "four ranks")
            self.assertEqual("\033[" in terminal.screen("-e"), coloured)
            terminal.type("q")
            terminal.end()

    def test_keys(self):
        self.job("--steps", "100000", "--marks", "1")
        terminal = self.terminal(100, 30)
        terminal.command(f"{TOP} {self.traces}")
        terminal.until(lambda screen: step_of(screen) > 5, "steps")
        terminal.type("Down")
        terminal.until(r"(?m)^> +0 ", "the mark")
        terminal.type("Down")
        terminal.until(r"(?m)^> +1 ", "the mark, further down")
        terminal.type("Enter")
        terminal.until(r"(?m)^rank 1 +process \d+", "rank 1 alone")
        terminal.type("Escape")
        terminal.until(r"(?m)^> +1 ", "all ranks")
        terminal.type("?")
        terminal.until("the job is not affected", "the help")
        terminal.type("?")
        terminal.type("Space")
        frozen = step_of(terminal.until("frozen for", "that it is frozen"))
        again = terminal.until(lambda screen: re.search(r"frozen for [2-9]\.\d+ s", screen), "that it stays frozen")
        self.assertEqual(step_of(again), frozen)
        terminal.type("Space")
        terminal.until(lambda screen: step_of(screen) > frozen, "that it goes on")

    def test_the_mark_moves_in_the_order_that_is_shown(self):
        """Where long lines above the table leave no room for all ranks, the one in trouble comes first."""
        self.job("--steps", "100000", "--fault", "1", "--fault-rank", "1", "--fault-step", "20", "--marks", "1")
        terminal = self.terminal(44, 13)
        terminal.command(f"{TOP} {self.traces}")
        first = re.compile(r"(?m)^ *rank .*\n[> ] +1 ")
        terminal.until(lambda screen: first.search(screen), "rank 1 first")
        terminal.type("Down")
        terminal.until(r"(?m)^> +\d+ ", "a mark")
        self.assertRegex(terminal.screen(), r"(?m)^> +1 ")

    def check_stacks(self, columns, lines):
        terminal = self.terminal(columns, lines)
        terminal.command(f"{TOP} {self.traces}")
        terminal.until(r"(?m)t stacks$", "that there are stacks to see")
        terminal.type("t")
        top = terminal.until(r"4 ranks stall: their Python stacks", "the stacks")
        words = " ".join(top.split())
        self.assertRegex(words, r"ranks 0-3 \S*standing_rank\.py:\d+ <module> > \S*standing_rank\.py:\d+ train")
        self.assertRegex(words, r"ranks 0, 2, 3 \S*standing_rank\.py:\d+ wait_for_others")
        self.assertRegex(words, r"rank 1 \S*standing_rank\.py:\d+ save")
        self.assertRegex(top, r"line 1 of \d+")
        seen = set(re.findall(r"reader_\d+", top))
        terminal.type("End")
        seen |= set(re.findall(r"reader_\d+", terminal.until(
            lambda screen: re.search(r"line (\d+) of", screen) and (lines > 40 or "line 1 of" not in screen), "the end")))
        for _ in range(30):
            terminal.type("Up")
        seen |= set(re.findall(r"reader_\d+", terminal.until("line 1 of", "the beginning again")))
        if lines > 40:
            self.assertEqual(len(seen), 14, seen)
        terminal.tmux("resize-window", "-x", str(columns), "-y", "16")
        # tscope-top may handle the key before or after the new size.
        terminal.type("PageDown")
        terminal.until(lambda screen: re.search(r"line (?!1 of)\d+ of", screen) and len(screen.splitlines()) <= 16,
                       "a page further")
        for screen in (top, terminal.screen()):
            self.assertTrue(all(len(line) <= columns for line in screen.splitlines()))
        terminal.type("t")
        terminal.until(r"(?m)^ +3 ", "all ranks again")

    def test_stacks(self):
        self.job(TSCOPE_STALL="2", command=STANDING)
        self.check_stacks(80, 24)
        self.check_stacks(200, 50)

    def check_restored(self, terminal, before):
        terminal.until(lambda screen: not screen.startswith("tscope top"), "the shell's screen")
        self.assertFalse(terminal.is_on("alternate_on"))
        self.assertTrue(terminal.is_on("cursor_flag"))
        self.assertTrue(terminal.is_on("wrap_flag"))
        terminal.command(f"stty -g > {self.folder}/after; echo was\"\"ended")
        terminal.until("wasended", "a shell that answers")
        with open(f"{self.folder}/after", encoding="ascii") as after:
            self.assertEqual(after.read(), before)

    def test_the_terminal_is_restored(self):
        self.job("--steps", "100000")
        for how in ("q", "C-c", "C-\\", signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(how=how):
                terminal = self.terminal()
                terminal.command(f"stty -g > {self.folder}/before; echo is\"\"ready")
                terminal.until("isready", "the shell")
                with open(f"{self.folder}/before", encoding="ascii") as file:
                    before = file.read()
                terminal.command(f"sh -c 'echo $$ > {self.folder}/pid; exec {TOP} {self.traces}'")
                terminal.until(r"(?m)^ +3 ", "four ranks")
                self.assertTrue(terminal.is_on("alternate_on"))
                self.assertFalse(terminal.is_on("cursor_flag"))
                if isinstance(how, str):
                    terminal.type(how)
                else:
                    with open(f"{self.folder}/pid", encoding="ascii") as file:
                        os.kill(int(file.read()), how)
                self.check_restored(terminal, before)
                terminal.end()

    def test_stop_and_continue(self):
        self.job("--steps", "100000")
        terminal = self.terminal()
        terminal.command(f"{TOP} {self.traces}")
        terminal.until(r"(?m)^ +3 ", "four ranks")
        terminal.type("C-z")
        terminal.until("Stopped", "what the shell says")
        self.assertFalse(terminal.is_on("alternate_on"))
        terminal.command("fg")
        terminal.until(r"(?m)^ +3 ", "four ranks again")
        self.assertTrue(terminal.is_on("alternate_on"))


if __name__ == "__main__":
    at_once.main(3)
