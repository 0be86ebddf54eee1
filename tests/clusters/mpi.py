#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs of Open MPI and MPICH: mpi.py openmpi|mpich TSCOPE-RUN TSCOPE-REPORT LIBTSCOPE CUDART SOURCE TSCOPE-REDUCE TRACEGEN.

Training, and `mpirun tscope-reduce` on nodes that share no folder. On this host, and on two hosts with different names, which the replacement of ssh simulates on this machine. Skipped,
with the reason, if the MPI is not installed or the host name cannot be set.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

from cluster import Traces
from observed import clean_environment, json_of, run
from outcomes import Skip
from summaries import expect_same

HERE = os.path.dirname(os.path.abspath(__file__))
KIND, RUN, REPORT, LIBRARY, CUDART, SOURCE, REDUCE, TRACEGEN = sys.argv[1], *map(os.path.realpath, sys.argv[2:9])
AGENT = os.path.join(HERE, "agent.sh")

# Options that make each launcher use the agent, with two ranks on each of two hosts.
TWO_HOSTS = {
    "openmpi": ["--mca", "plm_rsh_agent", AGENT, "--mca", "oob_tcp_if_include", "lo",
                "--mca", "btl_tcp_if_include", "lo", "--host", "hosta:2,hostb:2"],
    "mpich": ["-launcher", "ssh", "-launcher-exec", AGENT, "-iface", "lo", "-hosts", "hosta:2,hostb:2"],
}
# Open MPI passes a variable to other hosts only with an option; MPICH passes all of them.
KEEP = {"openmpi": ["-x", "LD_PRELOAD", "-x", "TSCOPE_DIR", "-x", "TSCOPE_RUN"], "mpich": []}


def need(folder):
    for program in (f"mpirun.{KIND}", f"mpicc.{KIND}"):
        if not shutil.which(program):
            raise Skip(f"no {program} here; Debian's packages libopenmpi-dev, openmpi-bin, libmpich-dev, mpich have it")
    done = run(AGENT, "hosta", "hostname", ok=None, cwd=folder)
    if done.stdout.strip() != "hosta":
        raise Skip(f"hosts cannot be given names here: {done.stderr.strip()}")


def build(folder):
    program = os.path.join(folder, "rank")
    includes = run(sys.executable, os.path.join(SOURCE, "scripts", "lib", "find_headers.py")).stdout.split()
    run(f"mpicc.{KIND}", "-DWITH_MPI", os.path.join(HERE, "rank.c"), "-o", program,
        *[f"-I{folder}" for folder in [os.path.join(SOURCE, "preload", "include"), *includes]],
        CUDART, f"-Wl,-rpath,{os.path.dirname(CUDART)}")
    return program


# hostb begins when a process of hosta has loaded MPI and so waits for the others.
LATE = """case $(hostname) in
hosta) echo $$ >{begun}.new && mv {begun}.new {begun} ;;
*) until pid=$(cat {begun} 2>/dev/null) && grep -q libmpi /proc/$pid/maps; do sleep 0.1; done ;;
esac
"""


# hostb has no place for what the other nodes send it.
NO_SCRATCH = """[ $(hostname) = hosta ] || export TMPDIR=/none
"""


def reduce_on_nodes(scratch, environment, name, before="", fails=False):
    """Each process reduces the folder with its host's name, after these commands; the summaries, and what was said."""
    script = os.path.join(scratch, "reduce.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{before}exec {REDUCE} --output {scratch}/{name} {scratch}/$(hostname)\n")
    os.chmod(script, 0o755)
    done = subprocess.run([f"mpirun.{KIND}", *TWO_HOSTS[KIND], "-n", "4", script], env=environment, cwd=scratch,
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done
    return os.path.join(scratch, name), done.stderr


def check_reduce(scratch, environment):
    """What rank 0 writes gives the report that all traces in one place give, also if a node comes late; a node without any
    is named, and so is a trace that is damaged. That a node could not write is in the exit status."""
    os.makedirs(scratch)
    traces = os.path.join(scratch, "traces")
    run(TRACEGEN, "--ranks", "8", "--ranks-per-host", "4", "--steps", "25", "--skew-hosts", "--slow-rank", "3", traces)
    for host, of in (("hosta", "node000"), ("hostb", "node001")):
        os.makedirs(os.path.join(scratch, host, "synthetic"))
        for path in glob.glob(os.path.join(traces, "*", f"{of}-*.tscope")):
            shutil.copy(path, os.path.join(scratch, host, "synthetic"))
    summaries, _ = reduce_on_nodes(scratch, environment, "both")
    assert len(os.listdir(summaries)) == 1, os.listdir(summaries)
    expect_same(json_of(REPORT, traces), json_of(REPORT, summaries), "reduce")
    summaries, _ = reduce_on_nodes(scratch, environment, "late", LATE.format(begun=os.path.join(scratch, "begun")))
    expect_same(json_of(REPORT, traces), json_of(REPORT, summaries), "a late node")
    summaries, said = reduce_on_nodes(scratch, environment, "unkept", NO_SCRATCH, fails=True)
    assert "hostb has left no summary: its ranks are missing" in said, said
    assert json_of(REPORT, summaries)["run"]["ranks_found"] == [0, 1, 2, 3]
    spoilt = sorted(glob.glob(os.path.join(scratch, "hostb", "synthetic", "*")))[0]
    with open(spoilt, "r+b") as file:
        file.truncate(100)
    summaries, _ = reduce_on_nodes(scratch, environment, "damaged")
    document = json_of(REPORT, summaries)
    assert len(document["run"]["ranks_found"]) == 7, document["run"]
    assert f"{spoilt} is cut inside its header" in " ".join(document["quality"]["notes"]), document["quality"]["notes"]
    shutil.rmtree(os.path.join(scratch, "hostb"))
    summaries, said = reduce_on_nodes(scratch, environment, "one")
    assert "hostb has left no summary: its ranks are missing" in said, said
    document = json_of(REPORT, summaries)
    assert document["run"]["ranks_found"] == [0, 1, 2, 3] and document["run"]["world_size"] == 8, document["run"]
    print(f"{KIND} reduce: right")


def main():
    environment = clean_environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                    OMPI_MCA_rmaps_base_oversubscribe="1", HYDRA_IFACE="lo")
    with tempfile.TemporaryDirectory(prefix="tscope-mpi-") as folder:
        need(folder)
        program = build(folder)
        for name, options, hosts in (("one-host", [], 1), ("two-hosts", [*TWO_HOSTS[KIND], *KEEP[KIND]], 2)):
            traces = Traces(REPORT, os.path.join(folder, name))
            done = subprocess.run([RUN, "--dir", traces.folder, "--run", name, "--lib", LIBRARY, "--",
                                   f"mpirun.{KIND}", *options, "-n", "4", program, "50"],
                                  env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done
            assert traces.runs() == [name], (traces.runs(), done.stderr)
            document = traces.expect(name, 4)
            named = {rank["host"] for rank in document["distributed"]["ranks"]}
            assert len(named) == hosts and (hosts == 1 or named == {"hosta", "hostb"}), named
            assert "4 ranks recorded" in done.stderr, done.stderr
            print(f"{KIND} {name}: right")
        check_reduce(os.path.join(folder, "reduce"), {**environment, "TMPDIR": folder})
        left = glob.glob(os.path.join(folder, "tscope-reduce-*"))
        assert not left, left


if __name__ == "__main__":
    main()
