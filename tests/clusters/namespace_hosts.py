# SPDX-License-Identifier: MIT
"""Hosts on this one machine: each a set of namespaces for network, names, time, processes and mounts, on one bridge.
Their monotonic clocks are hours apart; the wall clock is one."""
import os
import signal
import subprocess
import tempfile
import time

from control_groups import ControlGroup
from outcomes import Skip


def command(*arguments):
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as missing:
        raise Skip(f"there is no {arguments[0]}") from missing
    if done.returncode:
        raise Skip(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Hosts:
    """Hosts node0, node1, ... at 10.77.0.1, ...; gone at the end of `with`. `names` replaces their names."""

    def __init__(self, n, names=None):
        # A clock cannot be put before its start: early after the machine's, less far back.
        self.offsets_s = [0, 7200, -min(3000, int(time.monotonic() / 2))][:n]
        self.host_names = names or [f"node{i}" for i in range(n)]
        self.namespaces, self.processes, self.quotas = [], [], {}
        self.prefix = f"ts{os.getpid()}"
        self.names_file = None

    def add_namespace(self, name):
        command("ip", "netns", "add", name)
        self.namespaces.append(name)
        command("ip", "-n", name, "link", "set", "lo", "up")

    def add_host(self, number, switch):
        name = f"{self.prefix}h{number}"
        self.add_namespace(name)
        command("ip", "link", "add", f"v{number}", "netns", name, "type", "veth", "peer", "name", f"p{number}",
                "netns", switch)
        command("ip", "-n", switch, "link", "set", f"p{number}", "master", "br0", "up")
        command("ip", "-n", name, "addr", "add", f"{self.address(number)}/24", "dev", f"v{number}")
        command("ip", "-n", name, "link", "set", f"v{number}", "up")
        offset = str(self.offsets_s[number])
        # The shell says when it has its name and its own /proc, and lives as long as its standard input is open.
        host = subprocess.Popen(
            ["ip", "netns", "exec", name, "unshare", "--uts", "--time", "--monotonic", offset, "--boottime", offset,
             "--pid", "--mount", "--mount-proc", "--fork", "--kill-child", "sh", "-c",
             f"mount --bind {self.names_file} /etc/hosts && hostname {self.host_names[number]} && echo ready && read -r _"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(host)
        if host.stdout.readline().strip() != "ready":
            host.stdin.close()
            raise Skip(f"no namespaces for a host: {host.stderr.read().strip()}")

    def __enter__(self):
        descriptor, self.names_file = tempfile.mkstemp(prefix="tscope-names-")
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{self.address(i)} {name}\n" for i, name in enumerate(self.host_names))
        try:
            switch = f"{self.prefix}sw"
            self.add_namespace(switch)
            command("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
            command("ip", "-n", switch, "link", "set", "br0", "up")
            for number in range(len(self.offsets_s)):
                self.add_host(number, switch)
        except Skip:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in self.processes:
            host.stdin.close()
            host.wait()
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "del", name], check=False)
        for quota in self.quotas.values():
            quota.remove()
        os.unlink(self.names_file)

    def address(self, number):
        return f"10.77.0.{number + 1}"

    def limit_link(self, number, rate):
        for namespace, device in ((f"{self.prefix}h{number}", f"v{number}"), (f"{self.prefix}sw", f"p{number}")):
            command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "64kb",
                    "latency", "400ms")

    def group_cores(self, number):
        """What is started on the host from now on can be limited."""
        self.quotas[number] = ControlGroup("cpu", 64)

    def limit_cores(self, number, cores):
        self.quotas[number].limit(cores)

    def first_process(self, number):
        return command("pgrep", "-P", str(self.processes[number].pid)).split()[0]

    def start(self, number, arguments, environment):
        quota = self.quotas.get(number)
        return subprocess.Popen(["nsenter", "-t", self.first_process(number), "--net", "--uts", "--time", "--pid",
                                 "--mount", *arguments],
                                env={**environment, "GLOO_SOCKET_IFNAME": f"v{number}"}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, preexec_fn=quota.enter if quota else None)

    def kill(self, number):
        """All processes of a host at once, as if it had lost its power."""
        os.kill(int(self.first_process(number)), signal.SIGKILL)
