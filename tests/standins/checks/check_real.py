# SPDX-License-Identifier: MIT
"""NVIDIA's own libraries under the preload: check_real.py LIBTSCOPE DRIVER PROGRAM.

Each library that is found on this machine must hold tscope's functions in place of the driver's,
and with TSCOPE_DRIVER=off the driver's own. Exits 77 where there is none.
"""
import glob
import os
import subprocess
import sys

# What makes the library look the driver up.
LIBRARIES = {"libcudart.so.1[23]": "cudaGetDeviceCount", "libcublasLt.so.1[23]": "cublasLtCreate",
             "libcublas.so.1[23]": "cublasCreate_v2", "libnccl.so.2": "ncclCommInitAll",
             "libcudnn_graph.so.9": "cudnnCreate"}


def folders():
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    venv = os.environ.get("TSCOPE_VENV", os.path.join(cache, "tscope", "venv"))
    yield from glob.glob(os.path.join(venv, "lib", "python3*", "site-packages", "nvidia", "*", "lib"))
    for root in filter(None, (os.environ.get("CUDA_HOME"), "/usr/local/cuda")):
        yield from (os.path.join(root, "lib64"), os.path.join(root, "lib"))


def find(pattern):
    for folder in folders():
        for path in sorted(glob.glob(os.path.join(folder, pattern))):
            return path
    return None


def look(shim, driver, program, library, function, **more):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("TSCOPE", "LD_"))}
    environment.update(LD_PRELOAD=shim, **more)
    return subprocess.run([program, driver, library, function], env=environment, timeout=60,
                          capture_output=True, text=True, check=False)


def main():
    shim, driver, program = map(os.path.realpath, sys.argv[1:4])
    looked = 0
    for pattern, function in LIBRARIES.items():
        library = find(pattern)
        if not library:
            print(f"skipped: no {pattern} on this machine")
            continue
        done = look(shim, driver, program, library, function)
        print(done.stdout + done.stderr)
        if done.returncode:
            sys.exit(f"{library} got past tscope")
        off = look(shim, driver, program, library, function, TSCOPE_DRIVER="off")
        if "tscope's 0 times" not in off.stdout or off.returncode != 3:
            sys.exit(f"{library} with TSCOPE_DRIVER=off:\n{off.stdout}{off.stderr}")
        looked += 1
    sys.exit(0 if looked else 77)


main()
