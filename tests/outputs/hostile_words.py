#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names from a trace act on nothing: hostile_words.py BUILD. A run whose every name (of the run, hosts, threads, kernels,
communicators, functions, files, phases, commands) holds escapes of terminals, carriage returns, C1 controls or marks that turn lines
around goes through every output of every program."""
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built  # noqa: E402
from in_folder import InOneFolder  # noqa: E402
from observed import clean_environment  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
REPORT, TOP, STACKS = (built(BUILD, "tscope-" + name) for name in ("report", "top", "stacks"))
LAUNCHER = built(BUILD, "tscope")
TRACEGEN = built(BUILD, "tracegen")
ENV = clean_environment(LC_ALL="C.UTF-8", NO_COLOR="1", TERM="dumb")

WORDS = [b"\x1b]0;owned\x07title", b"\x1b[31mred\x1b[2J", b"over\rwritten", b"c1 \xc2\x9b31m \xc2\x9d0;x\xc2\x9c", b"bare \x9b31m \x9d",
         "\u202egnp.exe\u202c \u2066m\u2069".encode(), b"del\x7f\x08\x08bs", b"\x1bP1;1|dcs\x1b\\", b"nul-less \x01\x02\x0e\x0f",
         "zero\u200bwidth\ufeff\u2028line".encode(), b"\x1b_apc\x1b\\ tab\there", b"quote\" \\ {x=\"y\"} \\n"]
RUN = b"\x1b]0;owned\x07run\r\x9b2J\x1b[2J"

# C0 except newline, DEL, C1, zero-width characters, marks that turn lines around.
ACTS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class HostileWords(InOneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.words = cls.path("words")
        with open(cls.words, "wb") as file:
            file.write(b"\n".join(WORDS) + b"\n")
        cls.traces = cls.generate("plain")
        cls.slow = cls.generate("slow", "--slow-rank", "1", "--slow-factor", "1.5")
        cls.hang = cls.generate("hang", "--flavour", "gloo", "--hang-rank", "1")

    @classmethod
    def generate(cls, name, *options):
        path = cls.path(name)
        subprocess.run([TRACEGEN, "--words", cls.words, "--ranks", "3", "--steps", "12", "--phases", *options, "--run", RUN, path],
                       check=True, capture_output=True)
        return path

    def run_it(self, *command, status=(0,)):
        done = subprocess.run(command, capture_output=True, env=ENV, cwd=self.folder)
        self.assertIn(done.returncode, status, done.stderr)
        return done

    def shows(self, data, tabs=False):
        """Nothing in it acts; it is UTF-8."""
        text = data.decode()
        found = ACTS.search(text if tabs else text.replace("\t", "\n"))
        if found:
            self.fail(f"{found[0]!r} in {text[max(0, found.start() - 60):found.end() + 20]!r}")
        return text

    def test_a_terminal_gets_no_escape(self):
        for traces in self.traces, self.slow, self.hang:
            for command in ([REPORT], [REPORT, "--ascii"], [REPORT, "--list"], [LAUNCHER, "list"], [TOP, "--once"], [STACKS]):
                done = self.run_it(*command, traces, status=(0, 1, 2))
                self.shows(done.stdout)
                self.shows(done.stderr)
        self.assertIn("owned", self.run_it(REPORT, "--list", self.traces).stdout.decode())
        self.shows(self.run_it(REPORT, "diff", self.traces, self.slow).stdout)
        self.shows(self.run_it(STACKS, "--frames", self.hang, status=(0, 1, 2)).stdout)

    def test_a_name_adds_no_line_to_the_list(self):
        self.assertEqual(len(self.run_it(REPORT, "--list", self.traces).stdout.splitlines()), 1)

    def test_what_goes_wrong_is_one_line(self):
        name = b"\x1b]0;x\x07\x9b31m\xc2\x9b1m\r\nline"
        for command in ([REPORT, name], [TOP, "--once", name], [STACKS, name], [REPORT, "--run", name, self.traces],
                        [TOP, "--once", "--run", name, self.traces], [REPORT, "--format", name, self.traces],
                        [REPORT, "--steps", name, self.traces], [REPORT, "--output", b"/nowhere/" + name, self.traces]):
            done = self.run_it(*command, status=(1, 2))
            self.assertEqual(self.shows(done.stderr).count("\n"), 1, done.stderr)
            self.shows(done.stdout)

    def test_programs_get_plain_text(self):
        for command in ([REPORT, "--format", "json"], [REPORT, "diff", "--format", "json", self.slow],
                        [TOP, "--once", "--format", "json"]):
            done = self.run_it(*command, self.traces)
            self.assertTrue(done.stdout.isascii(), "JSON is ASCII: then no name in it acts on a terminal")
            json.loads(self.shows(done.stdout.replace(b"\x7f", b"")))  # terminals ignore DEL
        for command in ([REPORT, "--format", "html"], [REPORT, "diff", "--format", "html", self.slow], [TOP, "--once", "--html"]):
            page = self.path("page.html")
            output = [page] if command[0] == TOP else ["--output", page]
            self.run_it(*command, *output, self.traces)
            with open(page, "rb") as file:
                self.shows(file.read().replace(b"\x7f", b""), tabs=True)

    def test_a_scraper_gets_lines_of_metrics(self):
        path = self.path("metrics")
        self.run_it(TOP, "--once", "--prometheus", path, self.slow)
        with open(path, "rb") as file:
            text = self.shows(file.read())
        label = r'[a-z]+="(?:[^"\\]|\\["\\n])*"'
        for line in text.splitlines():
            self.assertRegex(line, rf"\A(?:# .*|[a-z_]+\{{{label}(?:,{label})*\}} \S+)\Z")

    def test_a_gate_and_a_table_of_hosts_show_text(self):
        found = self.path("found.xml")
        done = self.run_it(REPORT, "--fail-on", "info", "--github", "--junit", found, self.hang, status=(1,))
        self.shows(done.stderr)
        with open(found, "rb") as file:
            text = self.shows(file.read(), tabs=True)
        self.assertIn("failure", [element.tag for element in ElementTree.fromstring(text).iter()])
        report = self.path("slow.json")
        self.run_it(REPORT, "--format", "json", "--output", report, self.slow)
        for options in ((), ("--format", "json")):
            done = self.run_it(LAUNCHER, "hosts", *options, report, report, status=(0, 1))
            self.shows(done.stdout.replace(b"\x7f", b""))
            self.shows(done.stderr)

    def test_tables_and_databases_hold_text(self):
        database, folder = self.path("db"), self.path("tables")
        self.run_it(REPORT, "--format", "sqlite", "--output", database, self.hang)
        db = sqlite3.connect(database)
        self.addCleanup(db.close)
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute(f"SELECT * FROM {table}").fetchall()  # text that is not UTF-8 is an error
        self.run_it(REPORT, "--format", "perfetto", "--output", self.path("timeline"), self.traces)
        self.run_it(REPORT, "--export", folder, self.hang, status=(0, 2))
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            with open(os.path.join(folder, name), "rb") as file:
                file.read().decode()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
