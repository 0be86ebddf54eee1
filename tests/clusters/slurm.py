#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ordinary jobs of Slurm: slurm.py CASE TSCOPE-RUN TSCOPE-REPORT LIBTSCOPE RANK.

The name of the run, the ranks in it and how they ended must be right in each. Slurm runs here with two nodes on one
machine; if that is not possible, prints the reason and skips the test.
"""
import glob
import os
import sys

from cluster import Slurm, Traces
from observed import json_of
from outcomes import wait_until
from read_trace import paths_under
from summaries import expect_same
from torch_python import python_or_skip

HERE = os.path.dirname(os.path.abspath(__file__))
CASE, RUN, REPORT, LIBRARY, RANK = sys.argv[1], *map(os.path.realpath, sys.argv[2:6])
LONG = "100000 5"  # longer than any of these tests waits


def submit(slurm, traces, script, *options, run=("--run", "mine")):
    """Runs `tscope-run sbatch` and returns the id of the job."""
    done = slurm(RUN, "--dir", traces.folder, *run, "--lib", LIBRARY, "--", "sbatch", "--parsable", *options, script)
    assert "or has only queued the job" in done.stderr, done.stderr
    return done.stdout.strip()


def started(traces, name, count):
    """Waits until `count` ranks have steps in their traces."""
    folder = os.path.join(traces.folder, name)
    wait_until(f"{count} traces in {folder}; there is {traces.runs()}", lambda: len(paths_under(folder)) == count)


def a_job_script(slurm, traces):
    job = submit(slurm, traces, slurm.job(f"srun -N 2 --ntasks-per-node=2 {RANK} 50\n"), "-N", "2", "--ntasks-per-node=2")
    slurm.wait_end(job)
    assert traces.runs() == ["mine"], traces.runs()
    document = traces.expect("mine", 4)
    hosts = sorted(rank["host"].partition("@")[0] for rank in document["distributed"]["ranks"])
    assert hosts == ["n1", "n1", "n2", "n2"], hosts


def two_steps_of_a_job(slurm, traces):
    job = submit(slurm, traces, slurm.job(f"srun -n 2 {RANK} 50\nsrun -n 3 {RANK} 50\n"), "-n", "3")
    slurm.wait_end(job)
    assert traces.runs() == ["mine", "mine-step1"], traces.runs()
    traces.expect("mine", 2)
    traces.expect("mine-step1", 3)


def a_step(slurm, traces):
    done = slurm(RUN, "--dir", traces.folder, "--run", "mine", "--lib", LIBRARY, "--", "srun", "-n", "2", RANK, "50")
    assert "2 ranks recorded" in done.stderr and done.stderr.strip().endswith("--run mine"), done.stderr
    traces.expect("mine", 2)


def inside_a_job_script(slurm, traces):
    """tscope-run in the script, around each srun: each becomes a run with the given name."""
    line = f"{RUN} --dir {traces.folder} --run {{}} --lib {LIBRARY} -- srun -n 2 {RANK} 50\n"
    job = slurm("sbatch", "--parsable", "-n", "2", slurm.job(line.format("a") + line.format("b"))).stdout.strip()
    slurm.wait_end(job)
    assert traces.runs() == ["a", "b"], traces.runs()
    traces.expect("a", 2)
    traces.expect("b", 2)


def an_array(slurm, traces):
    job = submit(slurm, traces, slurm.job(f"srun -n 2 {RANK} 50\n"), "-n", "2", "--array=1-3")
    slurm.wait_end(job)
    assert traces.runs() == ["mine-task1", "mine-task2", "mine-task3"], traces.runs()
    for name in traces.runs():
        traces.expect(name, 2)


def requeued(slurm, traces):
    """The first attempt is cut off, the second ends normally; they are two runs."""
    script = slurm.job(f'test "$SLURM_RESTART_COUNT" && steps=50 || steps="{LONG}"\nsrun -n 2 {RANK} $steps\n')
    job = submit(slurm, traces, script, "-n", "2", "--requeue")
    started(traces, "mine", 2)
    slurm("scontrol", "requeue", job)
    # It begins two minutes later by default.
    wait_until("requeued", lambda: "JobState=PENDING" in slurm.state(job))
    wait_until("begun anew", lambda: (slurm("scontrol", "update", f"JobId={job}", "StartTime=now", ok=None),
                                      "JobState=PENDING" not in slurm.state(job))[1])
    slurm.wait_end(job)
    assert traces.runs() == ["mine", "mine-requeue1"], traces.runs()
    traces.expect("mine", 2, complete=False)
    traces.expect("mine-requeue1", 2)


def cancelled(slurm, traces):
    job = submit(slurm, traces, slurm.job(f"srun -n 2 {RANK} {LONG}\n"), "-n", "2")
    started(traces, "mine", 2)
    slurm("scancel", job)
    slurm.wait_end(job)
    slurm.settled()
    traces.expect("mine", 2, complete=False)


def time_limit(slurm, traces):
    job = submit(slurm, traces, slurm.job(f"srun -n 2 {RANK} {LONG}\n"), "-n", "2", "--time=1")
    slurm.wait_end(job)
    assert "JobState=TIMEOUT" in slurm.state(job), slurm.state(job)
    slurm.settled()
    traces.expect("mine", 2, complete=False)


def a_whole_partition(slurm, traces):
    """No tscope-run at all: Slurm's TaskProlog preloads in every task, and runs name themselves."""
    slurm.job(f"echo export LD_PRELOAD={LIBRARY}\necho export TSCOPE_DIR={traces.folder}\n", "prolog")
    job = slurm("sbatch", "--parsable", "-n", "2", slurm.job(f"srun -n 2 {RANK} 50\nsrun -n 2 /bin/true\n")).stdout.strip()
    slurm.wait_end(job)
    assert traces.runs() == [f"slurm-{job}.0"], traces.runs()
    traces.expect(f"slurm-{job}.0", 2)


def nothing_exported(slurm, traces):
    """`srun --export=NONE` drops the preload; naming the variables keeps it."""
    keep = "LD_PRELOAD,TSCOPE_DIR,TSCOPE_RUN,TSCOPE_RUN_JOB"
    for export, expected in (("NONE", []), (keep, ["mine"])):
        slurm(RUN, "--dir", traces.folder, "--run", "mine", "--lib", LIBRARY, "--", "srun", f"--export={export}",
              "-n", "2", RANK, "50")
        assert traces.runs() == expected, (export, traces.runs())
    traces.expect("mine", 2)


def local_disks(slurm, traces):
    """Each node writes to its own disk, and one task on each node collects the traces."""
    local = os.path.join(slurm.folder, "local")
    name = "job-$SLURM_JOB_ID"
    script = slurm.job(f"""
export TSCOPE_RUN={name}
srun --ntasks-per-node=2 --export=ALL,LD_PRELOAD={LIBRARY} sh -c 'TSCOPE_DIR={local}/$SLURMD_NODENAME exec {RANK} 50'
srun --ntasks-per-node=1 sh -c 'mkdir -p {traces.folder}/$TSCOPE_RUN &&
    mv {local}/$SLURMD_NODENAME/$TSCOPE_RUN/*.tscope {traces.folder}/$TSCOPE_RUN/'
""")
    os.mkdir(local)
    job = slurm("sbatch", "--parsable", "-N", "2", "--ntasks-per-node=2", script).stdout.strip()
    slurm.wait_end(job)
    assert traces.runs() == [f"job-{job}"], traces.runs()
    traces.expect(f"job-{job}", 4)


def epilog(slurm, traces):
    """Each node keeps its traces on its own disk; Slurm's epilog reduces them there, and so does a second step on all nodes
    once both have done so. The report is that from all traces in one place."""
    local, shared = (os.path.join(slurm.folder, name) for name in ("local", "shared"))
    reduce = f"{os.path.join(os.path.dirname(REPORT), 'tscope-reduce')} {local}/$SLURMD_NODENAME"
    slurm.job(f"test -d {local}/$SLURMD_NODENAME && exec {reduce} --output {shared}/first\n", "epilog")
    os.mkdir(local)
    os.mkdir(shared)
    script = slurm.job(f"srun --ntasks-per-node=2 --export=ALL,LD_PRELOAD={LIBRARY},TSCOPE_RUN=mine "
                       f"sh -c 'TSCOPE_DIR={local}/$SLURMD_NODENAME exec {RANK} 50'\n")
    slurm.wait_end(slurm("sbatch", "--parsable", "-N", "2", "--ntasks-per-node=2", script).stdout.strip())
    wait_until("a summary of each node", lambda: len(glob.glob(f"{shared}/first/*.tscope-summary")) == 2)
    slurm("srun", "-N", "2", "--ntasks-per-node=1", "sh", "-c", f"exec {reduce} --with {shared}/first --output {shared}/second")
    for name in glob.glob(f"{local}/*/mine/*.tscope"):
        os.makedirs(os.path.join(traces.folder, "mine"), exist_ok=True)
        os.link(name, os.path.join(traces.folder, "mine", os.path.basename(name)))
    whole = traces.expect("mine", 4)
    expect_same(whole, json_of(REPORT, f"{shared}/second"), "epilog")


def pytorch(slurm, traces):
    python = python_or_skip()
    script = slurm.job(f"export OMP_NUM_THREADS=1\nsrun -N 2 -n 4 {python} {os.path.join(HERE, 'gloo_rank.py')}\n")
    job = submit(slurm, traces, script, "-N", "2", "-n", "4")
    slurm.wait_end(job)
    document = traces.expect("mine", 4)
    assert document["distributed"]["stragglers"] == [3], document["distributed"]["stragglers"]
    assert document["steps"]["count"] == 40, document["steps"]


CASES = {
    "job-script": a_job_script, "two-steps": two_steps_of_a_job, "step": a_step, "inside": inside_a_job_script,
    "array": an_array, "requeued": requeued, "cancelled": cancelled, "time-limit": time_limit,
    "partition": a_whole_partition, "export-none": nothing_exported, "local-disks": local_disks, "epilog": epilog, "pytorch": pytorch,
}

MORE = {"partition": "TaskProlog={folder}/prolog", "epilog": "Epilog={folder}/epilog"}  # lines of slurm.conf


def main():
    names = list(CASES) if CASE == "all" else [CASE]
    for name in names:
        with Slurm(MORE.get(name, "")) as slurm:
            traces = Traces(REPORT, os.path.join(slurm.folder, "traces"))
            CASES[name](slurm, traces)
            print(f"{name}: right")


if __name__ == "__main__":
    main()
