# SPDX-License-Identifier: MIT
"""File systems that only the test's own process and what it starts see."""
import ctypes
import os

from outcomes import Skip

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, RECURSIVE_PRIVATE = 0x20000, 0x4000 | 1 << 18
READ_ONLY, REMOUNT, BIND = 1, 32, 4096


def begin():
    """A mount namespace of its own."""
    if os.geteuid() != 0 or LIBC.unshare(NEW_MOUNTS):
        raise Skip("mounting needs root")
    LIBC.mount(None, b"/", None, RECURSIVE_PRIVATE, None)


def mount(kind, where, options, flags=0):
    """Returns what unmounts it."""
    if LIBC.mount(kind.encode(), where.encode(), kind.encode(), flags, options.encode()):
        raise Skip(f"mounting was refused: {os.strerror(ctypes.get_errno())}")
    return lambda: LIBC.umount2(where.encode(), 2)


def mount_small(where, megabytes, mode="1777"):
    """A file system of that size."""
    begin()
    os.makedirs(where, exist_ok=True)
    return mount("tmpfs", where, f"size={megabytes}m,mode={mode}")


def mount_read_only(where):
    """What is in the folder stays, and cannot be changed."""
    begin()
    undo = mount(where, where, "", BIND)
    try:
        mount(where, where, "", BIND | REMOUNT | READ_ONLY)
    except Skip:
        undo()
        raise
    return undo
