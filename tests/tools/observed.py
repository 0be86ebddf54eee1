# SPDX-License-Identifier: MIT
"""How a test runs what it observes: the same wherever the test itself was started, be it in a job of a scheduler, under
tscope or in a terminal of any width."""
import json
import os
import re
import shlex
import subprocess

# The prefix with which a test runs a program of the build: in a build for another machine the command of the emulator
# (tests/meson.build), otherwise empty.
EMULATOR = shlex.split(os.environ.get("TSCOPE_EMULATOR", ""))

# What the names of variables begin with that are not handed on, because programs under observation or tscope read them.
NOT_HANDED_ON = (
    "TSCOPE", "LD_PRELOAD",
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_",
    "SLURM", "OMPI_", "PMI", "MPI_LOCALRANKID", "PBS_", "LSB_", "FLUX_",
    "STANDIN_", "SKEW_",
    "CUDA_", "NVIDIA_TF32", "NVTX_", "NCCL_PROFILER", "NCCL_NET_PLUGIN", "TEARDOWN_CUPTI",
    "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR",
)


def clean_environment(**more):
    """The test's own environment without what changes what is observed; and these variables."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}, **more}


def observed_environment(library, traces, **more):
    """That of a program under the preload, or without it if there is no `library`; the same in all else."""
    chosen = {"LD_PRELOAD": library, "TSCOPE_DIR": traces}
    return clean_environment(**{**{name: str(value) for name, value in chosen.items() if value}, **more})


def run(*command, ok=(0,), env=None, **more):
    """Runs a program of the build to its end, which must be one of these statuses; None is for any."""
    done = subprocess.run([*EMULATOR, *map(str, command)], capture_output=True, encoding="utf-8", check=False,
                          env=clean_environment(LC_ALL="C.UTF-8") if env is None else env, **more)
    assert ok is None or done.returncode in ok, \
        f"{command}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def without_progress(said):
    """What a program said on standard error; on a busy machine it says after a second how far it is."""
    return re.sub(r"^tscope-report: [\w ]+: \d+ % after \d+ s\n", "", said, flags=re.M)


def json_of(program, *arguments, **more):
    """What tscope-report or tscope-top writes for programs."""
    return json.loads(run(program, *arguments, "--format", "json", **more).stdout)


def json_so_far(program, *arguments):
    """The same of a job that may have written nothing yet: then None."""
    done = run(program, *arguments, "--format", "json", ok=None)
    return json.loads(done.stdout) if done.returncode == 0 else None
