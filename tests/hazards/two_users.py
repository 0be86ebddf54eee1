#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What another user put in a shared place: two_users.py BUILD LIBTSCOPE, as root. Each test has a /tmp of its own."""
import base64
import os
import shlex
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import trace_header  # noqa: E402
from built import built  # noqa: E402
from observed import clean_environment  # noqa: E402
from processes import AS_NOBODY, NOBODY  # noqa: E402

BUILD, LIBRARY = os.path.realpath(sys.argv.pop(1)), os.path.realpath(sys.argv.pop(1))
HAZARD = built(BUILD, "hazard")
ROOT = 0
OWN_TMP = ["unshare", "--mount", "--propagation", "private"]


def why_not():
    if os.geteuid() != 0:
        return "another user's files can be made only by root"
    if subprocess.run([*OWN_TMP, "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True, check=False).returncode:
        return "this machine does not let root mount a /tmp for the test"
    return None


def in_own_tmp(*lines):
    """Runs shell commands where /tmp is empty at first, but for a build that is there; returns what they printed and
    the lines on stderr."""
    own = ["mount -t tmpfs -o mode=1777 none /tmp"]
    if BUILD.startswith("/tmp/"):
        own = [f"mount --bind {BUILD} /mnt", *own, f"mkdir -p {BUILD}", f"mount --move /mnt {BUILD}"]
    script = "\n".join(["set -e", *own, "cd /", *lines])
    # The test runner may have put other stand-ins of libcudart first.
    done = subprocess.run([*OWN_TMP, "sh", "-c", script], env=clean_environment(LD_LIBRARY_PATH=os.path.dirname(HAZARD)),
                          capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout, done.stderr


def as_user(user, *command):
    return shlex.join([*(AS_NOBODY if user == NOBODY else []), *command])


def job(user):
    return as_user(user, built(BUILD, "tscope-run"), "--lib", LIBRARY, "--", HAZARD, "plain", "1000")


LIST = as_user(ROOT, built(BUILD, "tscope-report"), "--list") + " | cat"


@unittest.skipIf(why_not(), why_not())
class DefaultDirectory(unittest.TestCase):
    def test_the_first_user_has_the_documented_one(self):
        out, err = in_own_tmp(job(ROOT), "ls -d /tmp/tscope*", LIST)
        self.assertIn("/tmp/tscope\n", out)
        self.assertNotIn("/tmp/tscope-0", out)
        self.assertNotIn("another user", err)

    def test_the_second_user_has_another_and_every_program_finds_it(self):
        first = as_user(NOBODY, "mkdir", "-m", "755", "/tmp/tscope")
        out, err = in_own_tmp(
            first, job(ROOT), "ls /tmp/tscope-0", LIST, as_user(ROOT, built(BUILD, "tscope-report"), "--format", "json"),
            as_user(ROOT, built(BUILD, "tscope-top"), "--once"), as_user(ROOT, built(BUILD, "tscope-report"), "--width", "90"))
        self.assertIn("1 rank recorded", err)
        self.assertIn("tscope-report /tmp/tscope-0 --run", err)
        self.assertNotIn("another user", err)
        self.assertEqual(out.count('"run":'), 1)
        self.assertIn("1 rank", out)

    def test_other_kinds_of_squatting(self):
        for squat in (as_user(NOBODY, "touch", "/tmp/tscope"), as_user(NOBODY, "ln", "-s", "/root", "/tmp/tscope"),
                      as_user(ROOT, "ln", "-s", "/root", "/tmp/tscope"), as_user(NOBODY, "mkfifo", "/tmp/tscope")):
            out, err = in_own_tmp(squat, job(ROOT), "ls /tmp/tscope-0", LIST, "ls /root | grep -c tscope || true")
            self.assertIn("1 rank recorded", err, squat)
            self.assertTrue(out.endswith("\n0\n"), (squat, out))

    def test_the_newest_of_both_is_read(self):
        one = job(ROOT).replace(" -- ", " --run {} -- ")
        out, _ = in_own_tmp(as_user(NOBODY, "mkdir", "/tmp/tscope"), one.format("early"), "rmdir /tmp/tscope", "sleep 0.05",
                            one.format("late"), LIST)
        self.assertIn("late", out)
        self.assertNotIn("early", out)

    def test_a_directory_taken_as_well_is_refused_in_one_line(self):
        out, err = in_own_tmp(as_user(NOBODY, "mkdir", "/tmp/tscope", "/tmp/tscope-0"), job(ROOT),
                              "ls /tmp/tscope /tmp/tscope-0")
        self.assertIn("/tmp/tscope-0 belongs to another user", err)
        self.assertNotIn(".tscope", out)

    def test_a_report_says_whose_directory_it_reads(self):
        out, err = in_own_tmp(job(NOBODY), LIST, as_user(ROOT, built(BUILD, "tscope-top"), "--once"))
        self.assertEqual(err.count("/tmp/tscope belongs to another user (number 65534)"), 2)
        self.assertIn("1 rank", out)


SECRET = "/tmp/secret"
# The job puts a trace of its own process there, which then dies: FOLDER OWNER EVENTS NAMESPACE [NODE].
PLANT = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
sys.argv[1:1] = [{BUILD!r}, {LIBRARY!r}]
from two_users import plant
plant(os.getppid(), sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
"""


def plant(pid, folder, owner, events, namespace, node=""):
    os.makedirs(folder, exist_ok=True)
    header = bytearray(4096)
    trace_header.put(header, magic=b"tscope\r\n", version_major=1, version_minor=1, byte_order_mark=0x01020304,
                     header_bytes=4096, chunk_bytes=65536, pid=pid, host=(node + socket.gethostname()).encode(), run=b"run",
                     memory_events=events.encode(),
                     pid_namespace=os.stat("/proc/self/ns/pid").st_ino if namespace == "own" else int(namespace))
    path = os.path.join(folder, f"host-{pid}-1.tscope")
    with open(path, "wb") as file:
        file.write(header)
    os.chown(path, owner, owner)


def reaped_trace(folder, folder_owner, file_owner, events, namespace, launcher, *node):
    """The header of a trace of a process that `launcher` (words of a shell) saw being killed, afterwards."""
    inner = shlex.join([sys.executable, "-c", PLANT, folder, str(file_owner), events, namespace, *node]) + "; kill -9 $$"
    out, _ = in_own_tmp(
        f"mkdir -p {folder}", f"chown {folder_owner} /tmp/traces {folder}",
        f"echo 'oom_kill 42' > {SECRET}; chmod 600 {SECRET}", f"mkfifo {folder}/host-1-1.tscope",
        f"{launcher} sh -c {shlex.quote(inner)} || true", f"base64 {folder}/host-[0-9]?*-1.tscope")
    return trace_header.of(base64.b64decode(out))


RUN_IT = f"TSCOPE_DIR=/tmp/traces TSCOPE_RUN=run {shlex.quote(built(BUILD, 'tscope-run'))} --lib {shlex.quote(LIBRARY)} -- "


def preloaded(wait="waitpid(child, 0)"):
    return (f"TSCOPE_DIR=/tmp/traces TSCOPE_RUN=run LD_PRELOAD={shlex.quote(LIBRARY)} {sys.executable} -c "
            f"'import os, sys; child = os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); os.{wait}' ")


@unittest.skipIf(why_not(), why_not())
class HowAProcessEnded(unittest.TestCase):
    """tscope-run and a preloaded launcher write how a process died into its trace, and into no other file."""

    def check(self, folder_owner, file_owner, events, expected, namespace="0"):
        for launcher in (RUN_IT, preloaded()):
            header = reaped_trace("/tmp/traces/run", folder_owner, file_owner, events, namespace, launcher)
            self.assertEqual((header.reaped_signal, header.oom_kills), expected, launcher)

    def test_in_its_own_trace(self):
        self.check(ROOT, ROOT, "", (9, 0))
        self.check(ROOT, ROOT, "", (9, 0), "own")

    def test_however_the_launcher_waits(self):
        for wait in ("wait()", "wait3(0)", "wait4(child, 0)", "waitid(os.P_ALL, 0, os.WEXITED)",
                     "waitid(os.P_PIDFD, os.pidfd_open(child), os.WEXITED)",
                     "waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT); os.waitpid(child, 0)"):
            header = reaped_trace("/tmp/traces/run", ROOT, ROOT, "", "0", preloaded(wait))
            self.assertEqual(header.reaped_signal, 9, wait)

    def test_where_slurm_has_a_name_of_its_own_for_the_host(self):
        for node, expected in (("node7@", 9), ("another-", 0)):
            header = reaped_trace("/tmp/traces/run", ROOT, ROOT, "", "0", preloaded(), node)
            self.assertEqual(header.reaped_signal, expected, node)

    def test_in_whichever_folder_its_run_has(self):
        """Whoever waits has not all variables of those that it started, which name the run."""
        for folder, settings in (("run-task3", "TSCOPE_RUN_JOB=none"), ("run-requeue1-step2", "TSCOPE_RUN_JOB=none"),
                                 ("slurm-7.2", "TSCOPE_RUN="), ("slurm-7-requeue1", "TSCOPE_RUN=")):
            for launcher in (RUN_IT, preloaded()):
                launcher = launcher.replace("TSCOPE_RUN=run", f"SLURM_JOB_ID=7 SLURM_STEP_ID=2 TSCOPE_RUN=run {settings}")
                header = reaped_trace(f"/tmp/traces/{folder}", ROOT, ROOT, "", "0", launcher)
                self.assertEqual(header.reaped_signal, 9, (folder, launcher))

    def test_not_by_a_launcher_that_is_off(self):
        header = reaped_trace("/tmp/traces/run", ROOT, ROOT, "", "0", "TSCOPE=off " + preloaded())
        self.assertEqual(header.reaped_signal, 0)

    def test_not_in_a_trace_from_another_pid_namespace(self):
        self.check(ROOT, ROOT, "", (0, 0), "1")

    def test_a_path_in_the_trace_is_not_opened(self):
        self.check(ROOT, ROOT, SECRET, (9, 0))

    def test_not_in_another_users_trace(self):
        self.check(ROOT, NOBODY, SECRET, (0, 0))

    def test_not_in_another_users_directory(self):
        self.check(NOBODY, ROOT, SECRET, (0, 0))


if __name__ == "__main__":
    unittest.main()
