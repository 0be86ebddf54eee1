#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job on three hosts with clocks of their own: hosts.py CASE TSCOPE-RUN TSCOPE-REPORT LIBTSCOPE.

Each host is a set of namespaces on this machine: network, names, time, processes and mounts. Their monotonic clocks are
hours apart; the wall clock is one, so each rank writes its host's true offset. Two ranks a host train with gloo. CASE:
quiet, slow-host (both ranks of one host sleep in each step), slow-link (100 Mbit/s to that host), both.
Skipped, with the reason, where the machine cannot make such hosts, or PyTorch is not installed.
"""
import os
import subprocess
import sys
import tempfile
import time

from cluster import SKIPPED, Skip, Traces, clean_environment

HERE = os.path.dirname(os.path.abspath(__file__))
CASE, RUN, REPORT, LIBRARY = sys.argv[1], *map(os.path.realpath, sys.argv[2:5])
# A clock cannot be put before its start: early after the machine's, less back.
OFFSETS_S = [0, 7200, -min(3000, int(time.monotonic() / 2))]
RANKS_A_HOST = 2
SLOW_HOST = 1
SLEEP_MS = 12


class CannotMake(Skip):
    """Why this machine cannot make such hosts."""


def command(*arguments):
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as missing:
        raise CannotMake(f"there is no {arguments[0]}") from missing
    if done.returncode:
        raise CannotMake(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Hosts:
    """Hosts node0, node1, ... at 10.77.0.1, ... on one bridge; gone at the end of `with`."""

    def __init__(self, offsets_s):
        self.offsets_s, self.names, self.processes = offsets_s, [], []
        self.prefix = f"ts{os.getpid()}"

    def add_namespace(self, name):
        command("ip", "netns", "add", name)
        self.names.append(name)
        command("ip", "-n", name, "link", "set", "lo", "up")

    def add_host(self, number, offset_s, switch):
        name = f"{self.prefix}h{number}"
        self.add_namespace(name)
        command("ip", "link", "add", f"v{number}", "netns", name, "type", "veth", "peer", "name", f"p{number}",
                "netns", switch)
        command("ip", "-n", switch, "link", "set", f"p{number}", "master", "br0", "up")
        command("ip", "-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", f"v{number}")
        command("ip", "-n", name, "link", "set", f"v{number}", "up")
        # The shell says when it has its name and its own /proc, and lives as long as its standard input is open.
        host = subprocess.Popen(
            ["ip", "netns", "exec", name, "unshare", "--uts", "--time", "--monotonic", str(offset_s), "--boottime",
             str(offset_s), "--pid", "--mount", "--mount-proc", "--fork", "--kill-child", "sh", "-c",
             f"hostname node{number} && echo ready && read -r _"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(host)
        if host.stdout.readline().strip() != "ready":
            host.stdin.close()
            raise CannotMake(f"no namespaces for a host: {host.stderr.read().strip()}")

    def __enter__(self):
        try:
            switch = f"{self.prefix}sw"
            self.add_namespace(switch)
            command("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
            command("ip", "-n", switch, "link", "set", "br0", "up")
            for number, offset_s in enumerate(self.offsets_s):
                self.add_host(number, offset_s, switch)
        except CannotMake:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in self.processes:
            host.stdin.close()
            host.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def limit_link(self, number, rate):
        for namespace, device in ((f"{self.prefix}h{number}", f"v{number}"), (f"{self.prefix}sw", f"p{number}")):
            command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "64kb",
                    "latency", "400ms")

    def start(self, number, arguments, environment):
        inside = command("pgrep", "-P", str(self.processes[number].pid)).split()[0]
        return subprocess.Popen(["nsenter", "-t", inside, "--net", "--uts", "--time", "--pid", "--mount", *arguments],
                                env={**environment, "GLOO_SOCKET_IFNAME": f"v{number}"}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)


def train(hosts, folder):
    world = RANKS_A_HOST * len(OFFSETS_S)
    ranks = []
    for rank in range(world):
        host = rank // RANKS_A_HOST
        slow = CASE in ("slow-host", "both") and host == SLOW_HOST
        environment = clean_environment(
            RANK=str(rank), LOCAL_RANK=str(rank % RANKS_A_HOST), WORLD_SIZE=str(world), MASTER_ADDR="10.77.0.1",
            MASTER_PORT="29400", OMP_NUM_THREADS="1", SLEEP_MS=str(SLEEP_MS if slow else 0), TRUTH=folder)
        ranks.append(hosts.start(host, [RUN, "--dir", folder, "--run", CASE, "--lib", LIBRARY, "--", sys.executable,
                                        os.path.join(HERE, "hosts_rank.py")], environment))
    for rank, process in enumerate(ranks):
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, f"rank {rank}: {process.returncode}\n{output}"


def check_clocks(clock, folder):
    assert clock["aligned"], clock
    assert sorted(one["host"] for one in clock["clocks"]) == [f"node{i}" for i in range(len(OFFSETS_S))], clock
    ahead = {}
    for one in clock["clocks"]:
        first = one["ranks"][0]
        assert one["ranks"] == [first, first + 1], clock
        with open(os.path.join(folder, f"truth-{first}"), encoding="utf-8") as file:
            truth_ns = int(file.read())
        ahead[one["host"]] = one["offset_ns"] - truth_ns
    axis = next(one for one in clock["clocks"] if one["error_us"] == 0)
    for one in clock["clocks"]:
        off_us = abs(ahead[one["host"]] - ahead[axis["host"]]) / 1e3
        print(f"{CASE}: {one['host']} is {off_us:.1f} us off, {one['error_us']:.1f} us are stated")
        assert off_us <= one["error_us"] + 5, (off_us, clock)  # each rank reads its offset to about 3 us
        assert one["error_us"] <= clock["between_hosts_us"], clock


def check_named(report):
    slow = {SLOW_HOST * RANKS_A_HOST + i for i in range(RANKS_A_HOST)}
    wanted = slow if CASE in ("slow-host", "both") else set()
    named = {rank for finding in report["findings"] if finding["id"] == "DIST.STRAGGLER" for rank in finding["ranks"]}
    print(f"{CASE}: named {sorted(named)}, the slow ones are {sorted(wanted)}")
    assert named <= wanted, [finding["title"] for finding in report["findings"]]
    # Where the clocks are not known that well, because the machine is busy, nobody can tell.
    certain = report["quality"]["clock"]["between_hosts_us"] < SLEEP_MS * 1e3 / 2
    assert CASE != "slow-host" or not certain or named == wanted, [finding["title"] for finding in report["findings"]]


def main():
    try:
        import torch  # pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        print("skipped: there is no PyTorch")
        return SKIPPED
    try:
        with Hosts(OFFSETS_S) as hosts, tempfile.TemporaryDirectory(prefix="tscope-hosts-") as folder:
            if CASE in ("slow-link", "both"):
                hosts.limit_link(SLOW_HOST, "100mbit")
            begun = time.monotonic()
            train(hosts, folder)
            print(f"{CASE}: ran for {time.monotonic() - begun:.1f} s")
            report = Traces(REPORT, folder).report(CASE)
            check_clocks(report["quality"]["clock"], folder)
            check_named(report)
    except CannotMake as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    return 0


sys.exit(main())
