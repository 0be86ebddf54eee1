# SPDX-License-Identifier: MIT
"""Ranks asked for their stacks through the run's folder: PYTHON asked.py TSCOPE-STACKS LIBTSCOPE [TIMES].

Ranks of this Python stall in different ways. What the ranks answer is compared with where they stand, again and
again; also by somebody on another host, who can read nothing but the folder."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from observed import observed_environment  # noqa: E402
from processes import as_on_another_host, wait_for_state  # noqa: E402

WAYS = ["in_a_c_call", "in_c_with_the_gil", "asleep", "in_a_lock", "in_a_device_wait", "running", "stopped", "killed"]
ANSWER = WAYS[:6]


def start(folder, library, rank, way):
    environment = observed_environment(library, folder, TSCOPE_RUN="run", RANK=str(rank), WORLD_SIZE=str(len(WAYS)))
    job = subprocess.Popen([sys.executable, os.path.join(HERE, "asked_rank.py"), way], env=environment, cwd=HERE,
                           stdout=subprocess.PIPE, universal_newlines=True)
    assert job.stdout.readline().strip() == str(job.pid), way
    return job


def ask(where, program, *arguments):
    done = subprocess.run([*where, program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def functions_of(printed):
    """{rank: {thread: [function, ...]}}, innermost first."""
    found = {}
    for line in printed.splitlines():
        rank, tid, _, _, function = line.split("\t")
        found.setdefault(int(rank), {}).setdefault(int(tid), []).append(function.rpartition(".")[2])
    return found


def check_frames(printed, jobs, ways):
    found = functions_of(printed)
    for rank, way in enumerate(WAYS):
        if way not in ways:
            assert rank not in found, (way, found)
            continue
        # In 3.14 posix_spawn() is a function of Python's own; everything else is C.
        assert found[rank][jobs[rank].pid][:3] == [way, "train", "<module>"], (way, found[rank])
        others = [functions for tid, functions in found[rank].items() if tid != jobs[rank].pid]
        assert len(others) == 1 and others[0][0] == "asleep", (way, others)


def check_words(page):
    says = {int(rank): words for rank, words in re.findall(r"^rank (\d+)  now  (.*)$", page, re.M)}
    for way, words in [("in_c_with_the_gil", "keeps the GIL: at asked_rank.py:\\d+ \\(in_c_with_the_gil\\)"),
                       ("asleep", "sleeps: at asked_rank.py:\\d+ \\(asleep\\)"),
                       ("in_a_lock", "waits for a lock or an event: at asked_rank.py:\\d+ \\(in_a_lock\\)"),
                       ("in_a_device_wait", "input or output: at asked_rank.py"),
                       ("running", "runs")]:
        assert re.match(words, says[WAYS.index(way)]), (way, says)


def check(program, folder, jobs, times):
    elsewhere = as_on_another_host()
    for _ in range(times):
        check_frames(ask([], program, "--frames", folder), jobs, ANSWER + ["stopped"])
    page = ask([], program, folder)
    check_words(page)
    assert "it is stopped, on " in page and re.search("^on .* has died: rank 7$", page, re.M), page
    if elsewhere:
        for _ in range(times):
            check_frames(ask(elsewhere, program, "--frames", "--wait=2", folder), jobs, ANSWER)
        page = ask(elsewhere, program, "--wait=2", folder)
        check_words(page)
        assert re.search("^on .* is stopped: rank 6$", page, re.M), page
        assert re.search("^on .* does not answer: rank 7$", page, re.M), page
    left = [name for name in os.listdir(os.path.join(folder, "run")) if not name.endswith(".tscope")]
    assert not left, left
    print(sys.version.split()[0], "%d times on this host%s" % (
        times, " and as on another one" if elsewhere else "; no right to be another host"))


def main():
    program, library, times = sys.argv[1], os.path.abspath(sys.argv[2]), int((sys.argv + ["1"])[3])
    folder = tempfile.mkdtemp(prefix="tscope-asked-")
    jobs = []
    try:
        for rank, way in enumerate(WAYS):
            jobs.append(start(folder, library, rank, way))
        for job, way in zip(jobs, WAYS):
            wait_for_state(job.pid, {"running": "R", "in_a_device_wait": "D"}.get(way, "S"))
        os.kill(jobs[WAYS.index("stopped")].pid, signal.SIGSTOP)
        wait_for_state(jobs[WAYS.index("stopped")].pid, "T")
        jobs[WAYS.index("killed")].kill()
        jobs[WAYS.index("killed")].wait()
        check(program, folder, jobs, times)
    finally:
        for job in jobs:
            job.kill()
        for name in os.listdir(folder):
            if name.startswith("pipe-"): # lets the child of vfork() go on
                os.close(os.open(os.path.join(folder, name), os.O_RDWR))
        for job in jobs:
            job.wait()
        shutil.rmtree(folder, ignore_errors=True)


main()
