# SPDX-License-Identifier: MIT
"""Where in a build folder its programs and libraries are."""
import os

FOLDERS = {"libtscope.so": "preload", "tscope": "scripts", "tscope-run": "scripts", "tracegen": "tests/tracegen",
           "train": "tests/standins", "libskewclock.so": "tests/standins", "hazard": "tests/hazards"}


def built(build, name):
    return os.path.join(build, FOLDERS.get(name, "analyzer"), name)


def programs_of(build):
    """The folders of all that users start, for PATH."""
    return os.pathsep.join(os.path.dirname(built(build, name)) for name in ("tscope-run", "tscope-report"))


def standins_of(build):
    """The folder of the libraries that stand in for those of NVIDIA."""
    return os.path.join(build, "tests", "standins", "lib")
