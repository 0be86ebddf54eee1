#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The alert rules and the dashboard of scripts/monitoring in a real Prometheus: monitoring.py BUILD SOURCE. Prometheus
reads what tscope top and tscope hosts write; each rule is evaluated, and each expression of the dashboard asked."""
import functools
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

BUILD, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
MONITORING = os.path.join(SOURCE, "scripts", "monitoring")
DEADLINE_S = 60
if not shutil.which("prometheus") or not shutil.which("promtool"):
    print("skipped: prometheus is not installed (scripts/setup long)")
    sys.exit(77)


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
    subprocess.run([os.path.join(BUILD, "tests", "tracegen", "tracegen"), "--ranks", "4", "--steps", "20", "--phases",
                    traces], check=True, capture_output=True)
    subprocess.run([os.path.join(BUILD, "analyzer", "tscope-top"), "--once", "--prometheus",
                    os.path.join(folder, "top.prom"), traces], check=True, capture_output=True)
    subprocess.run([os.path.join(BUILD, "analyzer", "tscope-report"), "--hosts", "--prometheus",
                    os.path.join(folder, "hosts.prom"), traces], check=True, capture_output=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".prom": "text/plain; version=0.0.4"}

    def log_message(self, *_):
        pass


def ask(port, path, **parameters):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(parameters)}") as answer:
        return json.load(answer)["data"]


def wait_for(what, reason):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        try:
            found = what()
            if found:
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.2)
    raise AssertionError(reason)


def check_answers(port):
    wait_for(lambda: ask(port, "/api/v1/query", query="tscope_rank")["result"], "no figures of tscope top")
    wait_for(lambda: ask(port, "/api/v1/query", query="tscope_hosts_runs")["result"], "no figures of tscope hosts")
    for expression in expressions():
        ask(port, "/api/v1/query", query=expression.replace("$run", ".*"))  # 400 where it cannot be evaluated
    ranks = ask(port, "/api/v1/query", query='tscope_rank_up * on (run, rank) group_left (host) tscope_rank')["result"]
    assert sorted(row["metric"]["rank"] for row in ranks) == ["0", "1", "2", "3"], ranks
    assert all(row["metric"]["host"] for row in ranks), ranks

    def evaluated():
        rules = [rule for group in ask(port, "/api/v1/rules")["groups"] for rule in group["rules"]]
        return rules if all(rule["health"] == "ok" for rule in rules) else None

    rules = wait_for(evaluated, "the rules cannot be evaluated")
    print(f"{len(rules)} rules and {len(expressions())} expressions of the dashboard evaluated")


def check_in_prometheus(folder):
    write_metrics(folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{server.server_address[1]}"
    configuration = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                     "rule_files": [os.path.join(MONITORING, "tscope.rules.yml")],
                     "scrape_configs": [{"job_name": name, "metrics_path": f"/{name}.prom",
                                         "static_configs": [{"targets": [target]}]} for name in ("top", "hosts")]}
    path = os.path.join(folder, "prometheus.yml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(configuration, file)  # JSON is YAML
    port = free_port()
    with open(os.path.join(folder, "log"), "wb") as log, subprocess.Popen(
            ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as prometheus:
        try:
            check_answers(port)
        finally:
            prometheus.terminate()
            prometheus.wait()
            server.shutdown()


def main():
    check_names()
    for command in (["check", "rules", "tscope.rules.yml"], ["test", "rules", "tscope.rules-test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=MONITORING, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory(prefix="tscope-monitoring-") as folder:
        check_in_prometheus(folder)


if __name__ == "__main__":
    main()
