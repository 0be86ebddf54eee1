# SPDX-License-Identifier: MIT
"""NVIDIA's own libraries under the preload: check_real.py LIBTSCOPE DRIVER PROGRAM.

Each of these libraries on this machine must hold pointers to tscope's functions in place of the
driver's, and with TSCOPE_DRIVER=off to the driver's own. Exits with 77 if there is no such library.
"""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import observed  # noqa: E402
from outcomes import SKIPPED  # noqa: E402
from torch_python import virtual_environment  # noqa: E402

# The function of each library that looks up the driver's functions.
LIBRARIES = {"libcudart.so.1[23]": "cudaGetDeviceCount", "libcublasLt.so.1[23]": "cublasLtCreate",
             "libcublas.so.1[23]": "cublasCreate_v2", "libnccl.so.2": "ncclCommInitAll",
             "libcudnn_graph.so.9": "cudnnCreate"}


def folders():
    yield from glob.glob(os.path.join(virtual_environment(), "lib", "python3*", "site-packages", "nvidia", "*", "lib"))
    for root in filter(None, (os.environ.get("CUDA_HOME"), "/usr/local/cuda")):
        yield from (os.path.join(root, "lib64"), os.path.join(root, "lib"))


def find(pattern):
    for folder in folders():
        for path in sorted(glob.glob(os.path.join(folder, pattern))):
            return path
    return None


def run_check(shim, driver, program, library, function, **more):
    environment = observed.observed_environment(shim, None, **more)
    environment.pop("LD_LIBRARY_PATH", None)
    return observed.run(program, driver, library, function, ok=None, env=environment, timeout=60)


def main():
    shim, driver, program = map(os.path.realpath, sys.argv[1:4])
    checked = 0
    for pattern, function in LIBRARIES.items():
        library = find(pattern)
        if not library:
            print(f"skipped: no {pattern} on this machine")
            continue
        done = run_check(shim, driver, program, library, function)
        print(done.stdout + done.stderr)
        if done.returncode:
            sys.exit(f"{library} got past tscope")
        off = run_check(shim, driver, program, library, function, TSCOPE_DRIVER="off")
        if "tscope's 0 times" not in off.stdout or off.returncode != 3:
            sys.exit(f"{library} with TSCOPE_DRIVER=off:\n{off.stdout}{off.stderr}")
        checked += 1
    sys.exit(0 if checked else SKIPPED)


main()
