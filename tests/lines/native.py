# SPDX-License-Identifier: MIT
"""Native stacks read from outside: native.py TSCOPE-STACKS PROGRAM [TEST...]. PROGRAM (native_standing.c) and a Python
program stall. The output of `tscope-stacks --native` is compared with the functions that they are known to be
in, and frame by frame with gdb if it is installed. No thread may be left stopped."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from outcomes import wait_until  # noqa: E402
from processes import AS_NOBODY, WITHOUT_PTRACE, children_of, states_of_threads  # noqa: E402

STACKS, PROGRAM = map(os.path.realpath, sys.argv[1:3])
LOOP = "_PyEval_EvalFrameDefault"
GDB = """
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, inlined = gdb.newest_frame(), None
    while frame is not None:
        if frame.type() == gdb.INLINE_FRAME:
            inlined = inlined or frame.name()
        elif frame.type() != gdb.TAILCALL_FRAME:
            name = frame.name() or ""
            print("frame\\t%d\\t%s\\t%s\\t%s" % (thread.ptid[1], gdb.solib_name(frame.pc()) or "program", name, inlined or name))
            inlined = None
        frame = frame.older()
"""
passed = 0


def start(*command):
    job = subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True)
    job.first_line = job.stdout.readline()
    return job


def end(job):
    job.kill()
    job.wait()


def wait_for_states(pid, wanted, letters):
    """Waits until the threads of a process have these states; `wanted` is how often each occurs, 0 for as given."""
    states = sorted(letters * wanted if wanted else letters)
    try:
        wait_until(f"threads are {states}", lambda: sorted(states_of_threads(pid).values()) == states, each=0.01)
    except AssertionError as late:
        raise AssertionError(f"they are {states_of_threads(pid)}") from late


def frames(pid, *options, **how):
    done = subprocess.run([STACKS, *options, "--frames", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=60, **how)
    threads = {}
    for line in done.stdout.splitlines():
        fields = line.split("\t")
        threads.setdefault(int(fields[1]), []).append(fields[2:])
    return threads, done


def page(pid, **how):
    return subprocess.run([STACKS, "--native", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=60, **how)


def by_gdb(pid):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(GDB)
        script.flush()
        done = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
                               "-iex", "set backtrace past-main on", "-p", str(pid),
                               "-x", script.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
    threads = {}
    for line in done.stdout.splitlines():
        if line.startswith("frame\t"):
            _, tid, library, name, innermost = line.split("\t")
            loop = name.startswith(LOOP)
            threads.setdefault(int(tid), []).append((library, name if loop else innermost))
    return threads


def plain(name):
    """One form for all names of a function, such as __GI___poll and poll, or clone3 and __clone3."""
    name = re.split(r"[(<@]|\.(?:constprop|part|isra|cold|lto_priv)", name)[0]
    return re.sub(r"^_*(GI_+|libc_|pthread_)?_*|_impl$", "", name)


def compare_with_gdb(pid, native):
    """Compares the frames of threads that stall. gdb shows Python frames as calls of Python's loop."""
    if not shutil.which("gdb"):
        print("   not compared: gdb is not installed")
        return
    same = unknown = 0
    for tid, other in by_gdb(pid).items():
        mine = [("", LOOP) if not library else (os.path.basename(library), function)
                for _, _, function, library in native.get(tid, [])]
        mine = [frame for i, frame in enumerate(mine) if frame[1] != LOOP or not i or mine[i - 1][1] != LOOP]
        other = [frame for i, frame in enumerate(other)
                 if not frame[1].startswith(LOOP) or not i or not other[i - 1][1].startswith(LOOP)]
        assert len(mine) == len(other), (tid, mine, other)
        for (library, name), (solib, theirs) in zip(mine, other):
            if library and solib != "program":
                assert library == os.path.basename(solib), (tid, mine, other)
            if name.startswith("+0x") or not theirs:
                unknown += 1
                continue
            assert plain(name) == plain(theirs), (name, theirs, mine, other)
            same += 1
    assert same >= 10 and same >= unknown, (same, unknown)
    print("   gdb agrees on the names of %d frames; for %d one of the two has no name" % (same, unknown))


def test_known_functions():
    job = start(PROGRAM)
    try:
        wait_for_states(job.pid, 0, "S" * 7 + "R")
        found, done = frames(job.pid, "--native")
        assert done.returncode == 0, done
        names = {tid: [frame[2] for frame in stack] for tid, stack in found.items()}
        first = names.pop(job.pid)
        assert [name for name in first if name in ("stands", "stands_on_much", "main")] == \
            ["stands", "stands_on_much", "main"] and "pause" in first[0], first
        assert first[-1] == "_start", first
        waiting = [stack for stack in names.values() if "waits_inside" in stack]
        assert len(waiting) == 6, names
        for stack in waiting:
            at = stack.index("waits_inside")
            assert stack[at:at + 3] == ["waits_inside", "waits_outside", "waits"], stack
            assert at > 0 and "start_thread" in stack, stack
        spinning = [stack for stack in names.values() if "spins_inside" in stack]
        assert len(spinning) == 1 and spinning[0][:2] == ["spins_inside", "spins"], names
        source = [frame for frame in found[job.pid] if frame[2] == "stands"][0]
        assert source[0].endswith("native_standing.c") and int(source[1]) > 0 and source[3] == PROGRAM, source
        compare_with_gdb(job.pid, {tid: stack for tid, stack in found.items()})
        assert sorted(states_of_threads(job.pid).values()) == list("RSSSSSSS"), states_of_threads(job.pid)
        output = page(job.pid)
        assert "8 threads stopped one after another" in output.stdout and output.returncode == 0, output.stdout
        assert re.search(r"stands_on_much .*> .* stands .*> ", output.stdout), output.stdout
    finally:
        end(job)


def test_stripped():
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "stripped")
        subprocess.run(["strip", "-o", stripped, PROGRAM], check=True)
        ids = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", PROGRAM], stdout=subprocess.PIPE,
                                                           universal_newlines=True).stdout)
        both = [start(PROGRAM), start(stripped)]
        try:
            counts = []
            for job in both:
                wait_for_states(job.pid, 0, "S" * 7 + "R")
                found = frames(job.pid, "--native")[0]
                counts.append(sorted(map(len, found.values())))
            assert counts[0] == counts[1], counts
            own = [frame for stack in found.values() for frame in stack if frame[3] == stripped]
            nameless = [frame for frame in own if frame[2].startswith("+0x")]
            assert len(nameless) >= 6 * 3 + 2 + 2, own
            assert not ids or all(frame[2].endswith(" of build " + ids[1]) for frame in nameless), nameless
        finally:
            for job in both:
                end(job)


def test_python():
    job = start(sys.executable, os.path.join(HERE, "standing.py"))
    try:
        truth = json.loads(job.first_line)
        wait_for_states(job.pid, 3, "S")
        whole, done = frames(job.pid, "--native")
        alone, _ = frames(job.pid)
        for tid, stack in whole.items():
            python = [frame[:3] for frame in stack if not frame[3]]
            assert python == alone.get(tid, []), (stack, alone)
            assert stack[0][3], stack  # the innermost frame is C, in which it sleeps
            assert not any(frame[2].startswith(LOOP) for frame in stack), stack
        output = page(job.pid).stdout
        # An interpreter with tail calls has no frame for its loop.
        if "native frames between Python frames are not known" in output:
            assert sys.version_info >= (3, 14), output
            for stack in whole.values():
                where = [bool(frame[3]) for frame in stack]
                assert where == sorted(where, reverse=True), stack
                assert not any("python3" in os.path.basename(frame[3]) for frame in stack), stack
            print("   native frames between Python frames are not known, and the page says so")
            return
        # Between a callback and the function that got it there are C frames.
        callback = [stack for stack in whole.values() if any(frame[2] == "compare" for frame in stack)][0]
        at = [frame[2] for frame in callback].index("compare")
        assert callback[at + 1][3] and [frame[2] for frame in callback if not frame[3]][:3] == truth["callback"], callback
        compare_with_gdb(job.pid, whole)
        assert "Py_BytesMain" not in output and "standing.py" in output, output
    finally:
        end(job)


def test_stopped():
    job = start(PROGRAM)
    try:
        os.kill(job.pid, signal.SIGSTOP)
        wait_for_states(job.pid, 8, "T")
        found, _ = frames(job.pid, "--native")
        assert "stands_on_much" in [frame[2] for frame in found[job.pid]], found
        assert set(states_of_threads(job.pid).values()) == {"T"}, states_of_threads(job.pid)  # it is still stopped
        os.kill(job.pid, signal.SIGCONT)
        wait_for_states(job.pid, 0, "S" * 7 + "R")
    finally:
        end(job)


def test_goes_on():
    """Of a call with a time limit that was interrupted the kernel no longer says which it is."""
    job = subprocess.Popen(["sleep", "100"])
    try:
        wait_for_states(job.pid, 1, "S")
        os.kill(job.pid, signal.SIGSTOP)
        wait_for_states(job.pid, 1, "T")
        os.kill(job.pid, signal.SIGCONT)
        wait_for_states(job.pid, 1, "S")
        printed = subprocess.run([STACKS, str(job.pid)], stdout=subprocess.PIPE, universal_newlines=True).stdout
        assert "not known: restart_syscall, asleep in " in printed, printed
    finally:
        end(job)


def test_uninterruptible():
    job = start(PROGRAM, "vfork")
    try:
        wait_for_states(job.pid, 1, "D")
        output = page(job.pid)
        assert output.returncode == 0 and "uninterruptible, and did not stop" in output.stdout, output.stdout
        wait_for_states(job.pid, 1, "D")
    finally:
        for child in children_of(job.pid):
            os.kill(child, signal.SIGKILL)
        job.wait()
    assert job.returncode == 0


def test_little_memory():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2)
    if subprocess.run([STACKS, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit).returncode:
        print("   skipped: a sanitizer needs more address space")
        return
    job = start(PROGRAM)
    try:
        output = page(job.pid, preexec_fn=limit)
        assert output.returncode == 0 and "no native frames: its stacks could not be copied: No buffer" in output.stdout, output.stdout
    finally:
        end(job)


def test_killed_tool():
    """The program goes on, whenever the tool is killed."""
    job = start(PROGRAM)
    try:
        wait_for_states(job.pid, 0, "S" * 7 + "R")
        for i in range(30):
            tool = subprocess.Popen([STACKS, "--native", str(job.pid)], stdout=subprocess.DEVNULL)
            time.sleep(i / 3000)
            tool.send_signal((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[i % 3])
            tool.wait()
            wait_for_states(job.pid, 0, "S" * 7 + "R")
    finally:
        end(job)


def test_ends_meanwhile():
    for i in range(30):
        job = start(PROGRAM)
        tool = subprocess.Popen([STACKS, "--native", str(job.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(i / 3000)
        job.kill()
        tool.communicate(timeout=60)
        job.wait()
        assert tool.returncode in (0, 1), tool.returncode
        assert job.returncode == -signal.SIGKILL, job.returncode  # its parent sees how it ended
    assert frames(job.pid, "--native")[1].returncode == 1  # gone


def test_traced_already():
    if not shutil.which("gdb"):
        print("   skipped: gdb is not installed")
        return
    job = start(PROGRAM)
    other = subprocess.Popen(["gdb", "-nx", "-q", "-p", str(job.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        wait_for_states(job.pid, 8, "t")
        output = page(job.pid).stdout
        assert "process %d traces it already" % other.pid in output, output
    finally:
        end(other)
        end(job)


def test_refused():
    if os.geteuid():
        print("   skipped: needs root, to be another user")
        return
    job = start(PROGRAM)
    folder = tempfile.mkdtemp()
    program = shutil.copy(STACKS, folder)
    os.chmod(folder, 0o755)
    try:
        done = subprocess.run([*AS_NOBODY, program, "--native", str(job.pid)], stdout=subprocess.PIPE, universal_newlines=True)
        assert "no native frames: not permitted, it belongs to another user" in done.stdout, done.stdout
        assert "process %d  now" % job.pid in done.stdout and done.returncode == 0, done.stdout
        # The same user, but without a capability that the program has.
        done = subprocess.run([*WITHOUT_PTRACE, STACKS, "--native", str(job.pid)], stdout=subprocess.PIPE,
                              universal_newlines=True)
        assert "no native frames: not permitted: " in done.stdout and "CAP_SYS_PTRACE" in done.stdout, done.stdout
        assert "process %d  now" % job.pid in done.stdout and done.returncode == 0, done.stdout
    finally:
        end(job)
        shutil.rmtree(folder)


def main():
    missing = page(os.getpid()).stdout
    if "built without native frames" in missing:
        print("tscope-stacks was built without native frames, and says so")
        return 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_") and name in (sys.argv[3:] or (name,)):
            print(sys.version.split()[0], name, flush=True)
            test()
    return 0


sys.exit(main())
