# SPDX-License-Identifier: MIT
"""The frames of this interpreter as tscope reads them, compared with those from Python itself.

usage: frames.py LIBRARY [SECONDS]    with each Python of this machine, see each_python.py
"""
import ctypes
import functools
import os
import random
import sys
import tempfile
import threading
import time

LIBRARY, SECONDS = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
BUFFER_BYTES = 1 << 18
checked = 0
failures = []

keeps_gil, drops_gil = ctypes.PyDLL(LIBRARY), ctypes.CDLL(LIBRARY)
for library in keeps_gil, drops_gil:
    library.walker_find.restype = ctypes.c_char_p
    library.walker_stack.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.walker_state.restype = ctypes.c_ulong
    library.walker_watch.argtypes = [ctypes.c_ulong, ctypes.c_int]
    library.walker_watched.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.walker_watched_often.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.walker_watched_us.restype = ctypes.c_double
    library.walker_watched_us.argtypes = [ctypes.c_int, ctypes.c_int]
keeps_gil.walker_ns.restype = ctypes.c_double
WALKS = [functools.partial(library.walker_stack) for library in (keeps_gil, drops_gil)]
local = threading.local()


def buffer():
    if not hasattr(local, "buffer"):
        local.buffer = ctypes.create_string_buffer(BUFFER_BYTES)
    return local.buffer


def truth(frame):
    lines = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        lines.append("%s:%d:%s" % (code.co_filename, frame.f_lineno or 0, name))
        frame = frame.f_back
    return lines


def check(what):
    """Compares the frames of this function and its callers."""
    global checked
    for walk in WALKS:
        for by_system_call in 0, 1:
            text = buffer()
            frames, expected = walk(text, BUFFER_BYTES, by_system_call), truth(sys._getframe())
            got = text.value.decode("utf-8", "surrogateescape").splitlines()
            checked += 1
            if frames != len(expected) or got != expected:
                failures.append((what, expected, frames, got))
    return True


def test_plain():
    check("plain")
    (check
     ("over several lines")
     )
    (lambda: check("lambda"))()
    [check("comprehension") for _ in range(2)]

    class Body:
        done = check("class body")

        def method(self):
            return check("method")

        @property
        def value(self):
            return check("property")
    Body().method(), Body().value


def test_generators():
    def inner(n):
        check("generator")
        yield n
        check("generator, later")

    def outer():
        check("outer generator")
        yield from inner(1)
        yield from (check("generator expression") for _ in range(2))
    list(outer())
    half = outer()
    next(half)
    half.close()


def test_coroutines():
    import asyncio

    async def leaf():
        check("coroutine")
        await asyncio.sleep(0)
        check("coroutine, later")

    async def stream():
        for i in range(2):
            check("async generator")
            yield i

    async def main():
        await asyncio.gather(leaf(), leaf())
        async for _ in stream():
            check("async for")
    asyncio.run(main())


def test_callbacks():
    sorted([2, 1], key=lambda n: check("key of sorted") and n)
    list(map(lambda n: check("map"), [1]))
    functools.reduce(lambda a, b: check("reduce"), [1, 2])
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    libc = ctypes.CDLL(None)
    array = (ctypes.c_int * 2)(2, 1)
    libc.qsort(array, 2, 4, compare(lambda a, b: check("callback of C") and 1))

    class Dies:
        def __del__(self):
            check("destructor")

    def leaves():
        dies = Dies()
        return dies is None
    leaves()


def test_exceptions():
    def raises():
        try:
            raise ValueError
        except ValueError:
            check("except")
            raise
        finally:
            check("finally")

    class Context:
        def __enter__(self):
            check("enter")

        def __exit__(self, *_):
            return check("exit")
    with Context():
        raises()


def test_recursion():
    def down(n):
        return check("recursion") if n == 0 else down(n - 1)
    down(400)


def test_tracing():
    sys.settrace(lambda *_: lambda *_: None)
    try:
        def traced():
            check("traced")
        traced()
    finally:
        sys.settrace(None)


def test_names():
    folder = tempfile.mkdtemp()
    for name in "ascii", "caf\u00e9", "\u8bad\u7ec3", "\U0001f680", "x" * 200:
        source = "def %s():\n\n  check('name')\n" % ("f" if "\U0001f680" == name else name)
        space = {"check": check}
        exec(compile(source, "%s/%s.py" % (folder, name), "exec"), space)
        space["f" if "\U0001f680" == name else name]()


def test_long_code():
    """Large differences between lines, long instructions, and line numbers that decrease."""
    body = ["def long(x):"]
    for i in range(400):
        body.append("  x = [x, %s]" % ", ".join("x" for _ in range(i % 40)))
        body.extend([""] * (300 if i % 100 == 7 else 0))
        if i % 50 == 3:
            body.append("  check('long')")
        if i % 60 == 5:
            body.append("  (check\n   (\n 'back'\n))")
        body.append("  x = 1")
    space = {"check": check}
    exec(compile("\n".join(body), "<long>", "exec"), space)
    space["long"](1)


def fresh_code(rng, space):
    """Makes a code object with the name, file and size of the last one, but another line."""
    before = rng.randrange(1, 9)
    source = "\n" * before + "def again():\n" + "\n" * (9 - before) + "  check('again')\n"
    exec(compile(source, "<again>", "exec"), space)
    space["again"]()


def churn(seed, until):
    rng = random.Random(seed)
    space = {"check": check}

    def numbers(n):
        for i in range(n):
            if rng.random() < 0.2:
                check("churn: generator")
            yield i

    def fails(depth):
        if depth:
            return fails(depth - 1)
        check("churn: deep")
        raise KeyError

    while time.monotonic() < until and len(failures) < 3:
        fresh_code(rng, space)
        sum(numbers(rng.randrange(6)))
        try:
            fails(rng.randrange(20))
        except KeyError:
            check("churn: handler")


def test_churn():
    until = time.monotonic() + SECONDS
    sys.setswitchinterval(1e-5)

    def waves(seed):
        while time.monotonic() < until and len(failures) < 3:
            thread = threading.Thread(target=churn, args=(seed, time.monotonic() + 0.05))
            thread.start()
            thread.join()
    threads = [threading.Thread(target=churn, args=(i, until)) for i in range(4)]
    threads += [threading.Thread(target=waves, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(0.005)


class Watched:
    """A thread that stalls at each place until it is told to go on."""

    def __init__(self, run):
        self.arrived, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.done = False
        self.thread = threading.Thread(target=self.main, args=(run,))
        self.thread.start()
        self.arrived.acquire()

    def main(self, run):
        self.state, self.tid = keeps_gil.walker_state(), threading.get_native_id()
        self.stand()
        run(self.stand)
        self.done = True
        self.arrived.release()

    def stand(self):
        self.arrived.release()
        self.go_on.acquire()

    def next(self):
        self.go_on.release()
        self.arrived.acquire()


def seen(library):
    frames = library.walker_watched(buffer(), BUFFER_BYTES)
    lines = buffer().value.decode("utf-8", "surrogateescape").splitlines()
    return lines[:frames], lines[frames:]


def same_place(thread):
    """What Python says of the other thread, once it waits."""
    while True:
        before = truth(sys._current_frames()[thread.thread.ident])
        time.sleep(0.001)
        if before == truth(sys._current_frames()[thread.thread.ident]):
            return before


def test_watched():
    """Another thread's frames, read again and again while its stack grows, shrinks and changes."""
    global checked
    rng = random.Random(1)
    space = {}

    def fresh(stand):
        before = rng.randrange(1, 9)
        source = "\n" * before + "def again(stand):\n" + "\n" * (9 - before) + "  stand()\n"
        exec(compile(source, "<again>", "exec"), space)
        space["again"](stand)

    def numbers(stand):
        for i in range(2):
            stand()
            yield i

    def deeper(stand, depth):
        if depth:
            return deeper(stand, depth - 1)
        stand()
        rng.choice((fresh, lambda s: sum(numbers(s)), lambda s: sorted([2, 1], key=lambda n: s() or n)))(stand)

    def run(stand):
        for _ in range(60):
            deeper(stand, rng.randrange(100))
            fresh(stand)

    thread = Watched(run)
    assert keeps_gil.walker_watch(thread.state, thread.tid) == 1
    while not thread.done and not failures:
        expected = same_place(thread)
        for library in keeps_gil, drops_gil:
            got, _ = seen(library)
            checked += 1
            if got != expected:
                failures.append(("watched", expected, got))
        thread.next()
    thread.go_on.release()
    thread.thread.join()


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def chains(stop):
    while not stop:
        even(30), odd(21), even(4), sum(i for i in range(9))


def down_1(n):
    while n:
        n -= 1
    return n


def down_2(n):
    while n:
        n -= 1
    return n


def calls_1(n):
    down_1(n)


def calls_2(n):
    down_2(n)


def pairs(stop):
    while not stop:
        calls_1(5), calls_2(5), calls_1(50), calls_2(50)


def yields_1():
    for _ in range(3):
        yield down_1(1)


def yields_2():
    for _ in range(3):
        yield down_2(1)


def generators(stop):
    while not stop:
        list(yields_1()), list(yields_2())
        for _ in yields_1():
            pass


def key_1(_):
    return down_1(1)


def key_2(_):
    return down_2(1)


def callbacks(stop):
    while not stop:
        sorted((2, 1), key=key_1), sorted((2, 1), key=key_2)


# Who calls whom. A thread's first function has no caller here.
CALLERS = {"even": {"odd", "chains"}, "odd": {"even", "chains"}, "<genexpr>": {"chains"},
           "down_1": {"calls_1", "yields_1", "key_1"}, "down_2": {"calls_2", "yields_2", "key_2"},
           "calls_1": {"pairs"}, "calls_2": {"pairs"}, "yields_1": {"generators"}, "yields_2": {"generators"},
           "key_1": {"callbacks"}, "key_2": {"callbacks"}}
LOOKS = int(500 * SECONDS)  # at each of them


def never_was(names):
    """Whether this is no stack of these threads: a caller is wrong, or the outermost frames are missing."""
    return names[-1] != "_bootstrap" or any(outer not in CALLERS.get(inner, {outer})
                                            for inner, outer in zip(names, names[1:]))


def looks_at(run):
    """The functions of a thread that runs, innermost first; looked at often, without the GIL."""
    stop = []
    thread = Watched(lambda _: run(stop))
    assert keeps_gil.walker_watch(thread.state, thread.tid) == 1
    thread.go_on.release()
    text = ctypes.create_string_buffer(LOOKS << 11)
    drops_gil.walker_watched_often(text, len(text), LOOKS)
    stop.append(True)
    thread.thread.join()
    lines = text.value.decode().splitlines()
    return [[name.rsplit(".", 1)[-1] for name in line.split(";")] for line in lines if line]


def test_watched_while_it_runs():
    """Each stack that is seen is one that the thread had, however fast its functions call each other."""
    for run in chains, pairs, generators, callbacks:
        seen_stacks = looks_at(run)
        wrong = [names for names in seen_stacks if never_was(names)]
        print("  %s: %d of %d looks without frames, %d stacks that never were"
              % (run.__name__, LOOKS - len(seen_stacks), LOOKS, len(wrong)))
        if wrong or not seen_stacks:
            failures.append(("watched while it runs", run.__name__, len(seen_stacks), wrong[:3]))


def word_at(memory, address):
    try:
        return int.from_bytes(os.pread(memory, 8, address), "little")
    except (OSError, OverflowError):
        return None


def copied(memory, address):
    """The words behind an address, as they are now."""
    words = [word_at(memory, address + 8 * i) for i in range(40)]
    return (ctypes.c_uint64 * len(words))(*[word or 0 for word in words])


def test_damaged():
    """A look at a state whose frames are no frames any more, as that of a thread that ends, is a look without frames."""
    state = keeps_gil.walker_state()
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    looks = 0
    for i, word in enumerate(copied(memory, state)):
        if word < 4096 or word % 8 or word_at(memory, word) is None:
            continue
        for j in range(20):
            for damage in -1, -8, 8, 1 << 47:
                top, frame = copied(memory, state), copied(memory, word)
                top[i], frame[j] = ctypes.addressof(frame), damage
                if keeps_gil.walker_watch(ctypes.addressof(top), os.getpid()) == 1:
                    keeps_gil.walker_watched(buffer(), BUFFER_BYTES)
                    looks += 1
    os.close(memory)
    assert looks


def test_sub_interpreters():
    """The right frames or none, but never frames of another interpreter."""
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        try:
            import _interpreters as interpreters
        except ImportError:
            return print("no module for sub-interpreters")
    source = '''if True:
    import sys
    try:
        import ctypes
    except ImportError: # only the main interpreter may import it
        ctypes = None
    if ctypes:
        for library in ctypes.PyDLL(%r), ctypes.CDLL(%r):
            text = ctypes.create_string_buffer(1 << 16)
            library.walker_stack.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            frames = library.walker_stack(text, 1 << 16, 0)
            f, expected = sys._getframe(), []
            while f:
                expected.append(f.f_code.co_filename)
                f = f.f_back
            got = [line.split(":")[0] for line in text.value.decode().splitlines()]
            if frames > 0 and got != expected:
                raise SystemError((got, expected))
    ''' % (LIBRARY, LIBRARY)
    interpreter = interpreters.create()
    try:
        run = getattr(interpreters, "run_string", None) or interpreters.exec
        error = run(interpreter, source)
        if error is not None:
            failures.append(("sub-interpreter", error))
        text = buffer()
        frames = drops_gil.walker_stack(text, BUFFER_BYTES, 0)
        if frames not in (0, len(truth(sys._getframe()))):
            failures.append(("beside a sub-interpreter", frames))
    finally:
        interpreters.destroy(interpreter)
    check("after a sub-interpreter")


def main():
    why = keeps_gil.walker_find()
    if why is not None:
        print("not read: %s" % (why.decode() or "no Python"))
        return 1
    tests = [value for name, value in sorted(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
        if failures:
            break
    for failure in failures[:3]:
        print("WRONG", *failure, sep="\n  ")
    cost = keeps_gil.walker_ns(100000)
    print("%s: %d stacks compared, %d wrong; a walk of %d frames takes %.0f ns"
          % (sys.version.split()[0], checked, len(failures), len(truth(sys._getframe())), cost))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
