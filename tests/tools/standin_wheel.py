# SPDX-License-Identifier: MIT
"""The stock CUDA wheel of PyTorch with the stand-ins in place of NVIDIA's libraries, without
changing the wheel.

PyTorch's libraries find NVIDIA's by a run path relative to themselves ($ORIGIN/../../nvidia/.../lib). So this makes a
folder that looks like site-packages, with `torch` and `nvidia` in it: real folders down to the libraries, with symbolic
links to the wheel's own files or to the stand-ins. If it comes first in PYTHONPATH, `import torch` takes everything
from there.
"""
import os
import subprocess

from outcomes import Skip

STANDINS = {
    "cu13": ["libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13",
             "libcuda.so.1", "libnvidia-ml.so.1"],
    "nccl": ["libnccl.so.2", "libcuda.so.1"],
}


def site_packages(python):
    """The folder of PyTorch and its CUDA libraries, or None and the reason."""
    code = ("import importlib.util as u, os; torch = u.find_spec('torch'); "
            "print(os.path.dirname(torch.submodule_search_locations[0]) if torch else '')")
    result = subprocess.run([python, "-c", code], capture_output=True, text=True)
    place = result.stdout.strip()
    if not place:
        return None, "no PyTorch"
    if not os.path.exists(os.path.join(place, "torch", "lib", "libtorch_cuda.so")):
        return None, f"the PyTorch in {place} is not built for CUDA"
    if not os.path.exists(os.path.join(place, "nvidia", "cu13", "lib", "libcudart.so.13")):
        return None, f"no CUDA 13 libraries as wheels have them in {place}/nvidia/cu13/lib"
    return place, None


def site_or_skip(python):
    place, why_not = site_packages(python)
    if not place:
        raise Skip(f"{why_not}; scripts/setup installs the wheel for CUDA")
    return place


def link_all(source, target, but=()):
    """Links each entry of a folder, except those in `but`."""
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if name not in but:
            os.symlink(os.path.join(source, name), os.path.join(target, name))


def make(site, standins, folder):
    """Fills `folder`. `standins` is the folder of the stand-in libraries."""
    link_all(os.path.join(site, "torch"), os.path.join(folder, "torch"), but=("lib",))
    link_all(os.path.join(site, "torch", "lib"), os.path.join(folder, "torch", "lib"))
    nvidia = os.path.join(site, "nvidia")
    link_all(nvidia, os.path.join(folder, "nvidia"), but=STANDINS)
    for part, names in STANDINS.items():
        own = os.path.join(folder, "nvidia", part)
        link_all(os.path.join(nvidia, part), own, but=("lib",))
        link_all(os.path.join(nvidia, part, "lib"), os.path.join(own, "lib"), but=names)
        for name in names:
            os.symlink(os.path.join(os.path.abspath(standins), name),
                       os.path.join(own, "lib", name))
    return folder
