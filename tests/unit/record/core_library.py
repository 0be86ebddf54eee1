# SPDX-License-Identifier: MIT
"""What libtscope.so needs from a process and exports to it: core_library.py LIBRARY SOURCE_ROOT.

It is loaded into every program of a job, so it must need nothing that an older system lacks, and must export only
hooked names and the functions of tscope.h.
"""
import re
import subprocess
import sys
from pathlib import Path


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def hooked_names(root):
    """Every name that some registry of hooks mentions."""
    text = "".join(path.read_text() for path in sorted((root / "preload").rglob("*.def")))
    names = set(re.findall(r"\b_?\w+", text))
    twins = {name + suffix for name in names for suffix in ("_ptsz", "_ptds", "_64")}
    return names | twins


def exported_names(library):
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


# strerror() reads the catalogue of the job's language, under a lock that a forked child may find taken.
READS_CATALOGUES = {"strerror", "strerror_r", "__xpg_strerror_r", "perror", "gettext", "dcgettext"}


def fail(message):
    sys.exit(f"libtscope.so {message}")


def main():
    library, root = sys.argv[1], Path(sys.argv[2])
    dynamic = run("readelf", "-Wd", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    if not needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}:
        fail(f"needs {needed}")
    if "NODELETE" not in dynamic:
        fail("may be unloaded")
    if "TEXTREL" in dynamic:
        fail("has text relocations")
    versions = {tuple(map(int, found.split("."))) for found in
                re.findall(r"GLIBC_([0-9.]+)", run("readelf", "-WV", library))}
    if max(versions) > (2, 28):
        fail(f"asks for GLIBC_{'.'.join(map(str, max(versions)))}")
    called = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", library).splitlines()}
    if called & READS_CATALOGUES:
        fail(f"calls {sorted(called & READS_CATALOGUES)}")
    exported = exported_names(library)
    api = set(re.findall(r"\b(tscope_\w+)\(", (root / "preload/include/tscope.h").read_text()))
    if not api <= exported:
        fail(f"does not export {sorted(api - exported)}")
    surplus = exported - api - hooked_names(root)
    if surplus:
        fail(f"exports {sorted(surplus)}, which no registry names")
    # One of them belongs to the compiler and registers nothing here.
    sizes = re.findall(r"\.(?:pre)?init_array\s+\w+\s+\w+\s+\w+\s+(\w+)", run("readelf", "-WS", library))
    if sum(int(size, 16) for size in sizes) > 8:
        fail(f"runs constructors when loaded ({sizes})")
    print(f"needs {needed}, up to GLIBC_{'.'.join(map(str, max(versions)))}, "
          f"exports {len(exported)} names")


main()
