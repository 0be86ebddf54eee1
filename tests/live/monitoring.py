#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The alert rules and the dashboard of scripts/monitoring in a real Prometheus: monitoring.py BUILD SOURCE [--pictures].
Prometheus reads what tscope top and tscope hosts write; each rule is evaluated, and each expression of the dashboard
asked. With --pictures, instead, a job has a slow rank and then loses another, and docs/images gets what a browser shows
of it in Prometheus; this takes about six minutes."""
import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import browser  # noqa: E402
from built import built  # noqa: E402
from observed import run  # noqa: E402
from outcomes import Skip, wait_until  # noqa: E402
from ports import free_port  # noqa: E402
from standin_job import StandinJob  # noqa: E402

BUILD, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
MONITORING = os.path.join(SOURCE, "scripts", "monitoring")
TOP = built(BUILD, "tscope-top")
if not shutil.which("prometheus") or not shutil.which("promtool"):
    raise Skip("prometheus is not installed (scripts/setup long)")


def dashboard():
    with open(os.path.join(MONITORING, "tscope-dashboard.json"), encoding="utf-8") as file:
        return json.load(file)


def expressions():
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def check_names():
    """Every metric that rules and dashboard use is documented."""
    documented = set()
    for name in ("outputs/top.md", "hosts.md"):
        with open(os.path.join(SOURCE, "docs", name), encoding="utf-8") as file:
            documented |= set(re.findall(r"`(tscope_\w+)", file.read()))
    with open(os.path.join(MONITORING, "tscope.rules.yml"), encoding="utf-8") as file:
        rules = "".join(line for line in file if not line.lstrip().startswith("#"))
    used = set(re.findall(r"\btscope_\w+", rules + " ".join(expressions())))
    assert used and used <= documented, used - documented


def write_metrics(folder):
    traces = os.path.join(folder, "traces")
    run(built(BUILD, "tracegen"), "--ranks", "4", "--steps", "20", "--phases", traces)
    run(TOP, "--once", "--prometheus", os.path.join(folder, "top.prom"), traces)
    run(built(BUILD, "tscope-report"), "--hosts", "--prometheus", os.path.join(folder, "hosts.prom"), traces)


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".prom": "text/plain; version=0.0.4"}

    def log_message(self, *_):
        pass


def ask(port, path, **parameters):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(parameters)}") as answer:
        return json.load(answer)["data"]


def wait_for(what, reason, limit_s=120):
    def answered():
        try:
            return what()
        except (urllib.error.URLError, ConnectionError):
            return None
    return wait_until(reason, answered, limit_s, each=0.2)


def check_answers(port):
    wait_for(lambda: ask(port, "/api/v1/query", query="tscope_rank")["result"], "figures of tscope top")
    wait_for(lambda: ask(port, "/api/v1/query", query="tscope_hosts_runs")["result"], "figures of tscope hosts")
    for expression in expressions():
        ask(port, "/api/v1/query", query=expression.replace("$run", ".*"))  # 400 where it cannot be evaluated
    ranks = ask(port, "/api/v1/query", query='tscope_rank_up * on (run, rank) group_left (host) tscope_rank')["result"]
    assert sorted(row["metric"]["rank"] for row in ranks) == ["0", "1", "2", "3"], ranks
    assert all(row["metric"]["host"] for row in ranks), ranks

    def evaluated():
        rules = [rule for group in ask(port, "/api/v1/rules")["groups"] for rule in group["rules"]]
        return rules if all(rule["health"] == "ok" for rule in rules) else None

    rules = wait_for(evaluated, "the rules are evaluated")
    print(f"{len(rules)} rules and {len(expressions())} expressions of the dashboard evaluated")


@contextlib.contextmanager
def prometheus(folder, names):
    """Prometheus with the rules, which reads each NAME.prom in the folder once a second. Its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{server.server_address[1]}"
    configuration = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                     "rule_files": ["tscope.rules.yml"],
                     "scrape_configs": [{"job_name": name, "metrics_path": f"/{name}.prom",
                                         "static_configs": [{"targets": [target]}]} for name in names]}
    shutil.copy(os.path.join(MONITORING, "tscope.rules.yml"), folder)
    with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as file:
        json.dump(configuration, file)  # JSON is YAML
    port = free_port()
    with open(os.path.join(folder, "log"), "wb") as log, subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             f"--web.listen-address=127.0.0.1:{port}"], cwd=folder, stdout=log, stderr=log) as process:
        try:
            yield port
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


# Pictures for the documents.

SLOW_RANK, LOST_RANK = 2, 1


@contextlib.contextmanager
def job(folder):
    """Some minutes of steps with a slow rank; then another rank dies, and the others wait for it."""
    ranks = StandinJob(BUILD, folder, "--steps", "100000", "--forward-ms", "200", "--backward-ms", "300", "--slow-rank",
                str(SLOW_RANK), "--fault", "2", "--fault-rank", str(LOST_RANK), "--fault-step", "270", run="night")
    with subprocess.Popen([TOP, "--prometheus", os.path.join(folder, "top.prom"), "--interval", "1", ranks.traces]) as top:
        try:
            yield
        finally:
            top.terminate()
            ranks.end()


def firing(port):
    alerts = ask(port, "/api/v1/alerts")["alerts"]
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def take_pictures(folder):
    images = os.path.join(SOURCE, "docs", "images")
    with job(folder), prometheus(folder, ["top"]) as port, browser.Browser(width=1100, height=1020) as chromium:
        wait_for(lambda: {"TscopeRankInTrouble", "TscopeStalled"} <= firing(port), "the alerts fire", 900)
        late = "tscope_rank_late_seconds * on (run, rank) group_left (host) tscope_rank"
        query = urllib.parse.urlencode({"g0.expr": late, "g0.tab": "0", "g0.range_input": "6m"})
        for name, page in (("prometheus-alerts", "alerts"), ("prometheus-late", f"graph?{query}")):
            chromium.do("POST", "/url", {"url": f"http://127.0.0.1:{port}/classic/{page}"})
            time.sleep(5)  # it draws when it has got the answers
            chromium.run("document.querySelectorAll('.alert-danger.alert_header').forEach(row => row.click())")
            chromium.screenshot(os.path.join(images, name + ".png"))


def check_in_prometheus(folder):
    write_metrics(folder)
    with prometheus(folder, ["top", "hosts"]) as port:
        check_answers(port)


def main():
    check_names()
    for command in (["check", "rules", "tscope.rules.yml"], ["test", "rules", "tscope.rules-test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=MONITORING, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory(prefix="tscope-monitoring-") as folder:
        (take_pictures if "--pictures" in sys.argv else check_in_prometheus)(folder)


if __name__ == "__main__":
    main()
