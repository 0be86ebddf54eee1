# SPDX-License-Identifier: MIT
"""Chromium without a window, through its own driver (WebDriver over HTTP, no package is necessary)."""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from outcomes import Skip

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def find():
    """(driver, browser), or None."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return (driver, browser) if driver and browser else None


def need():
    """Skips the test if there is no browser."""
    if not find():
        raise Skip("no chromium with its chromedriver here (scripts/setup test installs them)")


class Browser:
    def __init__(self, width=1280, height=900, dark=False, still=True):
        driver, browser = find()
        self.folder = tempfile.mkdtemp(prefix="tscope-browser-")
        # The driver picks a port and prints it. It gets its own process group, which includes the browser's processes.
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        port = None
        while port is None:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("chromedriver ended before it said its port")
            if "started successfully on port" in line:
                port = int(line.rstrip().rstrip(".").rsplit(" ", 1)[1])
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--disable-background-networking", "--no-first-run",
                     "--disable-component-update", "--disable-default-apps", "--disable-sync",
                     "--disable-extensions", f"--user-data-dir={self.folder}",
                     f"--window-size={width},{height}"]
        if dark:
            arguments.append("--force-dark-mode")
        if still:
            arguments.append("--force-prefers-reduced-motion")
        capabilities = {"alwaysMatch": {
            "goog:chromeOptions": {"binary": browser, "args": arguments,
                                   "perfLoggingPrefs": {"enableNetwork": True}},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}
        try:
            self.session = self._call("POST", "/session", {"capabilities": capabilities})["sessionId"]
        except Exception:
            self.close()
            raise
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if getattr(self, "session", None):
            try:
                self._call("DELETE", f"/session/{self.session}")
            except (OSError, RuntimeError):
                pass
            self.session = None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def do(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def command(self, name, **parameters):
        """Calls a DevTools command."""
        return self.do("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def size(self, width, height, mobile=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=mobile)

    def open(self, path):
        """Opens a file and waits until the page says that it is ready. Returns the seconds that this took."""
        self.logs()
        self.requests()  # discards those before this page
        begin = time.monotonic()
        self.do("POST", "/url", {"url": "file://" + os.path.abspath(path)})
        if self.run("return document.documentElement.dataset.ready") != "yes":
            raise RuntimeError(f"{path} did not become ready: {self.logs()}")
        return time.monotonic() - begin

    def run(self, script, *arguments):
        return self.do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_run(self, script, *arguments):
        """Runs a script that calls its last argument when it is done."""
        return self.do("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def settle(self):
        """Waits until all requested drawing is done."""
        self.wait_run("const done = arguments[0];"
                      "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))")

    def find(self, selector):
        return self.do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.do("POST", f"/element/{self.find(selector)}/click", {})
        self.settle()

    def write(self, selector, text):
        self.do("POST", f"/element/{self.find(selector)}/value", {"text": text})
        self.settle()

    def keys(self, *names):
        """Presses keys one after the other in the focused element."""
        codes = {"ArrowRight": "\ue014", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowDown": "\ue015",
                 "Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Home": "\ue011", "End": "\ue010"}
        actions = []
        for name in names:
            key = codes.get(name, name)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
        self.settle()

    def pointer(self, selector, x, y, press=False, wheel=0, drag=None):
        """Moves to a place in an element (fractions of its width and height), then presses, turns the wheel, or drags
        by a number of pixels."""
        box = self.run("const e = document.querySelector(arguments[0]);"
                       "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                       "return [b.left, b.top, b.width, b.height]", selector)
        at_x, at_y = int(box[0] + x * box[2]), int(box[1] + y * box[3])
        actions = [{"type": "pointerMove", "duration": 0, "x": at_x, "y": at_y}]
        if press or drag:
            actions.append({"type": "pointerDown", "button": 0})
            if drag:
                actions.append({"type": "pointerMove", "duration": 50, "x": at_x + drag, "y": at_y})
            actions.append({"type": "pointerUp", "button": 0})
        self.do("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})
        if wheel:
            self.do("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
                {"type": "scroll", "x": at_x, "y": at_y, "deltaX": 0, "deltaY": wheel, "duration": 0}]}]})
        self.settle()

    def logs(self):
        """The console's messages since the last call."""
        return [entry for entry in self.do("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that the page requested since the last call, without files."""
        found = []
        for entry in self.do("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "about:", "chrome:")):
                    found.append(url)
        return found

    def screenshot(self, path, whole=False):
        self.settle()
        parameters = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.run("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            parameters["clip"] = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], 14000), "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.command("Page.captureScreenshot", **parameters)["data"]))
