# SPDX-License-Identifier: MIT
"""Stacks through tscope-run: through_launcher.py TSCOPE-STACKS TSCOPE-RUN PROGRAM. If the kernel does not
permit tscope-stacks to read a process, it asks the tscope-run that started the job. The output is compared
with that of a permitted read, and the job must not be affected."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
STACKS, RUN, PROGRAM = (os.path.realpath(sys.argv.pop(1)) for _ in range(3))
STANDING = os.path.join(HERE, "standing.py")
WITHOUT_PTRACE = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
REFUSED_TO_ALL = False

# Counts a given number of signals and prints each count, while its threads compute; prints the results and
# exits with 7.
WORKING = """
import os, signal, sys, threading, time
wanted, count, ended = int(sys.argv[1]), [0], threading.Event()
def take(*_): count[0] += 1
signal.signal(signal.SIGUSR1, take)
sums = [0, 0]
def compute(which):
    while not ended.is_set():
        sums[which] = sum(i * i for i in range(1000))
threads = [threading.Thread(target=compute, args=(i,)) for i in range(2)]
for thread in threads: thread.start()
os.write(1, b"ready\\n")
said = 0
while said < wanted:
    time.sleep(0.001)
    while said < count[0]:
        said += 1
        print(said, flush=True)
ended.set()
for thread in threads: thread.join()
print(count[0], sums)
sys.exit(7)
"""


def start(*command, stacks="on", **how):
    """Starts a job under tscope-run, reads its first line and sets the process id of its first process."""
    environment = dict(os.environ, TSCOPE="off")
    job = subprocess.Popen([RUN, "--stacks", stacks, "--quiet", "--", *command], stdout=subprocess.PIPE,
                           universal_newlines=True, env=environment, **how)
    job.first_line = job.stdout.readline()
    job.first = next(pid for pid in children(job.pid) if name_of(pid) not in ("tscope-run", "tscope-stacks"))
    return job


def end(job):
    for pid in [job.first, job.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.communicate()


def children(pid):
    """The children of all threads of a process; a thread may end meanwhile."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def states(pid):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as file:
            found.append(file.read().rpartition(")")[2].split()[0])
    return found


def wait_until(condition, *what):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.005)


def look(pid, *options, before=(), program=STACKS):
    return subprocess.run([*before, program, *options, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=120, check=False)


def look_refused(pid, *options):
    return look(pid, *options, before=WITHOUT_PTRACE)


def frames_that_stand_still(output):
    """The frames without those of the thread that computes, which change all the time."""
    computing = {line.split("\t")[1] for line in output.splitlines() if "\tspins\t" in line}
    return [line for line in output.splitlines() if line.split("\t")[1] not in computing]


def sockets_of(pid):
    with open("/proc/net/unix", encoding="ascii") as file:
        return [line for line in file if line.rstrip().endswith(f"@tscope-run-look-{pid}")]


class Through(unittest.TestCase):
    def job(self, *command, **how):
        job = start(*command, **how)
        self.addCleanup(end, job)
        return job

    def test_same_stacks_as_where_the_kernel_permits(self):
        for command, options, known in ((STANDING, ["--frames"], "stand_still"), (STANDING, ["--native", "--frames"], "libc.so"),
                                        (PROGRAM, ["--native", "--frames"], "waits_outside")):
            job = self.job(*([sys.executable] if command == STANDING else []), command)
            wanted = "S" * 3 if command == STANDING else "R" + "S" * 7
            wait_until(lambda: sorted(states(job.first)) == list(wanted), job.first)  # pylint: disable=cell-var-from-loop
            through = look_refused(job.first, *options)
            self.assertEqual(through.returncode, 0, through)
            self.assertIn(known, through.stdout)
            permitted, through = (frames_that_stand_still(done.stdout) for done in (look(job.first, *options), through))
            self.assertTrue(REFUSED_TO_ALL or permitted == through, (permitted, through))

    def test_the_page_says_how_it_was_read(self):
        job = self.job(sys.executable, STANDING)
        wait_until(lambda: set(states(job.first)) == {"S"}, job.first)
        output, permitted = look_refused(job.first).stdout, look(job.first).stdout
        self.assertIn(f"read through tscope-run (process {job.pid})", output)
        self.assertIn("in stand_still", output)
        self.assertNotIn("not permitted", output)
        self.assertTrue(REFUSED_TO_ALL or permitted.splitlines() ==
                        [line for line in output.splitlines() if "through" not in line], (permitted, output))

    def test_it_is_needed_and_can_be_turned_off(self):
        job = self.job(sys.executable, STANDING, stacks="off")
        output = look_refused(job.first).stdout
        self.assertIn("not permitted", output)
        self.assertNotIn("stand_still", output)
        self.assertEqual((sockets_of(job.pid), os.listdir(f"/proc/{job.pid}/task")), ([], [str(job.pid)]))

    def test_by_itself_only_under_yama_1(self):
        job = self.job(sys.executable, STANDING, stacks="auto")
        self.assertEqual(len(sockets_of(job.pid)), 1 if yama() == 1 else 0)

    def test_wrong_word(self):
        done = subprocess.run([RUN, "--stacks", "maybe", "true"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("auto, on or off, not maybe", done.stderr)

    def test_processes_that_are_not_of_the_job_are_not_read(self):
        job, other = self.job(sys.executable, STANDING), self.job(sys.executable, STANDING, stacks="off")
        output = ask(job.pid, other.first)
        self.assertEqual(output, b"")
        self.assertIn(b"stand_still", ask(job.pid, job.first))
        for request in (b"", b"x", b"tscopeL1", b"tscopeL0" + bytes(8), b"x" * 1000):
            self.assertEqual(ask_bytes(job.pid, request), b"")
        self.assertIn(b"stand_still", ask(job.pid, job.first))

    def test_other_users_get_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to be another user")
        job = self.job(sys.executable, STANDING)
        program = shutil.copy(STACKS, "/tmp/tscope-stacks-of-nobody-%d" % os.getpid())
        self.addCleanup(os.unlink, program)
        done = look(job.first, before=["setpriv", "--reuid", "65534", "--clear-groups"], program=program)
        self.assertNotIn("stand_still", done.stdout)
        self.assertNotIn("through tscope-run", done.stdout)

    def test_several_at_once(self):
        job = self.job(sys.executable, STANDING)
        looks = [subprocess.Popen([*WITHOUT_PTRACE, STACKS, "--native", str(job.first)], stdout=subprocess.PIPE,
                                  universal_newlines=True) for _ in range(8)]
        for one in looks:
            output, _ = one.communicate(timeout=120)
            self.assertIn("3 threads were stopped one after another", output)

    def test_nothing_of_the_job_changes(self):
        signals = 60
        job = self.job(sys.executable, "-c", WORKING, str(signals + 1))
        looks = []

        def look_on():
            while job.poll() is None and not looked_enough.is_set():
                looks.append(look_refused(job.first, "--native").stdout)
        looked_enough = threading.Event()
        looking = threading.Thread(target=look_on)
        looking.start()
        for number in range(signals):
            # Two pending signals of one number are delivered once, so each is sent after the one before was handled.
            os.kill(job.pid if number % 2 else job.first, signal.SIGUSR1)
            self.assertEqual(job.stdout.readline(), f"{number + 1}\n")
        wait_until(lambda: len(looks) >= 8, looks)
        os.kill(job.pid, signal.SIGUSR1)
        output, _ = job.communicate(timeout=60)
        looked_enough.set()
        looking.join()
        self.assertEqual(output, f"{signals + 1}\n{signals + 1} [332833500, 332833500]\n")
        self.assertEqual(job.returncode, 7)
        whole = [output for output in looks if "3 threads were stopped" in output]
        self.assertGreater(len(whole), 3, looks)

    def test_death_by_signal_while_looked_at(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV) * 5:
            job = self.job(PROGRAM)
            asking = subprocess.Popen([*WITHOUT_PTRACE, STACKS, "--native", str(job.first)],
                                      stdout=subprocess.DEVNULL)
            wait_until(lambda: "tscope-stacks" in map(safe_name, children(job.pid)) or asking.poll() is not None, job.pid)  # pylint: disable=cell-var-from-loop
            os.kill(job.first, number)
            self.assertEqual(job.wait(timeout=30), -number)
            asking.wait(timeout=60)

    def test_whoever_dies_the_threads_go_on(self):
        job = self.job(PROGRAM)
        for victim in ("asking", "helper", "launcher"):
            for _ in range(1 if victim == "launcher" else 5):
                asking = subprocess.Popen([*WITHOUT_PTRACE, STACKS, "--native", str(job.first)],
                                          stdout=subprocess.DEVNULL)
                helpers = lambda: [pid for pid in children(job.pid) if safe_name(pid) == "tscope-stacks"]  # pylint: disable=unnecessary-lambda-assignment
                wait_until(lambda: helpers() or asking.poll() is not None, victim)  # pylint: disable=cell-var-from-loop
                running = helpers()
                for pid in {"asking": [asking.pid], "helper": running, "launcher": [job.pid]}[victim]:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                asking.wait(timeout=60)
                wait_until(lambda: not set(states(job.first)) & set("tT"), victim)
        for pid in running:
            wait_until(lambda: safe_name(pid) != "tscope-stacks", pid)  # pylint: disable=cell-var-from-loop

    def test_nothing_is_left_when_the_job_ends(self):
        job = self.job(sys.executable, "-c", "print(flush=True); input()", stdin=subprocess.PIPE)
        self.assertEqual(look_refused(job.first).returncode, 0)
        job.stdin.write("\n")
        job.stdin.flush()
        self.assertEqual(job.wait(timeout=30), 0)
        self.assertEqual(sockets_of(job.pid), [])


def safe_name(pid):
    try:
        return name_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None


def ask_bytes(launcher, request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(f"\0tscope-run-look-{launcher}")
        answer = b""
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while True:
                more = connection.recv(1 << 16)
                if not more:
                    return answer
                answer += more
        except (BrokenPipeError, ConnectionResetError):
            return answer


def ask(launcher, pid):
    return ask_bytes(launcher, b"tscopeL1" + pid.to_bytes(4, sys.byteorder) + bytes(4))


def yama():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            print("not tested: there is no setpriv, to give up the right to trace")
            sys.exit(77)
    elif yama() == 1:
        WITHOUT_PTRACE, REFUSED_TO_ALL = [], True  # no read is permitted here, so there is nothing to compare with
    else:
        print("not tested: only root can give up the right to trace, and Yama's ptrace_scope is not 1")
        sys.exit(77)
    unittest.main()
