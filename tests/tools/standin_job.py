# SPDX-License-Identifier: MIT
"""Runs a job on the stand-in cluster for tests that watch it or end it, one process for each rank."""
import functools
import os
import signal
import subprocess
import sys

from built import built
from in_folder import InFolder
from observed import observed_environment

RANKS = 4
GPUS_OF_A_HOST = 8
# A rank that marks some steps and then stands still.
STANDING = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "standing_rank.py")]


class StandinJob:
    """`command` is run instead of the training program, in front of its options. `of_rank` has variables of single ranks,
    `more` those of all. What ranks say is seen if `stdout` or `stderr` is None. Ranks of a job that is `together` end in one
    moment: if one ended before the others, these would get errors, and hang no more."""

    def __init__(self, build, folder, *options, run="job", ranks=RANKS, command=None, of_rank=None, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL, together=False, **more):
        self.traces = os.path.join(folder, "traces")
        self.run = os.path.join(self.traces, run)
        env = observed_environment(built(build, "libtscope.so"), self.traces, **{
            "TSCOPE_RUN": run, "STANDIN_RENDEZVOUS": folder, "WORLD_SIZE": str(ranks), "STANDIN_LINK_GBPS": "0.5",
            "STANDIN_LATENCY_US": "20", **more})
        command = command or [built(build, "train")]
        self.ranks, self.together = [], together
        for rank in range(ranks):
            group = self.ranks[0].pid if rank else 0
            self.ranks.append(subprocess.Popen([*command, *options], stdout=stdout, stderr=stderr, text=True, env={
                **env, "RANK": str(rank), "LOCAL_RANK": str(rank % GPUS_OF_A_HOST), **(of_rank or {}).get(rank, {})},
                preexec_fn=functools.partial(os.setpgid, 0, group) if together else None))

    def send(self, number, *ranks):
        for rank in ranks or range(len(self.ranks)):
            if self.ranks[rank].poll() is None:
                self.ranks[rank].send_signal(number)

    def wait(self, seconds=None):
        """For each rank; how they ended."""
        return [rank.wait(seconds) for rank in self.ranks]

    def end(self):
        """At once: a rank that was stopped does not live again."""
        if self.together and any(rank.poll() is None for rank in self.ranks):
            os.killpg(self.ranks[0].pid, signal.SIGKILL)
        self.send(signal.SIGKILL)
        self.wait()


class Watching(InFolder):
    """Tests that watch jobs of the build BUILD."""
    BUILD = None

    def job(self, *options, **more):
        job = StandinJob(self.BUILD, self.folder, *options, **more)
        self.addCleanup(job.end)
        return job
