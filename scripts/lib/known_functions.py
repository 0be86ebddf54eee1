#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The functions that the libraries are known to export, as hashes for preload/resolve/unknown_functions.c:
known_functions.py OUTPUT LIST..."""
import sys

# CUDA 12 has these, CUDA 13 has not: the GPU clock alone sees what they start.
OLDER = ["cudaLaunchCooperativeKernelMultiDevice", "cudaMemPrefetchAsync_v2", "cudaMemPrefetchAsync_v2_ptsz"]


def fnv(name):
    """The lower half of tscope_fnv()."""
    value = 0xcbf29ce484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value % 2**32


def main():
    output, *lists = sys.argv[1:]
    names = set(OLDER)
    for path in lists:
        with open(path, encoding="utf-8") as file:
            file.readline()  # whose they are
            names.update(file.read().split())
    with open(output, "w", encoding="utf-8") as file:
        file.writelines(f"{value}u,\n" for value in sorted({fnv(name) for name in names}))


main()
