# SPDX-License-Identifier: MIT
"""Runs a job on the stand-in cluster for tests that watch it, one process for each rank."""
import os
import signal
import subprocess
import sys

RANKS = 4
STANDING = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "standing_rank.py")]
LEFT_OUT = ("TSCOPE", "STANDIN", "SKEW", "RANK", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")


def environment(**more):
    return {**{key: value for key, value in os.environ.items() if not key.startswith(LEFT_OUT)}, **more}


class Job:
    def __init__(self, build, folder, *options, run="job", stall="auto", command=None, ranks=RANKS, meeting=None):
        self.traces = os.path.join(folder, "traces")
        env = environment(LD_PRELOAD=os.path.join(build, "preload", "libtscope.so"), TSCOPE_DIR=self.traces,
                          TSCOPE_RUN=run, TSCOPE_STALL=stall, STANDIN_RENDEZVOUS=meeting or folder, WORLD_SIZE=str(ranks),
                          STANDIN_LINK_GBPS="0.5", STANDIN_LATENCY_US="20")
        command = command or [os.path.join(build, "tests", "standins", "train")]
        self.ranks = [subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)})
                      for rank in range(ranks)]

    def send(self, number, *ranks):
        for rank in ranks or range(len(self.ranks)):
            if self.ranks[rank].poll() is None:
                self.ranks[rank].send_signal(number)

    def end(self):
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        for rank in self.ranks:
            rank.wait()
