# SPDX-License-Identifier: MIT
"""recorder_pickle.py DUMP [SHARED]: values that Python pickles, and real files, are read the same by Python and by the
analyzer's reader; anything that is not plain data is refused by name."""
import argparse
import collections
import datetime
import math
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile

random.seed(4)


def scalar():
    return random.choice([
        lambda: None, lambda: random.random() < 0.5,
        lambda: random.randint(-300, 300), lambda: random.randint(-2**31, 2**31),
        lambda: random.choice([1, -1]) * random.getrandbits(random.choice([15, 63, 64, 65, 200, 2100])),
        lambda: random.choice([2**63, 2**63 - 1, -2**63, -2**63 - 1, 2**31, -2**31, 255, 256, 65536]),
        lambda: random.choice([0.0, -0.0, 1e308, 5e-324, math.inf, -math.inf, random.gauss(0, 1e9)]),
        lambda: "".join(chr(random.choice([9, 10, 39, 92, 0x41, 0xe9, 0x20ac, 0x1f600, 0]))
                        for _ in range(random.choice([0, 1, 5, 255, 256, 300]))),
        lambda: random.choice(["state", "frames", "filename", "line"]),
    ])()


def thing(depth):
    if depth == 0 or random.random() < 0.3:
        return scalar()
    kind = random.choice(["list", "tuple", "dict", "shared", "long"])
    if kind == "list":
        return [thing(depth - 1) for _ in range(random.randint(0, 5))]
    if kind == "tuple":
        return tuple(thing(depth - 1) for _ in range(random.randint(0, 5)))
    if kind == "dict":
        return {scalar(): thing(depth - 1) for _ in range(random.choice([0, 1, 3, 40]))}
    if kind == "shared":
        one = thing(depth - 1)
        return [one, (one, one), {"again": one}]
    return [scalar() for _ in range(2500)] if random.random() < 0.2 else \
        {i: scalar() for i in range(1500)}


def later(protocol, value):
    """Types for which only the newer protocols have an instruction."""
    if protocol >= 3:
        value = [value, b"", bytes(range(256)), b"x" * 300]
    if protocol >= 4:
        value = [value, {1, "a", (2, 3)}, frozenset([None, 1.5]), set()]
    return [value, bytearray(b"buffer")] if protocol >= 5 else value


def same(a, b):
    if isinstance(b, (bytearray, bytes)):
        return isinstance(a, bytes) and a == bytes(b)
    if isinstance(b, (set, frozenset)):
        return isinstance(a, frozenset) and a == b
    if isinstance(b, float):
        return isinstance(a, float) and (a == b and math.copysign(1, a) == math.copysign(1, b))
    if type(a) is not type(b):
        return False
    if isinstance(b, dict):
        return len(a) == len(b) and all(
            same(k, l) and same(v, w) for (k, v), (l, w) in zip(a.items(), b.items()))
    if isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def dump(program, path):
    done = subprocess.run([program, path], capture_output=True, text=True, timeout=120)
    if done.returncode == 1:
        return False, done.stdout.strip()
    assert done.returncode == 0, (path, done)
    names = {"Float": float.fromhex, "Set": frozenset, "Str": lambda b: b.decode("utf-8", "surrogatepass"),
             "Big": lambda b: int.from_bytes(b, "little", signed=True)}
    return True, eval(done.stdout, names)  # pylint: disable=eval-used


REFUSED = {
    "os.system": lambda: type("X", (), {"__reduce__": lambda self: (os.system, ("echo run",))})(),
    "collections.OrderedDict": lambda: collections.OrderedDict(a=1),
    "datetime.timedelta": lambda: datetime.timedelta(1),
    "builtins.complex": lambda: 1j,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("shared", nargs="?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tscope-pickle-") as folder:
        path = os.path.join(folder, "pickle")

        def write(data):
            pathlib.Path(path).write_bytes(data)

        for round_ in range(60):
            protocol = 2 + round_ % 4
            value = later(protocol, thing(4))
            write(pickle.dumps(value, protocol))
            good, got = dump(options.dump, path)
            assert good, (protocol, got)
            assert same(got, value), (protocol, value, got)
        for name, make in REFUSED.items():
            for protocol in range(2, 6):
                write(pickle.dumps([make()], protocol))
                good, got = dump(options.dump, path)
                wanted = name.replace("os.", "posix.") if name == "os.system" else name
                if protocol < 3:
                    wanted = wanted.replace("builtins", "__builtin__")
                assert not good and (wanted in got or "copy_reg._reconstructor" in got), (
                    name, protocol, good, got)
        again = []
        again.append(again)
        write(pickle.dumps(again))
        good, got = dump(options.dump, path)
        assert not good and "contains itself" in got, got

    real = sorted(pathlib.Path(options.shared or "/nowhere").glob("testdata/flight_recorder/*/_dump_*"))
    if not real:
        print("no recordings of others beside the source: that part is skipped")
    for path in real:
        with open(path, "rb") as file:
            wanted = pickle.load(file)
        good, got = dump(options.dump, path)
        assert good and same(got, wanted), path
    print(f"{len(real)} recordings read alike")


sys.exit(main())
