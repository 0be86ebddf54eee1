# SPDX-License-Identifier: MIT
"""Training scripts of jobs/ on PyTorch, on the CPU or on the stand-ins, with the programs of a build."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import read_trace  # noqa: E402
import standin_wheel  # noqa: E402
from built import built, standins_of  # noqa: E402
from observed import observed_environment  # noqa: E402
from outcomes import expect  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402


class TorchJob:
    """One run of a script, under the preload unless it is `bare`. `launcher` starts the ranks: ranks.py, or torchrun,
    which needs some seconds more."""

    launcher = [os.path.join(HERE, "ranks.py")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]

    def __init__(self, build, folder, name, bare=False):
        self.build, self.python = build, python_or_skip()
        self.directory = os.path.join(folder, name)
        self.environment = observed_environment(None if bare else built(build, "libtscope.so"), self.directory, OMP_NUM_THREADS="1")

    def start(self, script, arguments, ranks):
        launcher = [*self.launcher, str(ranks)] if ranks else []
        return subprocess.Popen(
            [self.python] + launcher + [os.path.join(HERE, "jobs", script)] + arguments,
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)

    def run(self, *arguments, script="ddp_gloo.py", ranks=4):
        process = self.start(script, list(arguments), ranks)
        out, err = process.communicate()
        expect(process.returncode == 0, f"status {process.returncode}: {err[:1500]} ... {err[-500:]}")
        return out

    def traces(self, ranks=4):
        traces = read_trace.read_all(self.directory)
        expect([trace.rank for trace in traces] == list(range(ranks)),
               f"one trace for each rank and none else: {[t.path for t in traces]}")
        for trace in traces:
            expect(not any(trace.lost), f"rank {trace.rank} lost records: {trace.lost}")
        return traces

    def report(self):
        return report_on(built(self.build, "tscope-report"), self.directory)


def cuda_site(build, folder):
    """PyTorch's CUDA wheel on the stand-ins, see standin_wheel.py."""
    return standin_wheel.make(standin_wheel.site_or_skip(python_or_skip()), standins_of(build),
                              os.path.join(folder, "site"))


class CudaJob(TorchJob):
    """A job on the stand-ins. Jobs in one folder use one copy of the wheel."""

    def __init__(self, build, folder, name, bare=False):
        super().__init__(build, folder, name, bare)
        site = os.path.join(folder, "site")
        if not os.path.exists(site):
            cuda_site(build, folder)
        self.log = os.path.join(folder, name + "-log")
        os.mkdir(self.log)
        self.environment.update(PYTHONPATH=site, STANDIN_LOG=self.log)

    def train(self, *arguments, ranks):
        """The output of the ranks, in their order."""
        return sorted(self.run(*arguments, script="train_nccl.py", ranks=ranks).splitlines())

    def operations(self, rank):
        """The work on a rank's GPU, from the stand-in's log."""
        with open(os.path.join(self.log, f"rank{rank}.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if "op" in line]
