# SPDX-License-Identifier: MIT
"""Shared by the tests of schedulers: reports on the traces of their jobs, and a Slurm with two nodes on this one
machine."""
import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import clean_environment, run  # noqa: E402
from outcomes import Skip, wait_until  # noqa: E402
from ports import free_port  # noqa: E402
from read_trace import paths_under  # noqa: E402
from summaries import report_on  # noqa: E402


class Traces:
    """A folder to which jobs write their traces."""

    def __init__(self, report, folder):
        self.report_program, self.folder = report, folder

    def runs(self):
        return sorted(name for name in (os.listdir(self.folder) if os.path.isdir(self.folder) else [])
                      if paths_under(os.path.join(self.folder, name)))

    def report(self, name):
        return report_on(self.report_program, self.folder, "--run", name)

    def expect(self, name, ranks, complete=True):
        """The run `name` has exactly these ranks, and they ended as expected."""
        document = self.report(name)
        assert document["run"]["ranks_found"] == list(range(ranks)), (name, document["run"])
        assert document["run"]["world_size"] == ranks, document["run"]
        partial = document["quality"]["partial_ranks"]
        assert partial == ([] if complete else list(range(ranks))), (name, partial)
        return document


class Slurm:
    """Two nodes, n1 and n2, whose daemons run on this machine, in a separate folder."""

    CONFIGURATION = """
ClusterName=tscope-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=2
JobRequeue=1
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0
{more}
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=4 RealMemory=1000
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""

    def __init__(self, more=""):
        for program in ("munged", "slurmctld", "slurmd"):
            if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
                raise Skip(f"no {program} here; Debian's packages slurm-wlm and munge have it")
        if os.geteuid() != 0:
            raise Skip("only root can start slurmd and munged")
        self.daemons = []
        self.folder = tempfile.mkdtemp(prefix="tscope-slurm-")
        os.chmod(self.folder, 0o755)
        port = free_port(3)
        for name in ("state", "spool/n1", "spool/n2", "munge"):
            os.makedirs(os.path.join(self.folder, name))
        self.file = os.path.join(self.folder, "slurm.conf")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(self.CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0], folder=self.folder, port=port,
                first=port + 1, last=port + 2, more=more.format(folder=self.folder)))
        self.environment = clean_environment(SLURM_CONF=self.file,
                                             PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def __enter__(self):
        try:
            self._start_munge()
            self._start("slurmctld", "-D", "-f", self.file)
            for node in ("n1", "n2"):
                self._start("slurmd", "-D", "-N", node, "-f", self.file)
            wait_until("two idle nodes", lambda: self("sinfo", "-h", "-o", "%T %D", ok=None)
                       .stdout.strip() == "idle 2")
        except AssertionError as error:
            logs = "".join(f"\n{log}: " + "".join(open(log, encoding="utf-8", errors="replace").readlines()[-3:])
                           for log in glob.glob(os.path.join(self.folder, "*.log")))
            self.__exit__()
            raise Skip(f"Slurm does not start here: {error}{logs}") from error
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self("scancel", "-u", "root", ok=None)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, *command, env=None, **more):
        return run(*command, env={**self.environment, **(env or {})}, cwd=self.folder, **more)

    def _start(self, *command, **more):
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL, **more))

    def _start_munge(self):
        """munged needs its own user, key and folders."""
        munge = os.path.join(self.folder, "munge")
        key = os.path.join(munge, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        user = pwd.getpwnam("munge")
        for path, mode in ((munge, 0o755), (key, 0o400)):
            os.chown(path, user.pw_uid, user.pw_gid)
            os.chmod(path, mode)
        self._start("munged", "--foreground", "--key-file", key, "--socket", os.path.join(munge, "socket"),
                    "--pid-file", os.path.join(munge, "pid"), "--log-file", os.path.join(munge, "log"),
                    "--seed-file", os.path.join(munge, "seed"), user="munge", group="munge", extra_groups=[])
        wait_until("munged's socket", lambda: os.path.exists(os.path.join(munge, "socket")), 30)

    def job(self, text, name="job.sh"):
        """Writes a job script, and returns its name."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n" + text)
        os.chmod(path, 0o755)
        return path

    def state(self, job):
        return self("scontrol", "show", "job", job, ok=None).stdout

    def wait_end(self, job, seconds=240):
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        wait_until(f"the end of job {job}:\n{self.state(job)}",
                   lambda: all(any(f"JobState={end}" in part for end in ends)
                               for part in self.state(job).strip().split("\n\n")), seconds)

    def settled(self):
        """Waits until no job is left in the queue, not even one that is completing."""
        wait_until("an empty queue", lambda: not self("squeue", "-h").stdout.strip())
