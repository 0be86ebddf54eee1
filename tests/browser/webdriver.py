# SPDX-License-Identifier: MIT
"""A real browser for tests: Chromium without a window, driven through its own driver
[w3.org/TR/webdriver]. Nothing but the standard library, so that tests need no package for it."""

import base64
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

SKIPPED = 77


def programs():
    """Chromium and its driver, or None and why not."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if browser and driver:
        return (browser, driver), None
    return None, "no chromium and chromium-driver: scripts/setup test"


class Browser:
    """`with Browser() as browser:`. Offline but for 127.0.0.1."""

    def __init__(self, width=1440, height=900, dark=False, arguments=()):
        found, why = programs()
        if not found:
            raise RuntimeError(why)
        browser, driver = found
        self.home = tempfile.mkdtemp(prefix="browser-")
        self.log = open(os.path.join(self.home, "driver.log"), "w")
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=self.log,
                                       text=True, env=dict(os.environ, HOME=self.home, TMPDIR=self.home))
        try:
            self.base = "http://127.0.0.1:%d" % self._port()
            options = {
                "binary": browser,
                "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run",
                         "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                         "--user-data-dir=%s/profile" % self.home, "--window-size=%d,%d" % (width, height),
                         *(["--force-dark-mode"] if dark else []), *arguments],
            }
            answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
                "timeouts": {"script": 120000, "pageLoad": 120000}}}})
            self.session = "/session/" + answer["sessionId"]
        except BaseException:
            self.close()
            raise

    def _port(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                threading.Thread(target=self.driver.stdout.read, daemon=True).start()
                return int(line.split()[-1].rstrip("."))
        raise RuntimeError("chromedriver did not start; see %s" % self.log.name)

    def _ask(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, address):
        self._ask("POST", self.session + "/url", {"url": address})

    def run(self, script, *arguments):
        """The value of a function body; a promise is waited for."""
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script, seconds=60):
        """Until the function body's value is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.1)
        raise RuntimeError("not within %d s: %s" % (seconds, script))

    def console(self):
        return self._ask("POST", self.session + "/se/log", {"type": "browser"})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._ask("GET", self.session + "/screenshot")))

    def close(self):
        try:
            if hasattr(self, "session"):
                self._ask("DELETE", self.session)
        except (RuntimeError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Folder:
    """Serves files of a folder, and `more` by name, to this machine only."""

    def __init__(self, folder, more=None):
        files = more or {}

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def translate_path(self, path):
                return files.get(path.split("?")[0].lstrip("/")) or super().translate_path(path)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
