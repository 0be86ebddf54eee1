#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whose requests for stacks a rank answers: who_may_ask.py BUILD LIBTSCOPE."""
import glob
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import at_once  # noqa: E402
from built import built  # noqa: E402
from in_folder import InFolder  # noqa: E402
from observed import observed_environment  # noqa: E402
from outcomes import wait_until  # noqa: E402
from processes import AS_NOBODY, NOBODY, as_on_another_host, children_of  # noqa: E402

BUILD, LIBRARY = os.path.realpath(sys.argv.pop(1)), os.path.realpath(sys.argv.pop(1))
STACKS, REPORT = (built(BUILD, name) for name in ("tscope-stacks", "tscope-report"))
RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lines", "asked_rank.py")
LOOKS_S = 2.5  # in which a rank looks twice
needs_root = unittest.skipIf(os.geteuid() != 0, "only root can be another user")


def request(number):
    return f"tscope-stacks 1 {number:016x}\n"


class Requests(InFolder):
    def setUp(self):
        super().setUp()
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            job.kill()
            job.communicate(timeout=10)

    def start(self, drop=(), ranks=1, how=()):
        """Starts ranks that sleep; returns the run's folder."""
        if drop:
            os.chmod(self.folder, 0o755)
            os.mkdir(self.folder + "/traces")
            os.chown(self.folder + "/traces", NOBODY, NOBODY)
        traces = self.folder + ("/traces" if drop else "")
        for rank in range(ranks):
            self.jobs.append(subprocess.Popen(
                [*how, *drop, sys.executable, RANK, "asleep"], stdout=subprocess.PIPE, text=True,
                env=observed_environment(LIBRARY, traces, TSCOPE_RUN="run", RANK=str(rank), WORLD_SIZE=str(ranks))))
            self.jobs[-1].stdout.readline()
        return traces + "/run"

    def ask(self, run, *options, drop=()):
        return subprocess.run([*drop, STACKS, *options, run], capture_output=True, text=True, check=False, timeout=60)

    def answers(self, run):
        found = {}
        for path in glob.glob(run + "/.*.tscope.stacks"):
            with open(path, encoding="utf-8") as file:
                found[path] = file.readline()
        return found

    def check_unharmed(self, run):
        self.assertTrue(all(job.poll() is None for job in self.jobs))
        asked = self.ask(run)
        self.assertEqual(asked.stdout.count("  now  "), len(self.jobs), (asked.stdout, asked.stderr))

    def leave(self, run, number, drop=()):
        """A request as a program of that user would leave it."""
        script = f"printf '{request(number).strip()}\\n' > {run}/new && mv -f {run}/new {run}/.stacks-request"
        subprocess.run([*drop, "sh", "-c", script], check=True)

    @needs_root
    def test_root_is_answered_by_another_users_job(self):
        run = self.start(AS_NOBODY)
        self.check_unharmed(run)
        self.assertEqual([name for name in os.listdir(run) if not name.endswith(".tscope")], [])

    @needs_root
    def test_another_user_is_not_answered(self):
        run = self.start()
        for folder in (self.folder, run):
            os.chmod(folder, 0o777)
        self.leave(run, 7, AS_NOBODY)
        time.sleep(LOOKS_S)
        self.assertEqual(self.answers(run), {})
        for trace in glob.glob(run + "/*.tscope"):
            os.chmod(trace, 0o644)
        refused = self.ask(run, "--wait=0", drop=AS_NOBODY)
        self.assertIn("answer only their own user (number 0) and root", refused.stderr)
        self.check_unharmed(run)

    def check_no_request(self, make):
        run = self.start()
        make(run + "/.stacks-request")
        time.sleep(LOOKS_S)
        self.assertEqual(self.answers(run), {})
        if os.path.isdir(run + "/.stacks-request"):
            os.rmdir(run + "/.stacks-request")
        else:
            os.remove(run + "/.stacks-request")
        self.check_unharmed(run)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_link_to_a_request(self):
        good = os.path.join(self.folder, "good")
        self.write(good, request(9))
        self.check_no_request(lambda path: os.symlink(good, path))

    def test_a_pipe(self):
        self.check_no_request(os.mkfifo)

    def test_a_folder(self):
        self.check_no_request(os.mkdir)

    def test_nothing_in_the_file(self):
        self.check_no_request(lambda path: self.write(path, ""))

    def test_no_number(self):
        self.check_no_request(lambda path: self.write(path, request(0)))

    def test_bytes_without_a_meaning(self):
        self.check_no_request(lambda path: self.write(path, "\0" * 5000))

    def test_another_version(self):
        self.check_no_request(lambda path: self.write(path, "tscope-stacks 2 9\n"))

    def test_a_flood_is_bounded(self):
        """However many requests there are, a rank answers at most one a second."""
        run, seen = self.start(), set()
        begin = time.monotonic()
        for number in range(1, 60):
            self.leave(run, number)
            seen.update(self.answers(run).values())
            time.sleep(0.05)
        self.assertLessEqual(len(seen), time.monotonic() - begin + 1)
        os.remove(run + "/.stacks-request")
        self.check_unharmed(run)

    def test_several_ask_at_once(self):
        run = self.start(ranks=3)
        asking = [subprocess.Popen([STACKS, run], stdout=subprocess.PIPE, text=True) for _ in range(4)]
        for process in asking:
            self.assertEqual(process.communicate(timeout=60)[0].count("  now  "), 3)

    def test_a_request_that_was_left_behind(self):
        run = self.start()
        self.leave(run, 5)
        old = time.time() - 60
        os.utime(run + "/.stacks-request", (old, old))
        self.check_unharmed(run)

    def test_who_asks_dies(self):
        run = self.start()
        os.kill(self.jobs[0].pid, signal.SIGSTOP)
        there = as_on_another_host()
        asking = subprocess.Popen([*(there or []), STACKS, run], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while there and asking.poll() is None and not os.path.exists(run + "/.stacks-request"):
            time.sleep(0.01)
        asking.kill()
        asking.wait()
        os.kill(self.jobs[0].pid, signal.SIGCONT)
        self.check_unharmed(run)

    def check_in_namespaces(self, *more):
        how = ["unshare", "--pid", "--kill-child", *more]
        if subprocess.run([*how, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("unshare --pid is refused here")
        run = self.start(ranks=2, how=how)
        self.check_unharmed(run)
        parents = [job.pid for job in self.jobs]
        ranks = [rank for pid in parents for rank in children_of(pid)]
        os.kill(ranks[1], signal.SIGSTOP)
        said = self.ask(run).stdout
        self.assertRegex(said, "rank 0  now")
        self.assertRegex(said, "rank 1 .*stopped")
        os.kill(ranks[1], signal.SIGKILL)
        self.jobs[1].wait()
        said = self.ask(run)
        self.assertRegex(said.stdout, "rank 0  now")
        self.assertRegex(said.stderr + said.stdout, "has died: rank 1")
        listed = subprocess.run([REPORT, "--list", self.folder], capture_output=True, text=True, check=False)
        self.assertIn("  runs", listed.stdout)

    @needs_root
    def test_ranks_in_pid_namespaces_of_their_own(self):
        """As in containers: the first process of each has the number 1, which here is somebody else's."""
        self.check_in_namespaces("--mount-proc")

    @needs_root
    def test_ranks_in_pid_namespaces_that_proc_does_not_show(self):
        self.check_in_namespaces()

    @needs_root
    def test_in_such_a_namespace_nobody_elses_children_are_peers(self):
        """The rank's parent has the number that here is this test's, one of whose children is stopped."""
        with subprocess.Popen(["sleep", "100"]) as stopped:
            os.kill(stopped.pid, signal.SIGSTOP)
            script = f"""echo {os.getpid() - 1} > /proc/sys/kernel/ns_last_pid && sh -c '"$@"; true' sh "$@"; true"""
            run = self.start(how=("unshare", "--pid", "--kill-child", "sh", "-c", script, "sh"))
            self.leave(run, 7)
            answer, = wait_until("an answer", lambda: glob.glob(run + "/.*.tscope.stacks"))
            said = wait_until("all of it", lambda: (text := pathlib.Path(answer).read_text("utf-8")).endswith("end\n") and text)
            stopped.kill()
        self.assertNotIn("\npeer ", said)

    @needs_root
    def test_a_folder_that_the_job_cannot_write(self):
        run = self.start(AS_NOBODY)
        os.chmod(run, 0o500)
        asked = self.ask(run, "--wait=1.5")
        self.assertIn("does not answer", asked.stdout)
        self.assertIn("asleep", asked.stdout)  # it was read from outside
        os.chmod(run, 0o700)
        self.check_unharmed(run)


if __name__ == "__main__":
    at_once.main(6)
