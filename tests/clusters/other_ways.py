#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs with a special start: other_ways.py CASE TSCOPE-RUN TSCOPE-REPORT LIBTSCOPE RANK.

Tests what docs/clusters.md says under "When no trace appears" with real software: an allocator that is preloaded
already, sudo, and a container made of namespaces and a separate root folder. If one of them is not available, prints
the reason and skips the test.
"""
import glob
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import observed  # noqa: E402
from observed import clean_environment, json_of  # noqa: E402
from outcomes import Skip  # noqa: E402
from read_trace import paths_under  # noqa: E402

CASE, RUN, REPORT, LIBRARY, RANK = sys.argv[1], *map(os.path.realpath, sys.argv[2:6])
STEPS = "30"


def run(*command, **more):
    return observed.run(*command, ok=None, env=clean_environment(**more))


def expect_trace(done, traces):
    """The job succeeded, and one rank is in the report, from its beginning to its end."""
    assert done.returncode == 0 and "1 rank recorded" in done.stderr, done
    report = json_of(REPORT, traces)
    assert report["run"]["ranks_found"] == [0] and report["quality"]["partial_ranks"] == [], report["run"]


def expect_none(done, traces):
    """The job succeeded; tscope recorded nothing, and says what to do."""
    assert done.returncode == 0, done
    assert "no trace" in done.stderr and "put tscope run inside" in done.stderr, done.stderr
    assert not paths_under(traces)


def under_tscope(traces, *command):
    return RUN, "--dir", traces, "--lib", LIBRARY, "--", *command


def allocator(pattern, package):
    found = sorted(glob.glob(f"/usr/lib/*/{pattern}") + glob.glob(f"/usr/lib64/{pattern}"))
    if not found:
        raise Skip(f"no {pattern} here; Debian's package {package} has it")

    def case(folder):
        """It is still the job's allocator and comes first; the job is recorded."""
        traces, shown = os.path.join(folder, "traces"), os.path.join(folder, "order")
        job = f'echo "$LD_PRELOAD" > {shown}; grep -c {os.path.basename(found[0])[:12]} /proc/self/maps >> {shown}; exec {RANK} {STEPS}'
        expect_trace(run(*under_tscope(traces, "bash", "-c", job), LD_PRELOAD=found[0]), traces)
        with open(shown, encoding="utf-8") as file:
            order, mapped = file.read().split()
        assert order == f"{found[0]}:{LIBRARY}" and int(mapped) > 0, (order, mapped)
    return case


def sudo():
    if not shutil.which("sudo") or run("sudo", "-n", "true").returncode != 0:
        raise Skip("no sudo here that asks for no password")

    def case(folder):
        """It drops the preload, with -E too, and tscope says so; tscope run after sudo works."""
        for number, options in enumerate((["-n"], ["-n", "-E"])):
            traces = os.path.join(folder, f"none{number}")
            expect_none(run(*under_tscope(traces, "sudo", *options, RANK, STEPS)), traces)
        traces = os.path.join(folder, "traces")
        expect_trace(run("sudo", "-n", *under_tscope(traces, RANK, STEPS)), traces)
    return case


# A root folder with only the machine's programs, read-only, and the given mounts; separate processes, host name and
# mounts. As in a container, the environment of the host is not passed on.
CONTAINER = """
set -e
root=$1; shift
for place in usr bin lib lib64 etc; do
  [ -e /$place ] || continue
  if [ -L /$place ]; then cp -P /$place $root/$place; continue; fi
  mkdir $root/$place; mount --bind /$place $root/$place; mount -o remount,bind,ro $root/$place
done
mkdir $root/proc $root/dev $root/tmp; mount -t proc proc $root/proc; mount --bind /dev $root/dev
for place; do
  [ "$place" != -- ] || break
  mkdir -p $root/$place; mount --bind $place $root/$place
done
while [ "$1" != -- ]; do shift; done
shift
hostname in-a-container
exec env -i PATH=/usr/bin:/bin:/usr/sbin chroot $root "$@"
"""


def container():
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc"]
    done = run(*namespaces, "mount", "-t", "tmpfs", "none", "/mnt")
    if done.returncode != 0:
        raise Skip(f"no namespaces for a container here: {done.stderr.strip()}")

    def case(folder):
        """A tscope run outside has no effect inside; with the library and the folder of traces mounted, tscope run
        inside works."""
        build = os.path.commonpath([RUN, REPORT, LIBRARY, RANK])
        traces = os.path.join(folder, "traces")
        os.mkdir(traces)

        def inside(*command):
            root = tempfile.mkdtemp(dir=folder)
            return (*namespaces, "sh", "-c", CONTAINER, "sh", root, build, traces, "--", *command)

        expect_none(run(*under_tscope(traces, *inside(RANK, STEPS))), traces)
        expect_trace(run(*inside(*under_tscope(traces, RANK, STEPS))), traces)
        report = json_of(REPORT, traces)
        hosts = [rank["host"] for rank in report["distributed"]["ranks"]]
        assert hosts == ["in-a-container"], hosts
    return case


CASES = {
    "jemalloc": lambda: allocator("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": lambda: allocator("libtcmalloc*.so.4", "libtcmalloc-minimal4"),
    "sudo": sudo,
    "container": container,
}


def main():
    case = CASES[CASE]()
    with tempfile.TemporaryDirectory(prefix="tscope-ways-") as folder:
        case(folder)
    print(f"{CASE}: right")


if __name__ == "__main__":
    main()
