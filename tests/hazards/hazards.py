#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole programs under the preload: hazards.py LIBTSCOPE PROGRAMS HAZARD.

PROGRAMS is the folder with hazard, hazard-static, hazard-wrapper, walk and libplugin.so. Each
function named after a hazard runs a program without and with the shim: its output and exit status
must be the same, and every hooked call must be in the trace or counted there as lost.
"""
import ctypes
import errno
import glob
import mmap
import os
import platform
import pwd
import random
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import read_trace  # noqa: E402
from mounts import mount, mount_small  # noqa: E402
from observed import EMULATOR, observed_environment  # noqa: E402
from outcomes import Skip, wait_until  # noqa: E402
from processes import NOBODY  # noqa: E402
from read_trace import paths_under  # noqa: E402

LIBRARY, PROGRAMS = (os.path.realpath(path) for path in sys.argv[1:3])
undos = []


# Hazards that do not work with an emulator of single programs, with the reason.
STARTS_OTHERS = "an emulated program starts others without the emulator"
NOT_EMULATED = {
    "programs-that-do-not-train": "the programs are this machine's own",
    "program-of-another-c-library": "the program is this machine's own",
    "waits-beside-another-preload": "the program is this machine's own",
    "wait-while-the-disk-does-not-answer": "the program is this machine's own",
    "python-that-is-unloaded": "Python's library is this machine's own",
    "nvtx-in-a-program-that-does-not-train": "the program is this machine's own",
    "vfork-spawn-system": STARTS_OTHERS,
    "exec-of-another-program": STARTS_OTHERS,
    "data-file-in-place-of-standard-error": STARTS_OTHERS,
    "nvtx-injection-free": STARTS_OTHERS, "nvtx-injection-taken": STARTS_OTHERS, "nvtx-off": STARTS_OTHERS,
    "setuid-program": "a setuid program has to be started without the emulator",
    "signal-handlers-and-mask-kept": "the emulator uses signals itself",
    "runs-in-numbers-that-proc-does-not-show": STARTS_OTHERS,
    "namespaces-of-its-own": "the emulator has threads itself, which the kernel counts with the program's",
    "only-thread-ends-by-a-system-call": "the emulator has threads itself, which the kernel counts with the program's",
    "first-thread-ends-first-without-proc": "the emulator has threads itself, which the kernel counts with the program's",
    "filter-that-ends-tscopes-threads": "the emulator refuses filters",
    "first-thread-ends-first": "the emulator has threads itself, which the kernel counts with the program's",
    "memory-locked-by-a-program-that-does-not-train": "the emulator's own memory would be locked and counted, too",
    "all-memory-locked": "the emulator's own memory would be locked and counted, too",
    "threads-apart-from-the-one-that-wakes": "the emulator refuses filters",
    "allocation-that-is-always-interrupted": "the emulator refuses filters",
    "filter-whose-signal-the-job-handles": "the emulator refuses filters",
    "filter-that-refuses-calls": "the emulator refuses filters",
    "memory-locked-by-a-forked-child": "the emulator's own memory would be locked and counted, too",
    "address-space-limited-later": "the limit would be the emulator's own",
    "more-threads-than-are-looked-at": "the emulator has threads itself, and starts new ones slowly",
    "waits-of-threads-for-a-core": "the emulator has threads itself, which the kernel counts with the program's",
    "core-dump-without-the-reserve": "the dump would be the emulator's own",
    "own-bus-errors": "the emulator uses signals itself",
    "bus-error-sent-to-the-process": "the emulator uses signals itself",
    "bus-errors-of-children": "the emulator uses signals itself",
    "handler-with-little-stack": "the emulator's own stacks for signals are others",
    "trace-cut-by-another-program": "the emulator uses signals itself",
    "directory-read-only": "the emulated machine's libraries may be closed to other users",
    "mask-that-allows-nothing": "the emulated machine's libraries may be closed to other users",
}


def program(name):
    return os.path.join(PROGRAMS, name)


def environment(directory=None, **more):
    """With the preload if `directory`."""
    return observed_environment(directory and LIBRARY, directory, **{"LD_LIBRARY_PATH": PROGRAMS, **more})


def runnable(command):
    """The command; with the emulator if it is a program built for another machine."""
    return [*EMULATOR, *command] if command[0].startswith(PROGRAMS) else command


def run(command, directory=None, env=None, **more):
    return subprocess.run(runnable(command), env=environment(directory, **(env or {})), capture_output=True,
                          timeout=100, check=False, **more)


# For hazards that lose records: turns off samples of lines, so that all lost records are launches.
ONLY_LAUNCHES = {"TSCOPE_LINES": "collectives"}


class Walked:
    """The totals of all traces in a directory."""

    def __init__(self, directory):
        files = paths_under(directory)
        done = subprocess.run(runnable([program("walk"), *files]), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        rows = [list(map(int, line.split())) for line in done.stdout.splitlines()]
        self.files = len(files)
        self.launches = sum(row[0] for row in rows)
        self.lost = sum(row[2] for row in rows)
        self.closed = sum(row[3] for row in rows)

    def __str__(self):
        return f"{self.files} files, {self.launches} launches, {self.lost} lost, {self.closed} closed"


def check_same(bare, shimmed, stderr=""):
    """Checks that the shim changed nothing. If `stderr` is given, the shim must print one line with that word."""
    assert bare.returncode == shimmed.returncode, (bare.returncode, shimmed.returncode, shimmed.stderr)
    assert bare.stdout == shimmed.stdout, (bare.stdout, shimmed.stdout)
    extra = [line for line in shimmed.stderr.decode().splitlines()
             if line not in bare.stderr.decode().splitlines()]
    if not stderr:
        assert not extra, extra
    else:
        assert len(extra) == 1 and "tscope" in extra[0] and stderr in extra[0].lower(), extra


def run_both(directory, *arguments, name="hazard", stderr="", **more):
    command = [program(name), *arguments]
    bare = run(command, **more)
    shimmed = run(command, directory, **more)
    check_same(bare, shimmed, stderr)
    return bare


def check_recorded(directory, *arguments, launches, files=1, name="hazard", lossless=True, **more):
    """Runs a hazard without and with the shim. All its launches must be recorded or counted as lost. With
    `lossless`, none may be lost; hazards that launch faster than any job may lose some."""
    if not lossless:
        more["env"] = {**ONLY_LAUNCHES, **(more.get("env") or {})}
    run_both(directory, *arguments, name=name, **more)
    walked = Walked(directory)
    print(walked)
    assert walked.files == files, f"{walked.files} traces, not {files}"
    assert walked.launches + walked.lost == launches, f"{launches} launches were made: {walked}"
    assert not lossless or walked.lost == 0, walked
    return walked


def check_untouched(directory):
    assert paths_under(directory) == [], paths_under(directory)


# Programs that do not train.

def programs_that_do_not_train(scratch):
    commands = [["true"], ["ls", "/"], ["bash", "-c", "echo hello; exit 3"], ["git", "--version"],
                ["gcc", "-x", "c", "-c", os.devnull, "-o", os.path.join(scratch, "object")],
                ["python3", "-c", "1"], ["ls", "/nonexistent"]]
    directory = os.path.join(scratch, "traces")
    for command in commands:
        check_same(run(command), run(command, directory))
        seconds = {None: [], directory: []}
        for _ in range(15):
            for where, taken in seconds.items():
                start = time.perf_counter()
                run(command, where)
                taken.append(time.perf_counter() - start)
        extra = statistics.median(seconds[directory]) - statistics.median(seconds[None])
        print(f"{' '.join(command)[:40]:40} {extra * 1e3:+.2f} ms extra (median of 15)")
    assert not os.path.exists(directory), "a directory was made"


def program_of_another_c_library(scratch):
    """It starts, and all that tscope hooks of the C library does what it does without tscope."""
    if not shutil.which("musl-gcc"):
        raise Skip("no musl-gcc")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "other_libc.c")
    other = os.path.join(scratch, "other_libc")
    subprocess.run(["musl-gcc", source, "-o", other], check=True)
    directory = os.path.join(scratch, "traces")
    for linker in [], glob.glob("/lib/ld-musl-*.so.1")[:1]:
        bare = run([*linker, other], env={"KNOWN": "known"})
        assert bare.returncode == 3 and b"known 0" in bare.stdout, bare
        check_same(bare, run([*linker, other], directory, env={"KNOWN": "known"}))
    assert not os.path.exists(directory), "a directory was made"


# Finding the real function.

def plain(scratch):
    walked = check_recorded(scratch, "plain", "10000", launches=10000)
    assert walked.closed == 1


def library_loaded_local(scratch):
    check_recorded(scratch, program("libplugin.so"), name="unlinked", launches=1000)


def library_loaded_again(scratch):
    """What is unloaded and loaded again may be somewhere else."""
    check_recorded(scratch, program("libplugin.so"), "3", name="unlinked", launches=3000)
    run_both(scratch, program("libplugin.so"), "3", name="unlinked", env={"TSCOPE": "off"})


def driver_loaded_again(scratch):
    """A program looks whether there is a GPU, and closes the driver. A library that links it finds it elsewhere."""
    run_both(scratch, "driver", program("driver/libcuda.so.1"), program("driver/libdriver_plugin.so"), name="unlinked")


def kernel_of_a_library_that_was_unloaded(scratch):
    """The name with which a kernel was registered is in its library, and gone with that."""
    check_recorded(scratch, "kernel", program("libplugin.so"), name="unlinked", launches=2)


def python_that_is_unloaded(scratch):
    """A program that embeds Python gives it up, and goes on to train."""
    name = f"libpython3.{sys.version_info.minor}.so.1.0"
    folders = [sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LIBPL"), f"/usr/lib/{platform.machine()}-linux-gnu"]
    found = [path for path in (os.path.join(folder or "", name) for folder in folders) if os.path.exists(path)]
    if not found:
        raise Skip(f"there is no {name}")
    check_recorded(scratch, "python", found[0], name="unlinked", launches=10000)


def call_while_the_linker_holds_its_lock(scratch):
    """The first hooked call, which starts the recording, is in a library's constructor."""
    check_recorded(scratch, program("libplugin.so"), name="unlinked", launches=1100,
                   env={"LAUNCH_WHILE_LOADED": "1"})


def first_calls_in_a_thread_that_a_constructor_waits_for(scratch):
    """The library is loaded as Python loads a module, and as a part of the global search order."""
    plugin = program("libfirst_calls_plugin.so")
    for number, mode in enumerate(([], ["global"])):
        for off in (False, True):
            directory = os.path.join(scratch, f"{number}{off}")
            os.makedirs(directory)
            run_both(directory, *mode, plugin, name="first_calls", env={"TSCOPE": "off"} if off else {})
            if not off:
                trace, = read_trace.read_all(directory)
                assert len(trace.records["Collective"]) == 2, trace.records["Collective"]
                assert len(trace.records["Gemm"]) == 2, trace.records["Gemm"]


def application_uses_rtld_next(scratch):
    check_recorded(scratch, "plain", "10000", name="hazard-wrapper", launches=10000)


PLUGIN = "liblookups_plugin.so"


def look_ups_by_name(scratch):
    run_both(scratch, program(PLUGIN), name="lookups")
    check_untouched(scratch)


def look_ups_with_the_driver_off(scratch):
    run_both(scratch, program(PLUGIN), name="lookups", env={"TSCOPE_DRIVER": "off"})


def look_ups_beside_another_preload(scratch):
    """The other preload is before or after the shim, with and without its own dlsym()."""
    command = [program("lookups"), program(PLUGIN)]
    for other in ("liblookups_preload.so", "liblookups_dlsym.so"):
        alone = run(command, env={"LD_PRELOAD": program(other)})
        assert alone.returncode == 0 and b"next is another" in alone.stderr, alone
        for order in ((LIBRARY, program(other)), (program(other), LIBRARY)):
            check_same(alone, run(command, scratch, env={"LD_PRELOAD": ":".join(order)}))


WAITS = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print([libc.getenv(name) for name in (b"KNOWN_TO_ANOTHER_PRELOAD", b"UNKNOWN")])
for how in "waitpid", "waitpid", "wait":
    child = os.fork()
    if not child:
        os.kill(os.getpid(), signal.SIGKILL)
    print(os.wait()[1] if how == "wait" else os.waitpid(child, 0)[1])
for which in (lambda child: (os.P_PID, child)), (lambda child: (os.P_PIDFD, os.pidfd_open(child))):
    child = os.fork()
    if not child:
        signal.pause()
    kind, number = which(child)
    print(os.waitid(kind, number, os.WEXITED | os.WNOHANG))
    os.kill(child, signal.SIGKILL)
    for more in os.WNOWAIT, 0:
        told = os.waitid(kind, number, os.WEXITED | more)
        print(told.si_pid == child, told.si_uid == os.getuid(), told.si_signo, told.si_status, told.si_code)
child = os.fork()
if not child:
    os._exit(3)
print(libc.waitid(os.P_PID, child, None, os.WEXITED), libc.waitid(os.P_ALL, 0, ctypes.c_void_p(8), os.WEXITED))
for call in (lambda: os.waitpid(-1, os.WNOHANG)), (lambda: os.waitid(os.P_ALL, 0, os.WEXITED)):
    try:
        call()
    except ChildProcessError as error:
        print(error.errno)
"""


def waits_beside_another_preload(scratch):
    """The other preload sees each call, before the shim and after it."""
    other = program("libwaits_preload.so")
    command = [sys.executable, "-S", "-c", WAITS]
    alone = run(command, env={"LD_PRELOAD": other})
    assert alone.returncode == 0 and b"3 of waitpid, 1 of wait, 9 of waitid" in alone.stderr, alone
    assert b"b'known'" in alone.stdout, alone
    for order in ((LIBRARY, other), (other, LIBRARY)):
        check_same(alone, run(command, scratch, env={"LD_PRELOAD": ":".join(order)}))
    check_untouched(scratch)


WAITS_WHILE_FROZEN = """
import ctypes, mmap, os, subprocess, sys, time
awake, disk, page, *command = sys.argv[1:]
if awake == "awake":
    ctypes.CDLL(None).tscope_step(1)
with open(page, "wb+") as file:
    file.write(bytes(4096))
    file.flush()
    done = mmap.mmap(file.fileno(), 0)
child = subprocess.Popen([*command, page])
while not any(done[:8]):
    time.sleep(0.01)
open(disk + ".frozen", "w").close()
child.kill()
print(child.wait())
os.remove(disk + ".frozen")
time.sleep(0.5) # the process that was left writing goes on
"""


def wait_while_the_disk_does_not_answer(scratch):
    """A launcher, dormant or awake, does not wait for the disk: it learns of the death, and then lets the disk
    answer. After that the trace has the signal."""
    for awake in ("dormant", "awake"):
        disk = os.path.join(scratch, awake)
        command = [sys.executable, "-S", "-c", WAITS_WHILE_FROZEN, awake, disk, disk + ".page",
                   program("hazard"), "until-killed"]
        done = run(command, disk, env={"FROZEN_DISK": disk, "TSCOPE_RUN": "run",
                                       "LD_PRELOAD": program("libfrozen_disk.so") + ":" + LIBRARY})
        assert (done.returncode, done.stdout) == (0, b"-9\n"), done

        def signals():
            return sorted(read_trace.Trace(trace).reaped_signal for trace in paths_under(disk))
        wait_until("the signal is in a trace", lambda: 9 in signals(), seconds=30, each=0.1)
        assert signals() == ([0, 9] if awake == "awake" else [9]), (awake, signals())


COPIES = {"a": "libnccl_a.so", "b": "libnccl_b.so", "linked": "libcopies_linked.so", "linked_b": "libcopies_linked_b.so"}
CALLS = 15  # collectives of one train() in copies.h


def check_copies(scratch, *steps, recorded_steps, not_seen="", **more):
    """Runs `copies`. Every call must reach the same copy of NCCL as without the shim. The trace must have
    `recorded_steps` steps, each with its communicator. `not_seen` is the copy, if any, that the trace must
    name as not recorded; only its calls of its own exported functions may be in the trace."""
    arguments = [step.partition(":")[0] + (":" + program(COPIES[step.partition(":")[2]])
                                           if ":" in step else "") for step in steps]
    bare = run_both(scratch, *arguments, name="copies", **more)
    lines = bare.stdout.decode().splitlines()
    assert len(lines) == len(steps), lines
    if not any("global" in step or "default" in step for step in steps):
        assert all(line.endswith(": 0 failed, 0 of another copy's") for line in lines), lines
    if not recorded_steps:
        return
    trace, = read_trace.read_all(scratch)
    records = trace.records
    whole = {comm.comm for comm in records["Comm"] if comm.identity}
    calls = [call for call in records["Collective"] if call.comm in whole]
    assert len(calls) == CALLS * recorded_steps, len(calls)
    assert not_seen or len(calls) == len(records["Collective"]), len(records["Collective"])
    assert all(comm.size == 1 for comm in records["Comm"]), records["Comm"]
    assert len(whole) == len(records["CommEnd"]) == recorded_steps, records["Comm"]
    looked_up = [(trace.strings[info.detail], trace.strings[info.value]) for info in records["Info"]
                 if info.tag == read_trace.ENUMS["INFOS"]["LOOKED_UP"]]
    unseen = {name for name, value in looked_up if value != "seen"}
    assert {value for _, value in looked_up} - {"seen"} == (
        {program(COPIES[not_seen])} if not_seen else set()), looked_up
    assert not unseen or unseen == {"ncclCommInitRank", "ncclAllReduce", "ncclBcast",
                                    "ncclCommDestroy"}, looked_up


def look_ups_of_nccl(scratch):
    for step in ("local:a", "global:a", "deep:a"):
        check_copies(os.path.join(scratch, step[:4]), step, "again", recorded_steps=2)


def look_ups_by_the_profiling_name(scratch):
    check_copies(scratch, "p:a", recorded_steps=1)


def look_ups_in_two_copies(scratch):
    check_copies(scratch, "local:a", "local:b", "again", "local:b", recorded_steps=2, not_seen="b")


def look_ups_beside_a_linked_copy(scratch):
    """As when PyTorch links one NCCL, and vLLM loads another by its path."""
    for step in ("linked", "linked-global"):
        check_copies(os.path.join(scratch, step), step + ":linked", "local:b", step + ":linked", "again",
                     recorded_steps=4)


def look_ups_before_a_linked_copy(scratch):
    for step in ("linked", "linked-global"):
        check_copies(os.path.join(scratch, step), "local:b", step + ":linked", "again", step + ":linked",
                     recorded_steps=4)


def look_ups_after_a_linked_copy_was_unloaded(scratch):
    """The next library is loaded where the one was that is gone, and links another copy."""
    check_copies(scratch, "unloaded:linked", "unloaded:linked_b", "unloaded:linked", recorded_steps=3)


def look_ups_from_a_deep_folder(scratch):
    """As build systems make them: the path of the library has more than 600 characters."""
    folder = os.path.join(scratch, *["folder-of-a-build-system"] * 24)
    os.makedirs(folder)
    COPIES["deep"] = shutil.copy(program(COPIES["linked"]), folder)
    directory = os.path.join(scratch, "traces")
    check_copies(directory, "local:b", "linked:deep", "again", recorded_steps=3)
    trace, = read_trace.read_all(directory)
    called_by = {os.path.basename(trace.strings[frame.library]) for frame in trace.records["NativeFrame"]}
    assert COPIES["linked"] in called_by, called_by


def look_ups_beside_the_same_copy(scratch):
    check_copies(scratch, "linked:linked", "local:a", "linked:linked", "again", recorded_steps=4)


def look_ups_in_no_handle(scratch):
    """The search order decides, and the preload is part of it."""
    check_copies(scratch, "default:a", "local:b", "again", recorded_steps=3)


def look_ups_left_alone(scratch):
    """Without hooks for look-ups, each copy still calls its own exported functions."""
    check_copies(scratch, "local:a", "local:b", recorded_steps=0, env={"TSCOPE_LOOKUPS": "off"})


def cudart_linked_statically(scratch):
    run_both(scratch, "plain", "10000", name="hazard-static")
    print(Walked(scratch), "(a preload does not see the calls inside a static runtime)")


# Children.

def fork_with_work_in_the_child(scratch):
    check_recorded(scratch, "fork", launches=8000)


def fork_while_threads_launch(scratch):
    """Checks only that it ends: the number of launches of the other threads depends on the scheduler."""
    shimmed = run([program("hazard"), "fork-busy"], scratch)
    assert shimmed.returncode == 0, shimmed
    assert shimmed.stdout.count(b"child ended with") == 4, shimmed.stdout
    print(Walked(scratch))


def fork_while_kernels_are_registered(scratch):
    """Processes that do not train, in which a thread held a lock at the fork."""
    run_both(scratch, "fork-registering")
    check_untouched(scratch)


def fork_while_an_end_is_registered(scratch):
    """tscope registers its end again when the job's libraries have registered theirs, from a thread of its own."""
    shimmed = run([program("registers_slowly")], scratch)
    assert shimmed.returncode == 0, shimmed
    assert shimmed.stdout == b"1\n", shimmed.stdout


def vfork_spawn_system(scratch):
    check_recorded(scratch, "children", launches=3000)


def exit_of_a_child_that_shares_memory(scratch):
    """Its end is not the end of its parent's recording."""
    check_recorded(scratch, "exit-after-vfork", launches=2000)


def exec_of_another_program(scratch):
    check_recorded(scratch, "exec", "2", launches=3000, files=3)


# Threads.

def threads_64(scratch):
    check_recorded(scratch, "threads", "64", launches=64 * 20000, lossless=False)


def threads_256(scratch):
    check_recorded(scratch, "threads", "256", launches=256 * 20000, lossless=False)


def thread_churn(scratch):
    check_recorded(scratch, "thread-churn", launches=20000, lossless=False)


def thread_exit(scratch):
    check_recorded(scratch, "thread-exit", launches=20 * 150, lossless=False)


def thread_with_a_small_stack(scratch):
    """The thread with the first hooked call, which starts the recording, has the smallest possible stack."""
    check_recorded(scratch, "small-stack", str(16 << 10), launches=10000)


def threads_with_much_memory_of_their_own(scratch):
    """Nearly as much as the stacks of tscope's threads have, from which the C library takes it."""
    check_recorded(scratch, "threads", "4", name="hazard-thread-local", launches=4 * 20000, lossless=False)


def thread_about_to_be_cancelled(scratch):
    """The first call makes tscope print its line, which a cancelled thread would not survive."""
    check_recorded(scratch, "cancelled", launches=1000)
    check_refused("/proc/nonexistent/traces", arguments=("cancelled",))


def first_thread_ends_first(scratch):
    """The C library ends a process with its last thread: tscope's own must not hold that up."""
    for more in "0", "ring":
        if more == "ring" and run([program("hazard"), "first-thread-ends", more]).returncode == 99:
            raise Skip("this kernel gives no ring")
        walked = check_recorded(os.path.join(scratch, more), "first-thread-ends", more, launches=3000)
        assert walked.closed == 1, walked


def first_thread_ends_first_without_proc(scratch):
    """Where tscope cannot tell when the job ends, its threads must not be there."""
    if run([program("hazard"), "first-thread-ends-without-proc", "0"]).returncode == 99:
        raise Skip("unmounting /proc needs root")
    run_both(scratch, "first-thread-ends-without-proc", "0", stderr="without /proc")


def filter_that_ends_tscopes_threads(scratch):
    """The call that waits for the first one goes on at once. Without threads, tscope writes what it has at the end."""
    run_both(scratch, "other-threads-end", "first", stderr="seccomp")
    check_untouched(scratch)
    check_recorded(scratch, "other-threads-end", "later", launches=3000)


def filter_whose_signal_the_job_handles(scratch):
    """The job's handler answers for tscope's threads too: where they block the signal, the kernel ends the process."""
    for when in "first", "later":
        check_recorded(os.path.join(scratch, when), "calls-are-trapped", when, launches=2000 + 1000 * (when == "later"))


def filter_that_refuses_calls(scratch):
    """errno stays the job's."""
    run_both(scratch, "calls-are-refused")


def allocation_that_is_always_interrupted(scratch):
    """To try it again would never end."""
    check_recorded(scratch, "allocation-is-interrupted", launches=1000)


def only_thread_ends_by_a_system_call(scratch):
    """The status is the thread's own, although tscope's threads were there for longer."""
    for status in ("4", "0", ""):
        directory = os.path.join(scratch, "status" + status)
        bare = run_both(directory, "only-thread-ends", status)
        assert bare.returncode == (int(status) if status else -signal.SIGSYS), bare
        assert Walked(directory).launches == 1000


def namespaces_of_its_own(scratch):
    """The kernel lets only a process of one thread go into some of them: tscope's threads must not be counted.
    Where the kernel then lets the process start no thread any more, tscope says that it stops."""
    for which in "0", "cancelled":
        check_recorded(os.path.join(scratch, "unshare" + which), "unshare-user", which, launches=3000)
    check_recorded(os.path.join(scratch, "join"), "join-namespaces", launches=3000)
    bare = run_both(os.path.join(scratch, "processes"), "unshare-processes",
                    stderr="off" if b": 0" in run([program("hazard"), "unshare-processes"]).stdout else "")
    print(bare.stdout.decode())


LAUNCHES_TWO = """
import os, sys, time
ranks = {page: os.spawnv(os.P_NOWAIT, sys.argv[1], [sys.argv[1], "until-killed", page]) for page in sys.argv[2:]}
for page, rank in ranks.items():
    while not any(open(page, "rb").read(8)):
        time.sleep(0.01)
for rank in ranks.values():
    os.kill(rank, 9)
    os.waitpid(rank, 0)
"""


def runs_in_numbers_that_proc_does_not_show(scratch):
    """Where /proc is another PID namespace's, a process's own number is a stranger's there. The ranks that one launcher
    starts are a run all the same, and who waits for them finds their traces."""
    if os.geteuid() != 0:
        raise Skip("only root can make a PID namespace")
    pages, traces = [os.path.join(scratch, name) for name in "01"], os.path.join(scratch, "traces")
    for _ in range(2):
        for page in pages:
            with open(page, "wb") as file:
                file.write(bytes(4096))
        done = run(["unshare", "--pid", "--fork", sys.executable, "-S", "-c", LAUNCHES_TWO, program("hazard"), *pages], traces,
                   env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"})
        assert (done.returncode, done.stderr) == (0, b""), done
    runs = [os.path.dirname(path) for path in paths_under(traces)]
    assert len(runs) == 4 and all(runs.count(one) == 2 for one in runs), runs
    wait_until("the signals are in the traces",
               lambda: {read_trace.Trace(path).reaped_signal for path in paths_under(traces)} == {9})


# Control flow.

def coroutine_with_nothing_below(scratch):
    """Before the thread's own stack is known, and after."""
    for number, more in enumerate(([], ["first"])):
        check_recorded(os.path.join(scratch, str(number)), "coroutine", "5000", *more,
                       launches=5000 * (2 + number))


def longjmp_over_a_hook(scratch):
    """A call that is left by longjmp() need not be recorded; the calls after it must be."""
    run_both(scratch, "longjmp")
    walked = Walked(scratch)
    print(walked)
    assert 1000 <= walked.launches <= 1100, walked


def handler_inside_a_hook(scratch):
    run_both(scratch, "handler")
    walked = Walked(scratch)
    print(walked)
    assert 2000 <= walked.launches <= 3000, walked


def handler_inside_malloc(scratch):
    """A thread's first hooked call is in a signal handler that came while the thread was inside malloc().
    With many keys, those of tscope's would need an allocation; ended threads still give back their slots."""
    for keys in ("0", "40"):
        directory = os.path.join(scratch, keys)
        os.makedirs(directory)
        check_recorded(directory, keys, name="malloc_lock", launches=100 + 200 * 20)
        trace, = read_trace.read_all(directory)
        assert max(thread.thread for thread in trace.records["Thread"]) <= 4, trace.records["Thread"][-1]


def handler_inside_malloc_before_all_else(scratch):
    """The process's first hooked calls are in a handler. tscope begins with the first one after it, and counts those
    of the handler; whatever the handler's flags."""
    flags = {"SA_NODEFER": 0x40000000, "SA_ONSTACK": 0x08000000, "SA_RESETHAND": 0x80000000 - (1 << 32), "none": 0}
    for name, value in flags.items():
        directory = os.path.join(scratch, name)
        os.makedirs(directory)
        walked = check_recorded(directory, "0", str(value), name="malloc_lock", launches=20 + 100 + 200 * 20,
                                lossless=False)
        assert walked.lost == 10, (name, walked)


def handlers_that_wait(scratch):
    """A process that only has handlers is not in one: tscope begins with its first call."""
    check_recorded(scratch, "handlers-that-wait", launches=1000)


def work_on_the_stack_of_handlers(scratch):
    """Not all calls can be a handler's: tscope begins after some."""
    walked = check_recorded(scratch, "work-on-stack-of-handlers", launches=1000, lossless=False)
    assert walked.lost == 100, walked


def handler_that_leaves_by_a_jump(scratch):
    """In the middle of what takes the dynamic linker's lock, where it would stay taken."""
    for when in ([], ["first"]):
        shimmed = run([program("linker_lock"), *when], scratch)
        assert (shimmed.returncode, shimmed.stdout) == (0, b"the list can be read\n"), shimmed
        assert b"not disturbed" not in shimmed.stderr, shimmed


def handler_with_little_stack(scratch):
    """The kernel's part of it depends on the machine."""
    for more in ("4096", "65536"):
        directory = os.path.join(scratch, more)
        run_both(directory, "handler-with-little-stack", more)
        assert 9 in [read_trace.Trace(trace).reaped_signal for trace in paths_under(directory)], more


def one_core_at_real_time_priority(scratch):
    """tscope's threads get no time on the only core. The latest records are kept, and all others are counted."""
    core = str(min(os.sched_getaffinity(0)))
    alone = ["chrt", "-f", "50", "taskset", "-c", core]
    launches = 10000000
    try:
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
            raise Skip("no right to real-time priority")
    except FileNotFoundError as error:
        raise Skip(f"no {error.filename}") from error
    command = [*alone, program("hazard"), "plain", str(launches)]
    check_same(run(command), run(command, scratch, env=ONLY_LAUNCHES))
    walked = Walked(scratch)
    print(walked)
    assert walked.launches + walked.lost == launches, walked
    trace, = read_trace.read_all(scratch)
    kept = [launch.time for launch in trace.records["Launch"]]
    began = min(thread.time for thread in trace.records["Thread"])
    assert min(kept) - began > (max(kept) - began) / 2, (began, min(kept), max(kept))


# Ends.

def end_by_exit(scratch):
    check_recorded(scratch, "exit", launches=10000)


def end_by_abort(scratch):
    check_recorded(scratch, "abort", launches=10000)


def end_by_sigterm(scratch):
    check_recorded(scratch, "signal", "15", launches=10000)


def end_by_sigsegv(scratch):
    check_recorded(scratch, "signal", "11", launches=10000)


def end_while_threads_launch(scratch):
    shimmed = run([program("hazard"), "end-busy"], scratch)
    assert shimmed.returncode == 0, shimmed
    print(Walked(scratch))


def kill_9_at_1000_instants(scratch):
    """A record is committed before its call returns. So the trace has exactly the calls that the job has
    counted as returned, and possibly the call that was in progress."""
    chosen = random.Random(9)
    page = os.path.join(scratch, "page")
    awake = launches = 0
    for instant in range(1000):
        with open(page, "wb") as file:
            file.write(bytes(4096))
        directory = os.path.join(scratch, "traces")
        child = subprocess.Popen(runnable([program("hazard"), "until-killed", page]),
                                 env=environment(directory, **ONLY_LAUNCHES))
        time.sleep(chosen.uniform(0, 0.02))
        child.kill()
        assert child.wait() == -9
        with open(page, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as shared:
            done = int.from_bytes(shared[:8], "little")
        walked = Walked(directory)
        accounted = walked.launches + walked.lost
        assert done <= accounted <= done + 1, f"kill {instant}: {done} calls returned, {walked}"
        awake += walked.files > 0
        launches += walked.launches
        shutil.rmtree(directory, ignore_errors=True)
    print(f"1000 kills, {awake} with a trace, {launches} launches read, none missing")
    assert awake > 300, "too few kills hit a recording process to prove anything"


# Signals and descriptors of the job.

def signal_handlers_and_mask_kept(scratch):
    check_recorded(scratch, "signals-kept", launches=50000, lossless=False)


def own_bus_errors(scratch):
    check_recorded(scratch, name="own_bus_errors", launches=2000)


def trace_cut_by_another_program(scratch):
    """On a file system where the trace is mapped: the next store would end the job. trace_harm.py has the others."""
    del scratch
    directory = tempfile.mkdtemp(prefix="tscope-cut-", dir="/dev/shm")
    undos.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    bare, shimmed = (run([program("own_bus_errors"), "cut"], where) for where in (None, directory))
    assert (bare.returncode, bare.stdout) == (shimmed.returncode, shimmed.stdout), (bare, shimmed)
    lines = shimmed.stderr.decode().splitlines()  # none if the program ended before a look at the file
    assert len(lines) <= 1 and all("off: the trace was cut" in line for line in lines), lines


def bus_error_sent_to_the_process(scratch):
    """On a file system where the trace is mapped, tscope's threads do not block the signal."""
    del scratch
    directory = tempfile.mkdtemp(prefix="tscope-sent-", dir="/dev/shm")
    undos.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    check_recorded(directory, "bus-error-sent", launches=2000)


def bus_errors_of_children(scratch):
    """On a file system where the trace is mapped, and tscope handles the signal."""
    check_recorded(scratch, "bus-errors-of-children", launches=1000)


def pending_signal_stays_pending(scratch):
    check_recorded(scratch, "signal-pending", launches=51000, lossless=False)


def standard_streams_closed(scratch):
    printed = os.path.join(scratch, "printed")
    texts = []
    for directory in (None, scratch):
        run([program("hazard"), "closed-streams", printed], directory)
        with open(printed, encoding="utf-8") as file:
            texts.append(file.read())
    assert texts[0] == texts[1] == "0 1 2, 50000 launches\n", texts


def data_file_in_place_of_standard_error(scratch):
    """A line of tscope's must not be written into it: that the trace cannot be made, or was removed."""
    data, directory = os.path.join(scratch, "data"), os.path.join(scratch, "traces")
    run_both("/proc/nonexistent/traces", "data-at-2", data, "first", "true")
    run_both(directory, "data-at-2", data, "later", f"rm -rf {directory}")


def descriptors_closed_and_reused(scratch):
    for name in ("bare", "shimmed"):
        os.mkdir(os.path.join(scratch, name))
    directory = os.path.join(scratch, "traces")
    bare = run([program("hazard"), "descriptors-taken", os.path.join(scratch, "bare")])
    shimmed = run([program("hazard"), "descriptors-taken", os.path.join(scratch, "shimmed")], directory, ONLY_LAUNCHES)
    assert bare.stdout == shimmed.stdout, shimmed.stdout
    assert bare.returncode == shimmed.returncode == 0, shimmed
    walked = Walked(directory)
    print(walked)
    assert walked.launches + walked.lost == 801000, walked


# Resources.

def little_address_space(scratch):
    """Also where the sizes that are set are together more than a number can hold."""
    for size in None, "8388608T":
        sizes = {"TSCOPE_RING_MAX": size, "TSCOPE_RETAINED_MAX": size} if size else {}
        directory = os.path.join(scratch, str(size))
        check_recorded(directory, "little-memory", launches=50000, env={**ONLY_LAUNCHES, **sizes}, lossless=False)


def standard_error_at_its_limit(scratch):
    run_both(os.path.join(scratch, "traces"), "full-stderr", os.path.join(scratch, "stderr"))


def no_descriptors_left(scratch):
    bare = run([program("hazard"), "no-descriptors"])
    shimmed = run([program("hazard"), "no-descriptors"], scratch)
    assert (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode), shimmed


def no_address_space_left(scratch):
    bare = run([program("hazard"), "no-memory"])
    shimmed = run([program("hazard"), "no-memory"], scratch)
    assert (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode), shimmed
    print(Walked(scratch), shimmed.stderr.decode().strip())
    assert shimmed.stderr.count(b"tscope: off: no memory") <= 1 and b"/tmp/tscope" not in shimmed.stderr, shimmed.stderr


def file_size_limit(scratch):
    for limit in (1, 100000, 3000000):
        directory = os.path.join(scratch, str(limit))
        bare = run([program("hazard"), "small-files", str(limit)])
        shimmed = run([program("hazard"), "small-files", str(limit)], directory)
        assert (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode), shimmed
        print(limit, Walked(directory), shimmed.stderr.decode().strip())
        assert len(shimmed.stderr.splitlines()) <= 1, shimmed.stderr


def mounted_tmpfs(scratch, megabytes):
    where = os.path.join(scratch, "small")
    undos.append(mount_small(where, megabytes))
    return where


def mounted_overlay(scratch):
    """A file system on which a trace is memory that is carried to the file."""
    where = mounted_tmpfs(scratch, 64)
    folders = {name: os.path.join(where, name) for name in ("lower", "upper", "work", "merged")}
    for folder in folders.values():
        os.mkdir(folder)
    undos.append(mount("overlay", folders["merged"], "lowerdir={lower},upperdir={upper},workdir={work}".format(**folders)))
    return folders["merged"]


def check_locked(directory):
    for when in ("before", "after"):
        check_recorded(os.path.join(directory, when), "lock-memory", when, launches=52000, env=ONLY_LAUNCHES,
                       lossless=False)


def all_memory_locked(scratch):
    """What is reserved for the trace and not used is not locked, nor filled, and does not count for the limit."""
    if run([program("hazard"), "lock-memory", "before"]).returncode == 99:
        raise Skip("the limit of locked memory is too low")
    check_locked(os.path.join(scratch, "mapped"))
    check_locked(mounted_overlay(scratch))


def memory_locked_by_a_program_that_does_not_train(scratch):
    """The tables that only training fills are not there."""
    if run([program("hazard"), "lock-idle"]).returncode == 99:
        raise Skip("the limit of locked memory is too low")
    bare, shimmed = (int(run([program("hazard"), "lock-idle"], where).stdout.split()[0]) for where in (None, scratch))
    print(f"{shimmed - bare} kB more")
    assert shimmed - bare < 8000, (bare, shimmed)
    check_untouched(scratch)


def threads_apart_from_the_one_that_wakes(scratch):
    """tscope's threads have the first thread's cores unless that is only one, no real-time policy, and the helper
    descriptors of its own, on older kernels too."""
    for which in ([], ["first"]):
        directory = os.path.join(scratch, *which, "traces")
        os.makedirs(directory)
        check_recorded(directory, "look-at-threads", *which, launches=1000)


def memory_locked_by_a_forked_child(scratch):
    if run([program("hazard"), "lock-idle"]).returncode == 99:
        raise Skip("the limit of locked memory is too low")
    for directory in (os.path.join(scratch, "mapped"), mounted_overlay(scratch)):
        bare = run_both(directory, "lock-in-child")
        assert b"little memory, little of it locked" in bare.stdout, bare


def address_space_limited_later(scratch):
    """What is reserved for the trace and not used is given back."""
    for directory in (os.path.join(scratch, "mapped"), mounted_overlay(scratch)):
        for call in ("setrlimit", "prlimit"):
            where = os.path.join(directory, call)
            os.makedirs(where)
            bare = run_both(where, "limit-address-space", call, env=ONLY_LAUNCHES)
            assert bare.stdout.startswith(b"room for more"), bare
            walked = Walked(where)
            assert walked.launches + walked.lost == 201000, walked


def more_threads_than_are_looked_at(scratch):
    """All are counted, and the trace says that the waits are only those of the first."""
    for threads, said in (2000, 0), (2100, 1):
        directory = os.path.join(scratch, str(threads))
        os.makedirs(directory)
        if run([program("hazard"), "threads-asleep", str(threads)]).returncode == 99:
            raise Skip("this process may not have so many threads")
        check_recorded(directory, "threads-asleep", str(threads), launches=1000)
        trace, = read_trace.read_all(directory)
        assert trace.records["Scheduling"][-1].threads == threads + 1, trace.records["Scheduling"][-1]
        texts = [trace.strings[info.value] for info in trace.records["Info"] if info.value]
        assert texts.count("only of the first 2,048 threads") == said, texts


def waits_of_threads_for_a_core(scratch):
    """No thread's wait is counted twice, whichever numbers the threads have."""
    waited = os.path.join(scratch, "waited")
    done = run([program("hazard"), "threads-wait", waited], scratch)
    assert done.returncode == 0, done
    with open(waited, encoding="ascii") as file:
        of_kernel, apart, asked_ns = map(int, file.read().split())
    trace, = read_trace.read_all(scratch)
    looks = trace.records["Scheduling"]
    if apart % 1024:
        raise Skip("other processes took the thread's number")
    print(f"threads {apart} apart waited {of_kernel / 1e9:.3f} s, recorded {looks[-1].wait_ns / 1e9:.3f} s")
    if looks[-1].wait_ns == (1 << 64) - 1:
        raise Skip("this kernel does not count waits")
    since = 3 * max(0, looks[-1].at_ns - asked_ns) # three threads may have waited again until the last look
    if since > 0.5 * of_kernel:
        raise Skip("the last look came so late that a wait which counts twice would not be seen")
    assert len(looks) > 4 and 0 < looks[-1].wait_ns <= of_kernel + since, looks


def memory_read_at_the_end(scratch):
    check_recorded(scratch, "look-at-the-end", launches=5000)


def core_dump_without_the_reserve(scratch):
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        pattern = file.read().strip()
    if pattern != "core":
        raise Skip(f"core dumps go to {pattern}")
    megabytes = {}
    for name, directory in (("bare", None), ("carried", mounted_overlay(scratch))):
        folder = os.path.join(scratch, name)
        os.mkdir(folder)
        assert run([program("hazard"), "core-dump", folder], directory).returncode == -signal.SIGABRT
        cores = [os.path.join(folder, core) for core in os.listdir(folder)]
        if not cores:
            raise Skip("this machine leaves no core dumps")
        megabytes[name] = sum(os.stat(core).st_blocks for core in cores) * 512 / 1e6
    print(megabytes)
    assert megabytes["carried"] < megabytes["bare"] + 50, megabytes


def disk_full(scratch):
    where = mounted_tmpfs(scratch, 2)
    shimmed = run([program("hazard"), "busy"], where, ONLY_LAUNCHES)
    assert (shimmed.returncode, shimmed.stdout) == (0, b"2000000 launches\n"), shimmed
    assert len(shimmed.stderr.splitlines()) <= 1, shimmed.stderr
    walked = Walked(where)
    print(walked, shimmed.stderr.decode().strip())
    assert walked.lost > 0 and walked.launches + walked.lost == 2000000, walked


def disk_full_from_the_start(scratch):
    where = mounted_tmpfs(scratch, 1)
    with open(os.path.join(where, "filler"), "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
    shimmed = run([program("hazard"), "busy"], os.path.join(where, "traces"))
    assert (shimmed.returncode, shimmed.stdout) == (0, b"2000000 launches\n"), shimmed
    assert len(shimmed.stderr.splitlines()) <= 1, shimmed.stderr


ADDR_NO_RANDOMIZE = 0x0040000  # sys/personality.h


def with_large_pages(directory, command, **env):
    """Runs the command with a library that imitates a kernel with 64 KiB pages; returns what the shim wrote."""
    pages = program("liblarge_pages.so")
    bare = run(command, env={"LD_PRELOAD": pages, **env})
    assert b"LD_PRELOAD" not in bare.stderr, bare.stderr
    check_same(bare, run(command, directory, env={"LD_PRELOAD": f"{pages}:{LIBRARY}", **env}))
    return Walked(directory)


def pages_of_64_kib(scratch):
    for arguments, launches in {("plain", "100000"): 100000, ("fork",): 8000,
                                ("threads", "8"): 8 * 20000}.items():
        walked = with_large_pages(os.path.join(scratch, arguments[0]),
                                  [program("hazard"), *arguments], **ONLY_LAUNCHES)
        print(*arguments, walked)
        assert (walked.files, walked.closed) == (1, 1), walked
        assert walked.launches + walked.lost == launches, walked
    # The shim must leave memory writable that the linker left writable, when it looks for printed values.
    # A kernel with large pages loads a program at the start of such a page. Without randomisation of
    # addresses, this kernel does so too.
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    directory = os.path.join(scratch, "printed")
    with_large_pages(directory, [program("prints")], TSCOPE_SCALARS="stdout")
    trace, = read_trace.read_all(directory)
    assert len(trace.records["Scalar"]) == 1000, len(trace.records["Scalar"])


# The directory.

def check_refused(directory, stderr="tscope", arguments=("plain", "10000"), **more):
    """The job runs the same; the shim prints one line that says why nothing is recorded."""
    run_both(directory, *arguments, stderr=stderr, **more)


def copy_to_readable_folder(scratch):
    """Copies the files to a folder that other users can read: the clone may be in a closed home folder."""
    global LIBRARY, PROGRAMS
    os.chmod(scratch, 0o755)
    for file in (LIBRARY, program("hazard"), program("walk"), program("libcudart.so.13")):
        shutil.copy(file, scratch)
    LIBRARY, PROGRAMS = os.path.join(scratch, os.path.basename(LIBRARY)), scratch


def directory_read_only(scratch):
    if os.geteuid() == 0:
        copy_to_readable_folder(scratch)
        where = os.path.join(scratch, "of-nobody")
        os.mkdir(where, 0o500)
        os.chown(where, NOBODY, NOBODY)
        check_refused(where, user=NOBODY, group=NOBODY, extra_groups=[])
    else:
        os.chmod(scratch, 0o500)
        check_refused(scratch)
        os.chmod(scratch, 0o700)


def directory_cannot_be_made(_):
    check_refused("/proc/nonexistent/traces")


def directory_is_a_file(scratch):
    path = os.path.join(scratch, "file")
    with open(path, "w", encoding="utf-8") as file:
        file.write("mine")
    check_refused(path)
    with open(path, encoding="utf-8") as file:
        assert file.read() == "mine"


def symlink_planted_at_the_directory(scratch):
    victim, planted = os.path.join(scratch, "victim"), os.path.join(scratch, "planted")
    os.mkdir(victim, 0o700)
    os.symlink(victim, planted)
    check_refused(planted)
    assert os.listdir(victim) == []


def symlink_planted_at_the_run(scratch):
    directory, victim = os.path.join(scratch, "traces"), os.path.join(scratch, "victim")
    os.mkdir(directory, 0o700)
    os.mkdir(victim, 0o700)
    os.symlink(victim, os.path.join(directory, "planted"))
    bare = run([program("hazard"), "plain", "10000"])
    shimmed = run([program("hazard"), "plain", "10000"], directory, env={"TSCOPE_RUN": "planted"})
    assert (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode), shimmed
    assert os.listdir(victim) == []


def directory_of_someone_else(scratch):
    if os.geteuid() != 0:
        raise Skip("giving a directory to someone else needs root")
    os.chmod(scratch, 0o755)
    os.chown(scratch, NOBODY, NOBODY)
    os.chmod(scratch, 0o777)
    check_refused(scratch)
    assert os.listdir(scratch) == []


def files_are_private(scratch):
    directory = os.path.join(scratch, "made", "traces")
    os.mkdir(os.path.dirname(directory))
    run([program("hazard"), "plain", "1000"], directory, umask=0)
    for folder, _, files in os.walk(directory):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for file in files:
            assert stat.S_IMODE(os.stat(os.path.join(folder, file)).st_mode) == 0o600, file
    assert Walked(directory).launches == 1000


# Stream captures.

def compare_captures(scratch, mode):
    """The same results, nodes and errors with every source of GPU times, also for the job's illegal calls."""
    bare = run([program("captures"), mode])
    assert bare.returncode == 0, bare
    print(bare.stdout.decode())
    nodes = [int(line.split()[0]) for line in bare.stdout.decode().splitlines() if " nodes:" in line]
    for clock in ("cupti", "events", "host", "auto"):
        directory = os.path.join(scratch, clock)
        check_same(bare, run([program("captures"), mode], directory, env={"TSCOPE_GPU": clock}))
        trace, = read_trace.read_all(directory)
        # Two graphs are instantiated; each has three collectives and is launched three times.
        graphs = trace.records["Graph"]
        assert [graph.nodes for graph in graphs] == nodes[:2], (clock, graphs, nodes)
        assert [graph.collectives for graph in graphs] == [3, 3], (clock, graphs)
        replays = [replay.graph for replay in trace.records["GraphReplay"]]
        assert replays == [graph.graph for graph in graphs for _ in range(3)], (clock, replays)
        assert all(replay.result == 0 for replay in trace.records["GraphReplay"]), clock
        print(f"TSCOPE_GPU={clock}: the same; {len(trace.records['CollectiveRun'])} runs of collectives, "
              f"{len(trace.records['GpuKernel'])} of kernels seen")


def captures_global(scratch):
    compare_captures(scratch, "global")


def captures_of_a_thread(scratch):
    compare_captures(scratch, "thread")


def captures_relaxed(scratch):
    compare_captures(scratch, "relaxed")


def setuid_program(scratch):
    """The loader ignores a preload with a path for a setuid program, which must run as without it."""
    if os.geteuid() != 0:
        raise Skip("making a setuid program of someone else needs root")
    os.chmod(scratch, 0o755)
    for name in ("hazard-static",):
        shutil.copy(program(name), scratch)
        os.chmod(os.path.join(scratch, name), 0o4755)
    command = [os.path.join(scratch, "hazard-static"), "plain", "10000"]
    directory = os.path.join(scratch, "traces")
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    bare, shimmed = run(command, **user), run(command, directory, **user)
    assert bare.returncode == 0, (bare, pwd.getpwuid(NOBODY))
    assert (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode), shimmed
    assert not os.path.exists(directory)


# A place that the job can no longer reach.

def check_places(scratch, *arguments, **more):
    """Where the trace is mapped and where it is carried to a file, at the end too: tscope's thread has it open."""
    launches = 400000 + 1000 * (arguments[0] != "mask-all")
    overlay = mounted_overlay(scratch)
    for kind, where, at_once in (("mapped", scratch, "0"), ("mapped", scratch, "1"), *(("carried", overlay, how) for how in "01")):
        directory = os.path.join(where, kind + at_once)
        os.makedirs(directory)
        if "user" in more:
            os.chown(directory, NOBODY, NOBODY)
        check_recorded(directory, *arguments, at_once, launches=launches, env=ONLY_LAUNCHES, **more)


def root_directory_changed(scratch):
    if os.geteuid() != 0:
        raise Skip("another root directory needs root")
    other = os.path.join(scratch, "other")
    os.mkdir(other)
    check_places(scratch, "change-root", other)


def user_changed(scratch):
    if os.geteuid() != 0:
        raise Skip("becoming another user needs root")
    check_places(scratch, "change-user")


def mask_that_allows_nothing(scratch):
    if os.geteuid() == 0:
        copy_to_readable_folder(scratch)
        check_places(scratch, "mask-all", user=NOBODY, group=NOBODY, extra_groups=[])
    else:
        check_places(scratch, "mask-all")


# Other tools.

def environment_seen(result):
    """The output of the program and its child, without the variables that the preload needs."""
    kept = [line for line in result.stdout.decode().splitlines()
            if not line.startswith(("LD_PRELOAD=", "TSCOPE_DIR="))]
    return result.returncode, kept, result.stderr


def nvtx(directory, **env):
    bare = run([program("nvtx")], env=env)
    shimmed = run([program("nvtx")], directory, env=env)
    assert environment_seen(bare) == environment_seen(shimmed), (bare, shimmed)
    trace, = read_trace.read_all(directory)
    assert not any(trace.lost), trace.lost
    return bare.stdout, trace.records["Range"], trace.records["StepRange"]


def nvtx_injection_free(scratch):
    """Ranges are recorded, and neither the program nor its child can see that there is a tool."""
    output, ranges, steps = nvtx(scratch)
    assert output.count(b"push -2\n") == 1001, output[:100]
    assert [step.number for step in steps] == list(range(1000)), len(steps)
    assert len(ranges) == 1000, len(ranges)


def nvtx_injection_taken(scratch):
    """The user has another NVTX tool, which gets all ranges; the shim records none."""
    output, ranges, steps = nvtx(scratch, NVTX_INJECTION64_PATH=program("libnvtx_tool.so"))
    assert output.count(b"push 100\n") == 1001 and output.count(b"pop 101\n") == 1001, output[:100]
    assert not ranges and not steps


def nvtx_off(scratch):
    for env in ({"TSCOPE_NVTX": "off"}, {"NVTX_INJECTION64_PATH": "/nonexistent.so"},
                {"NVTX_INJECTION64_PATH": LIBRARY, "TSCOPE_NVTX": "off"}):
        _, ranges, steps = nvtx(os.path.join(scratch, "-".join(env)), **env)
        assert not ranges and not steps


def nvtx_in_a_program_that_does_not_train(scratch):
    """Every program in a job's shell script inherits the preload: getenv() must be unchanged in it."""
    code = ("import ctypes, os; libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p;"
            "print(os.environ.get('NVTX_INJECTION64_PATH'), libc.getenv(b'HOME'), libc.getenv(b''),"
            "libc.getenv(b'NVTX'), libc.getenv(b'NVTX_INJECTION64_PATH=x'), os.system('env'))")
    bare = run(["python3", "-c", code])
    shimmed = run(["python3", "-c", code], scratch)
    assert environment_seen(bare) == environment_seen(shimmed), (bare, shimmed)
    check_untouched(scratch)


def address_sanitizer_in_the_program(scratch):
    """Its runtime ends a program in which another library comes first."""
    if not os.path.exists(program("hazard-asan")):
        raise Skip("this compiler has no AddressSanitizer")
    check_recorded(scratch, "plain", "10000", name="hazard-asan", launches=10000, lossless=False)


def thread_sanitizer_in_the_program(scratch):
    """It reports races, and ends the program with a status of its own."""
    if not os.path.exists(program("hazard-tsan")):
        raise Skip("this compiler has no ThreadSanitizer")
    bare = run([program("hazard-tsan"), "thread-churn"])
    if bare.returncode:
        raise Skip(f"ThreadSanitizer does not work here: {bare.stderr[:200]}")
    check_recorded(scratch, "thread-churn", name="hazard-tsan", launches=20000, lossless=False)


def settings_that_are_not_valid(scratch):
    """All in one line."""
    run_both(scratch, "plain", "1000", stderr="not valid: tscope_gpu=x (using auto), tscope_gpu_steps=3/2 (using none), ",
             env={"TSCOPE_GPU": "x", "TSCOPE_GPU_STEPS": "3/2", "TSCOPE_STALL": "never", "TSCOPE_LINES": "?"})
    run_both(scratch, "plain", "1000", env={"TSCOPE_GPU_STEPS": "2/3", "TSCOPE_STALL": "300"})


def losses_beyond_all_numbers(scratch):
    run_both(scratch, "extremes", name="prints")
    trace, = read_trace.read_all(scratch)
    values = [scalar.bits for scalar in trace.records["Scalar"]]
    assert len(values) == 6, values


def clock_that_stands_still(scratch):
    """Whatever another preloaded library makes of the time, tscope's own waits end."""
    command, clock = [program("hazard"), "fork"], program("libfrozen_clock.so")
    bare = run(command, env={"LD_PRELOAD": clock})
    assert bare.returncode == 0, bare
    for number, order in enumerate(((LIBRARY, clock), (clock, LIBRARY))):
        directory = os.path.join(scratch, str(number))
        check_same(bare, run(command, directory, env={"LD_PRELOAD": ":".join(order)}))
        assert Walked(directory).launches == 8000, Walked(directory)


def main():
    hazard = globals()[sys.argv[3].replace("-", "_")]
    if EMULATOR and sys.argv[3] in NOT_EMULATED:
        raise Skip(NOT_EMULATED[sys.argv[3]])
    scratch = tempfile.mkdtemp(prefix="tscope-hazard-")
    try:
        hazard(scratch)
    finally:
        for undo in undos:
            undo()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
