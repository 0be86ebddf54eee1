#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--open serves one file from 127.0.0.1:9001 to ui.perfetto.dev, and nothing to anyone else: open_in_browser.py
TSCOPE-REPORT TRACEGEN. This file takes the place of the browser."""
import http.client
import json
import os
import socket
import stat
import sys
import unittest

PORT = 9001
SITE = "https://ui.perfetto.dev"


def ask(method, path, origin=SITE, host="127.0.0.1:9001"):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host)
    if origin:
        connection.putheader("Origin", origin)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def listeners():
    """Addresses on which a process listens at port 9001, in the kernel's notation."""
    found = []
    for table in ("tcp", "tcp6"):
        with open("/proc/net/" + table) as lines:
            for line in list(lines)[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and address.endswith(":%04X" % PORT):
                    found.append(address.split(":")[0])
    return found


def browse(folder, address):
    """Does what the page would do, and tries what it must not get."""
    said = {"address": address, "listeners": listeners()}
    said["other path"] = ask("GET", "/etc/passwd")[0]
    said["up"] = ask("GET", "/../etc/passwd")[0]
    said["other site"] = ask("GET", "/tscope", origin="https://example.org")[0]
    said["other name"] = ask("GET", "/tscope", host="evil.example:9001")[0]
    said["before"] = ask("OPTIONS", "/tscope")[0]
    with socket.create_connection(("127.0.0.1", PORT)) as half:
        half.send(b"GET /tsc")  # and closes
    status, headers, data = ask("GET", "/tscope")
    said["status"], said["headers"] = status, headers
    with open(os.path.join(folder, "fetched"), "wb") as file:
        file.write(data)
    with open(os.path.join(folder, "said"), "w") as file:
        json.dump(said, file)


if sys.argv[1] == "--browse":
    if os.fork() == 0:
        browse(sys.argv[2], sys.argv[3])
    os._exit(0)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from in_folder import InFolder  # noqa: E402
from observed import clean_environment, run  # noqa: E402

REPORT, TRACEGEN = sys.argv[1:3]


class Open(InFolder):
    def setUp(self):
        super().setUp()
        self.traces = self.path("traces")
        run(TRACEGEN, "--ranks", "2", "--steps", "20", self.traces)
        if listeners():
            self.skipTest("port %d of this machine is in use" % PORT)

    def path(self, name):
        return os.path.join(self.folder, name)

    def browser(self, text):
        path = self.path("browser")
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def run_report(self, browser, *arguments):
        environment = clean_environment(BROWSER=browser, PATH="/nowhere", TMPDIR=self.folder)
        return run(REPORT, *arguments, self.traces, ok=None, env=environment, timeout=200)

    def test_only_the_page_gets_the_file(self):
        browser = self.browser("#!%s\nimport os, sys\nos.execv(%r, [%r, %r, '--browse', %r, sys.argv[1]])\n" % (
            sys.executable, sys.executable, sys.executable, os.path.abspath(__file__), self.folder))
        os.mkfifo(self.path("said"))  # the report may end before the browser
        done = self.run_report(browser, "--format", "perfetto", "--open")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("said")) as file:
            said = json.load(file)
        self.assertTrue(said["address"].startswith(SITE + "/#!/?url=http://127.0.0.1:9001/tscope"))
        self.assertEqual(said["listeners"], ["0100007F"])  # 127.0.0.1 in the kernel's notation
        self.assertEqual((said["other path"], said["up"], said["other site"], said["other name"], said["before"]),
                         (404, 404, 403, 403, 204))
        self.assertEqual(said["status"], 200)
        self.assertEqual(said["headers"]["Access-Control-Allow-Origin"], SITE)
        written = self.run_report(browser, "--format", "perfetto", "--output", self.path("trace"))
        self.assertEqual(written.returncode, 0)
        with open(self.path("trace"), "rb") as one, open(self.path("fetched"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        self.assertEqual(listeners(), [])
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("tscope-")], [])

    def test_without_a_browser_it_says_what_to_do(self):
        done = self.run_report("/nowhere/browser", "--format", "perfetto", "--open", "--output", self.path("trace"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("copy %s to a machine that has one" % self.path("trace"), done.stderr)
        self.assertTrue(os.path.getsize(self.path("trace")))

    def test_what_cannot_be_opened_is_refused(self):
        done = self.run_report("true", "--format", "sqlite", "--open")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Atscope-report: --open [^\n]+\n\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
