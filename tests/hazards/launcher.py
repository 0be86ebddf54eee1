#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A command must behave the same under tscope-run: launcher.py TSCOPE-RUN LIBTSCOPE PROGRAMS."""
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import clean_environment, observed_environment  # noqa: E402
from outcomes import wait_until  # noqa: E402

RUN, LIBRARY, PROGRAMS = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
LAUNCHING, LIBRARIES = os.path.join(PROGRAMS, "hazard"), {"LD_LIBRARY_PATH": PROGRAMS}

# Prints when it is ready, counts the signals of one kind until its input ends, and prints the count.
COUNTER = """
import os, signal, sys
count = [0]
def take(*_): count[0] += 1
signal.signal(int(sys.argv[1]), take)
os.write(1, b"ready\\n")
while os.read(0, 1): pass
print(count[0])
"""

# What schedulers and timers send: LSF and SGE use SIGXCPU, Slurm whatever the user names, and an alarm survives exec().
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT,
             signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, signal.SIGABRT, signal.SIGWINCH, signal.SIGRTMIN)


def run(*command, options=(), **more):
    environment = observed_environment(None, tempfile.gettempdir() + "/tscope-launcher-none")
    return subprocess.run([RUN, "--lib", LIBRARY, *options, "--", *command], env={**environment, **more.pop("env", {})},
                          capture_output=True, text=True, check=False, **more)


def start_counter(number, **more):
    child = subprocess.Popen([RUN, "--lib", LIBRARY, "--quiet", "--", sys.executable, "-c", COUNTER, str(int(number))],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             **more)
    assert child.stdout.readline() == b"ready\n"
    return child


def signal_count(child):
    """The count of signals. The pause covers tscope-run's check whether the command also got the signal."""
    time.sleep(0.2)
    output, _ = child.communicate()
    return int(output)


class Launcher(unittest.TestCase):
    def test_exit_status_passes_through(self):
        for status in (0, 1, 2, 77, 143, 255):
            self.assertEqual(run("sh", "-c", f"exit {status}").returncode, status)

    def test_death_by_signal_passes_through(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGINT):
            self.assertEqual(run("sh", "-c", f"kill -{int(number)} $$").returncode, -number)

    def test_command_that_cannot_run(self):
        self.assertEqual(run("/nonexistent/program").returncode, 127)
        self.assertEqual(run("/").returncode, 126)

    def test_streams_pass_through(self):
        done = run("sh", "-c", "cat; echo err >&2", input="in")
        self.assertEqual(done.stdout, "in")
        self.assertEqual(done.stderr.splitlines()[0], "err")

    def test_ends_with_one_line_naming_the_report(self):
        done = run("true", options=["--run", "my-run"])
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertRegex(done.stderr, r"tscope-report \S+ --run my-run\n$")
        self.assertEqual(run("true", options=["--quiet"]).stderr, "")

    def test_environment(self):
        done = run("sh", "-c", 'echo "$LD_PRELOAD|$TSCOPE_DIR|$TSCOPE_RUN"', options=["-d", "here"])
        preload, directory, name = done.stdout.strip().split("|")
        self.assertEqual(preload, os.path.realpath(LIBRARY))
        self.assertEqual(directory, os.path.join(os.getcwd(), "here"))
        self.assertTrue(name)

    def test_existing_preload_stays_first(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "other.so")
            subprocess.run(["cc", "-shared", "-o", other, "-x", "c", "/dev/null"], check=True)
            done = run("sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": other})
            self.assertEqual(done.stdout.strip(), other + ":" + os.path.realpath(LIBRARY))

    def test_another_librarys_path_may_begin_with_its_own(self):
        library = os.path.realpath(LIBRARY)
        for before, expected in ((library + ".1", library + ".1:" + library), ("a.so:" + library, "a.so:" + library)):
            done = run("sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": before})
            self.assertEqual(done.stdout.strip(), expected)

    def test_behind_a_launcher_that_clears_the_environment(self):
        bare = ("env", "-i", "/bin/sh", "-c", "echo ${LD_PRELOAD-none}")
        done = run(*bare)
        self.assertEqual(done.stdout, "none\n")
        self.assertIn("put tscope run inside", done.stderr)
        done = subprocess.run(["env", "-i", RUN, "--lib", LIBRARY, "--quiet", "--", *bare[2:]],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), os.path.realpath(LIBRARY))

    def test_two_runs_have_different_names_but_copies_of_one_launcher_set_none(self):
        show = ("sh", "-c", "echo ${TSCOPE_RUN-none}")
        self.assertNotEqual(run(*show).stdout, run(*show).stdout)
        self.assertEqual(run(*show, env={"SLURM_STEP_ID": "0"}).stdout, "none\n")
        self.assertEqual(run(*show, env={"TSCOPE_RUN": "mine"}).stdout, "mine\n")

    def test_an_empty_variable_is_as_good_as_none(self):
        self.assertNotEqual(run("sh", "-c", "echo $TSCOPE_RUN", env={"TSCOPE_RUN": ""}).stdout, "\n")
        done = run("true", env={"TSCOPE_RUN": "", "SLURM_STEP_ID": "0", "RANK": ""})
        self.assertRegex(done.stderr, r"tscope-report \S+\n$")

    def test_one_of_several_copies_has_the_last_word(self):
        for ranks, speaks in (({"SLURM_PROCID": "0"}, True), ({"SLURM_PROCID": "1"}, False),
                              ({"SLURM_PROCID": "0", "RANK": "1"}, False), ({"SLURM_PROCID": "1", "RANK": "0"}, True)):
            self.assertEqual(run("true", env=ranks).stderr != "", speaks, ranks)

    def test_missing_library_does_not_stop_the_job(self):
        done = subprocess.run([RUN, "--lib", "/nonexistent.so", "--", "echo", "ran"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.returncode), ("ran\n", 0))

    def test_directory_that_does_not_answer_holds_up_neither_the_command_nor_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            frozen = {"LD_PRELOAD": os.path.join(PROGRAMS, "libfrozen_disk.so"),
                      "FROZEN_DISK": os.path.join(folder, "traces")}
            options = ["--dir", frozen["FROZEN_DISK"], "--max-size", "1G"]
            with open(frozen["FROZEN_DISK"] + ".frozen", "w", encoding="ascii"):
                pass
            done = run("sh", "-c", 'rm "$FROZEN_DISK.frozen"; exit 7', options=options, env=frozen, timeout=50)
            self.assertEqual((done.returncode, done.stdout), (7, ""))
            self.assertIn("traces does not answer; the command runs all the same\n", done.stderr)
            done = run("sh", "-c", 'touch "$FROZEN_DISK.frozen"; exit 7', options=options, env=frozen, timeout=50)
            self.assertEqual((done.returncode, done.stdout), (7, ""))
            self.assertRegex(done.stderr, "traces does not answer now; then see the report with: tscope-report .*traces\n$")

    def test_room_that_is_to_stay_free_is_what_the_settings_say(self):
        script = 'mount -t tmpfs -o size=4m none "$1" && head -c 3840K /dev/zero >"$1/filler" && shift && exec "$@"'
        with tempfile.TemporaryDirectory() as folder:
            def said_with(**env):
                return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", folder, RUN, "--lib", LIBRARY,
                                       "--dir", os.path.join(folder, "traces"), "true"],
                                      env=clean_environment(**env), capture_output=True, text=True, check=False)
            if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
                self.skipTest("no right to mount a small file system")
            self.assertIn("is full", said_with().stderr)
            self.assertNotIn("is full", said_with(TSCOPE_DISK_FREE="0").stderr)

    def test_signal_that_asks_to_end_does_not_wait_for_the_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            disk = os.path.join(folder, "traces")
            with open(disk + ".frozen", "w", encoding="ascii"):
                pass
            child = subprocess.Popen([RUN, "--lib", LIBRARY, "--dir", disk, "sleep", "100"],
                                     env=clean_environment(FROZEN_DISK=disk, LD_PRELOAD=os.path.join(PROGRAMS, "libfrozen_disk.so")),
                                     stderr=subprocess.PIPE)
            time.sleep(0.5)
            child.terminate()
            said = child.communicate(timeout=50)[1]
            self.assertEqual(child.returncode, -signal.SIGTERM)
            self.assertNotIn(b"runs all the same", said) # which is said after the whole time

    def test_signal_to_tscope_run_reaches_the_command_once(self):
        for number in PASSED_ON:
            child = start_counter(number)
            os.kill(child.pid, number)
            self.assertEqual(signal_count(child), 1, number)

    def test_command_does_not_outlive_tscope_run(self):
        with start_counter(signal.SIGTERM) as child:
            child.kill()
            child.wait()
            self.assertEqual(child.stdout.read(), b"")  # ends when the command's end of the pipe closes

    def test_a_reader_waits_for_the_command_alone(self):
        """It closes its output, and another descriptor that it got, and goes on until its input ends."""
        reader, writer = os.pipe()
        with subprocess.Popen([RUN, "--lib", LIBRARY, "--", "sh", "-c", f"exec >&- {writer}>&-; read line"], pass_fds=[writer],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            os.close(writer)
            for output in child.stdout, os.fdopen(reader, "rb"):
                with output:
                    self.assertEqual(select.select([output], [], [], 20), ([output], [], []))
                    self.assertEqual(output.read(), b"")
            child.stdin.close()
        self.assertEqual(child.returncode, 1)

    def test_a_folder_may_be_named_by_dots(self):
        with tempfile.TemporaryDirectory(prefix="tscope-dots-") as folder:
            inner = os.path.join(folder, "inner")
            os.mkdir(inner)
            for given, meant in ((".", inner), ("./", inner), ("..", folder), ("sub", os.path.join(inner, "sub"))):
                for options, env in ((["--dir", given], LIBRARIES), ([], {**LIBRARIES, "TSCOPE_DIR": given})):
                    name = f"run{len(os.listdir(folder)) + len(os.listdir(inner))}{len(options)}"
                    run(LAUNCHING, "plain", "10", options=[*options, "--run", name], env=env, cwd=inner)
                    self.assertEqual(len(os.listdir(os.path.join(meant, name))), 1, (given, options))

    def test_programs_beside_the_ranks_are_no_ranks(self):
        with tempfile.TemporaryDirectory(prefix="tscope-beside-") as folder:
            said = run("sh", "-c", f"{LAUNCHING} plain 10; RANK=3 {LAUNCHING} plain 10", options=["--dir", folder], env=LIBRARIES)
            self.assertIn("1 rank recorded (2 processes)", said.stderr)
            said = run("sh", "-c", f"{LAUNCHING} plain 10; {LAUNCHING} plain 10", options=["--dir", folder], env=LIBRARIES)
            self.assertIn("2 ranks recorded", said.stderr)

    def test_exit_status_passes_through_when_nobody_reads_our_lines(self):
        for options in ((), ("--dir", "/proc/none")):  # the second says before and after that it is off
            reader, writer = os.pipe()
            os.close(reader)
            child = subprocess.run([RUN, "--lib", LIBRARY, *options, "--", "sh", "-c", "echo ran; sleep 0.1; exit 7"],
                                   stdout=subprocess.PIPE, stderr=writer, check=False, env=clean_environment())
            os.close(writer)
            self.assertEqual((child.stdout, child.returncode), (b"ran\n", 7), options)

    def test_signal_that_comes_after_the_command_does_not_change_the_end(self):
        """It comes while tscope-run waits for room for its last line."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, b"-" * 4096)
        os.set_blocking(writer, True)
        with subprocess.Popen([RUN, "--lib", LIBRARY, "--", "sh", "-c", "echo $$; kill -TERM $$"], stdout=subprocess.PIPE,
                              stderr=writer) as child:
            command = int(child.stdout.readline())
            wait_until("the command is gone", lambda: not os.path.exists(f"/proc/{command}"), each=0.01)
            os.kill(child.pid, signal.SIGHUP)
            os.close(writer)
            while os.read(reader, 65536):
                pass
        os.close(reader)
        self.assertEqual(child.returncode, -signal.SIGTERM)

    def test_stop_and_go_on(self):
        child = start_counter(signal.SIGTERM, preexec_fn=os.setpgrp)
        os.killpg(child.pid, signal.SIGTSTP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1]))
        os.killpg(child.pid, signal.SIGCONT)
        os.kill(child.pid, signal.SIGTERM)
        self.assertEqual(signal_count(child), 1)

    def test_signal_to_the_group_reaches_the_command_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = start_counter(number, start_new_session=True)
            os.killpg(child.pid, number)
            self.assertEqual(signal_count(child), 1, number)

    def test_interrupt_typed_at_a_terminal_reaches_the_command_once(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(RUN, [RUN, "--lib", LIBRARY, "--quiet", "--", sys.executable, "-c", COUNTER, "2"])
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 100)
        os.write(terminal, b"\x03")
        time.sleep(0.2)
        os.write(terminal, b"\x04")
        os.waitpid(pid, 0)
        self.assertEqual(os.read(terminal, 100).replace(b"^C", b"").strip(), b"1")

    def test_ignored_signals_stay_ignored_and_the_mask_empty(self):
        script = "import signal; print(signal.getsignal(1) == signal.SIG_IGN, signal.pthread_sigmask(0, []))"
        done = run(sys.executable, "-c", script,
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(done.stdout, "True set()\n")


if __name__ == "__main__":
    unittest.main()
