#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the include directories with the CUDA Toolkit and NCCL headers, one per line.

With --cupti12 it prints only the directory of CUPTI's headers of CUDA 12, which tests use, or nothing; with
--newest-nccl likewise that of the newest NCCL's.

Looks under the first argument, $CUDA_HOME, /usr/local/cuda, and the include folders of the nvidia-* Python packages. If
a header is missing, prints its name and how to get it, and exits with status 1.
"""
import glob
import os
import site
import sys
import sysconfig

sys.dont_write_bytecode = True
from virtual_environment import virtual_environment  # noqa: E402

WANTED = {
    "cuda_runtime_api.h": "nvidia-cuda-runtime",
    "crt/host_defines.h": "nvidia-cuda-crt",
    "cuda.h": "nvidia-cuda-runtime",
    "cupti.h": "nvidia-cuda-cupti",
    "nccl.h": "nvidia-nccl-cu13",
    "nv/target": "nvidia-cuda-cccl",
    "nvtx3/nvToolsExt.h": "nvidia-nvtx",
}


def candidates(explicit):
    roots = [explicit, os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    for root in filter(None, roots):
        yield os.path.join(root, "include")
        yield os.path.join(root, "include", "cccl")
        yield os.path.join(root, "extras", "CUPTI", "include")
        for target in sorted(glob.glob(os.path.join(root, "targets", "*-linux", "include"))):  # conda's
            yield target
            yield os.path.join(target, "cccl")
    packages = [folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))]
    packages += site.getsitepackages() + [site.getusersitepackages(), sysconfig.get_path("purelib")]
    packages += glob.glob(os.path.join(virtual_environment(), "lib", "python3*", "site-packages"))
    for package in packages:
        yield from sorted(glob.glob(os.path.join(package, "nvidia", "*", "include")))
    yield "/usr/include"
    yield "/usr/local/include"


# Of versions that cannot be in the environment beside others: option, folder, package, a header.
BESIDE = {"--cupti12": ("cupti12", "cuda_cupti", "cupti.h"), "--newest-nccl": ("newest-nccl", "nccl", "nccl.h")}


def main():
    if sys.argv[1:] and sys.argv[1] in BESIDE:
        folder, package, header = BESIDE[sys.argv[1]]
        directory = os.path.join(os.path.dirname(virtual_environment()), folder, "nvidia", package, "include")
        if os.path.exists(os.path.join(directory, header)):
            print(directory)
        return 0
    found, used = {}, []
    for directory in candidates(sys.argv[1] if len(sys.argv) > 1 else None):
        for header in WANTED:
            if header not in found and os.path.exists(os.path.join(directory, header)):
                found[header] = directory
                if directory not in used:
                    used.append(directory)
    missing = [header for header in WANTED if header not in found]
    if missing:
        packages = " ".join(sorted({WANTED[header] for header in missing}))
        print(f"missing header(s): {', '.join(missing)}. Set CUDA_HOME (or -Dcuda-home=...) to a CUDA "
              f"Toolkit, or run: pip install {packages}   (scripts/setup does this)")
        return 1
    print("\n".join(directory for directory in used if directory != "/usr/include"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
