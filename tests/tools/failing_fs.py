#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A file system that passes everything on to another folder, until it is told to fail.

    failing_fs.py MOUNT FOLDER CONTROL

Once the file CONTROL has the name of an error ("EIO", "ENOSPC"), writes fail with it; with "ESTALE" everything does, as
after a server forgot its clients; with "SILENCE" nothing is answered until CONTROL has another content. Runs until it is unmounted. Needs Debian's python3-fusepy, so it runs with the
system's Python. Ends with status 77 if it cannot run here.
"""
import errno
import os
import sys
import time

try:
    import fusepy
except (ImportError, OSError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)

MOUNT, FOLDER, CONTROL = sys.argv[1:4]
STAT = "st_atime st_ctime st_gid st_mode st_mtime st_nlink st_size st_uid st_ino st_blocks".split()


def error_now():
    try:
        with open(CONTROL, encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def check(writes):
    while (name := error_now()) == "SILENCE":
        time.sleep(0.01)
    if name and (writes or name == "ESTALE"):
        raise fusepy.FuseOSError(getattr(errno, name))


class Passing(fusepy.Operations):
    def __call__(self, operation, path, *arguments):
        check(operation in ("write", "truncate", "create", "mkdir"))
        return super().__call__(operation, FOLDER + path, *arguments)

    def getattr(self, path, fh=None):
        found = os.fstat(fh) if fh else os.lstat(path)
        return {name: getattr(found, name) for name in STAT}

    def statfs(self, path):
        found = os.statvfs(path)
        return {name: getattr(found, name) for name in dir(found) if name.startswith("f_")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(path)]

    def create(self, path, mode, fi=None):
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(path, length)

    def rename(self, old, new):
        os.rename(old, FOLDER + new)

    def release(self, path, fh):
        os.close(fh)

    def access(self, path, amode):
        pass

    open = staticmethod(os.open)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    unlink = staticmethod(os.unlink)
    chmod = staticmethod(os.chmod)
    chown = staticmethod(os.chown)


fusepy.FUSE(Passing(), MOUNT, foreground=True, nothreads=True, use_ino=True)
