# SPDX-License-Identifier: MIT
"""Which functions of CUDA's and NCCL's libraries tscope knows: those that it hooks, and those of the table
preload/hooks/unhooked.txt, each with the reason why it is not hooked."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TABLE = os.path.join(ROOT, "preload", "hooks", "unhooked.txt")
LISTS = os.path.join(ROOT, "preload", "hooks", "exported")  # what each library exports: its name, version, functions


def entries(lines):
    """[(section, key, words)] of a table of `[section]` and `key: words`; a line that begins with spaces goes on."""
    section, found = None, []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip()[1:-1]
        elif line.startswith(" "):
            found[-1][2].extend(line.split())
        else:
            key, _, words = line.partition(":")
            found.append((section, key, words.split()))
    return found


class Unhooked:
    """The table: self.reasons {reason: text}, self.functions {library: {function or pattern: reason}}."""

    def __init__(self, lines):
        self.reasons, self.functions, self.twice = {}, {}, []
        types = {}
        for section, key, words in entries(lines):
            if section == "reasons":
                self.reasons[key] = " ".join(words)
            elif section == "types":
                types[key] = words
            else:
                self._add(section, key, words, types)

    def _add(self, library, reason, words, types):
        known = self.functions.setdefault(library, {})
        for word in words:
            kind = re.search(r"<(\w+)>", word)
            for name in [word.replace(kind[0], each) for each in types[kind[1]]] if kind else [word]:
                if name in known:
                    self.twice.append(name)
                known[name] = reason

    def reason(self, library, function):
        """None if nobody has decided. A name that ends in * stands for all that begin so."""
        known = self.functions.get(library, {})
        return known.get(function) or next((why for name, why in known.items()
                                            if name.endswith("*") and function.startswith(name[:-1])), None)


def table():
    with open(TABLE, encoding="utf-8") as file:
        return Unhooked(file)


def exported_by(library):
    """The functions that a shared library exports, without those of C++ and of the linker."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return sorted({row[2].partition("@")[0] for row in rows if len(row) == 3 and row[1] in "TWi"
                   and not row[2].startswith(("_Z", "_init", "_fini"))})


def listed():
    """{library: (package and version, functions)} of the lists."""
    found = {}
    for name in sorted(os.listdir(LISTS)):
        with open(os.path.join(LISTS, name), encoding="utf-8") as file:
            found[name.removesuffix(".txt")] = (file.readline().strip(), file.read().split())
    return found


def undecided(library, functions, hooked, known):
    return [name for name in functions if name not in hooked and not known.reason(library, name)]
