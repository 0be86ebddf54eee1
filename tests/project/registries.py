#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No file of the tree names a host of a package registry: registries.py SOURCE [fail]. Each machine has its own mirror, and
its package managers know it. With `fail`: such a host is found where one is.
"""
import os
import re
import sys
import tempfile

# Names and endings apart, so that this file has none of them.
HOSTS = [("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org"), ("wrapdb.mesonbuild", "com"), ("npmjs", "org"),
         ("npmjs", "com"), ("yarnpkg", "com"), ("crates", "io"), ("rubygems", "org"), ("maven", "org"), ("docker", "io"),
         ("docker", "com"), ("ghcr", "io"), ("quay", "io"), ("gcr", "io"), ("nvcr", "io"), ("deb.debian", "org"),
         ("security.debian", "org"), ("archive.ubuntu", "com"), ("ports.ubuntu", "com"), ("proxy.golang", "org"),
         ("developer.download.nvidia", "com")]
PATTERN = re.compile(rb"(?<![\w-])(?:[\w-]+\.)*(?:%s)(?![\w-])"
                     % b"|".join(re.escape(".".join(host).encode()) for host in HOSTS), re.I)


def files(source):
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if not name.startswith((".git", "build", "__pycache__")) and
                      not os.path.exists(os.path.join(folder, name, "meson-private"))]
        if folder == source and "subprojects" in folders:
            folders.remove("subprojects")  # what `meson wrap install` put there
        for name in names:
            yield os.path.join(folder, name)


def named(source):
    for path in files(source):
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            for number, line in enumerate(file.read().split(b"\n"), 1):
                found = PATTERN.search(line)
                if found:
                    yield f"{os.path.relpath(path, source)}:{number}: {found[0].decode()}"


def main():
    found = list(named(os.path.realpath(sys.argv[1])))
    if sys.argv[2:] == ["fail"]:
        with tempfile.TemporaryDirectory(prefix="tscope-registries-") as folder:
            for number, host in enumerate(HOSTS):
                with open(os.path.join(folder, str(number)), "w", encoding="utf-8") as file:
                    file.write(f"first\nurl = https://www.{'.'.join(host)}/simple\nnone.{host[0]}.example, {host[0]}\n")
            found = [one for one in named(folder) if ":2: www." in one]
            return 0 if len(found) == len(HOSTS) == len(list(named(folder))) else f"{len(found)} of {len(HOSTS)} hosts"
    return "\n".join(found) or 0


if __name__ == "__main__":
    sys.exit(main())
