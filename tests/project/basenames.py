#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No two source files have the same name, so that a name alone identifies a file: basenames.py SOURCE. Except the files
that each folder has (meson.build, __init__.py, README.md). So a comment that names a file by its name names one that
exists, and one that names it by its path in this project gives the right one. Another path in front of it, such as
security/yama/yama_lsm.c, says that it is of another project. With `fail` it tests that itself."""
import collections
import os
import re
import sys

from tree import in_git, text_of

KINDS = ("*.c", "*.h", "*.def", "*.py", "*.S", "*.js")
EACH_FOLDER = {"__init__.py", "conftest.py"}
OF_OTHERS = {"poll.c": "a file of the C library in an example of a stack"}
COMMENT = r"/\*.*?\*/|^\s*//[^\n]*"
# With a path that begins in a top folder; of files that other projects have too, such as headers, only with it.
NAMED = (r"(?<![\w./<*-])((?:analyzer|preload|format|inspect|docs)/(?:[\w-]+/)*[\w-]+\.(?:c|h|def|js|md|py)\b"
         r"|\w+\.(?:c|def)\b)")


def gone_from(text, source, names):
    """What its comments name and is not there."""
    named = set(re.findall(NAMED, " ".join(re.findall(COMMENT, text, re.S | re.M)))) - OF_OTHERS.keys()
    return sorted(name for name in named
                  if not (os.path.exists(os.path.join(source, name)) if "/" in name else name in names))


def fail(source):
    names = {"quantity.c"}
    wrong = ["/* see gone.c */", "/* analyzer/report/text/quantity.c */", "// docs/outputs/hosts.md", "/* a,\n * gone.def */"]
    right = ["/* quantity.c, cuda.h, security/yama/yama_lsm.c, train.py:9 */", "/* analyzer/base/quantity.c */", "int gone_c; f(\"gone.c\");"]
    missed = [text for text in wrong if not gone_from(text, source, names)]
    blamed = [text for text in right if gone_from(text, source, names)]
    print("missed:", missed, "blamed:", blamed)
    return 1 if missed or blamed else 0


def main():
    source = sys.argv[1]
    if sys.argv[2:] == ["fail"]:
        return fail(source)
    places = collections.defaultdict(list)
    for path in in_git(source, *KINDS):
        places[os.path.basename(path)].append(path)
    shared = {name: paths for name, paths in places.items() if len(paths) > 1 and name not in EACH_FOLDER}
    for name, paths in sorted(shared.items()):
        print(f"{name}: {', '.join(paths)}")
    gone = []
    for path in sorted(path for paths in places.values() for path in paths):
        if path.startswith(("analyzer/", "preload/", "format/", "inspect/")):
            gone += [f"{path}: a comment names {name}, which does not exist"
                     for name in gone_from(text_of(source, path), source, places)]
    print("\n".join(gone + [f"{len(places)} names, {len(shared)} of more than one file; {len(gone)} in comments do not exist"]))
    return 1 if shared or gone else 0


if __name__ == "__main__":
    sys.exit(main())
