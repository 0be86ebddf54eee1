#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lack of memory ends the analyzer, and no size of an allocation can wrap: sizes.py ROOT. In analyzer/ all memory comes from
base/checked_memory.h, base/arena.h and base/vector.h; nobody asks whether there was any, and a count that is calculated is calculated by size_sum() and size_product(): `n + 1` of a u32 may be 0,
and a file can make it so. With `fail` it tests itself."""
import re
import sys

from tree import below, text_of, without_comments

TAKERS = re.compile(r"\b(memory_array|memory_zeroed|memory_resized|arena_array|arena_alloc|arena_copy)\(")
OTHERS = re.compile(r"(?<![\w>.])(malloc|calloc|realloc|reallocarray|alloca|strn?dup|v?asprintf|open_memstream)\(")
OWN = ("analyzer/base/checked_memory.c", "analyzer/base/checked_memory.h", "analyzer/base/arena.h")
CONSTANT = r"(?:[A-Z][A-Z0-9_]*|[0-9]+[uUlL]*)"


def closing(text, at):
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return len(text)


def calculated(arguments):
    """Whether a sum, product or shift is left when what is checked, or constant, is taken away."""
    arguments = re.sub(r"sizeof\((?:[^()]|\([^()]*\))*\)", "S", arguments)
    for _ in range(8):
        arguments = re.sub(r"\bsize_(?:sum|product)\((?:[^()]|\([^()]*\))*\)", "S", arguments)
    arguments = re.sub(rf"\b{CONSTANT} [*+] (?={CONSTANT}\b)", "", arguments)
    return re.search(r"[^(,\s]\s+(?:\+|\*|<<)\s|\+\+", arguments) is not None


def faults(path, text):
    for found in re.finditer(r"\bENOMEM\b", text):
        yield (f"{path}:{text.count(chr(10), 0, found.start()) + 1}: -ENOMEM: a lack of memory ends the program "
               "(base/checked_memory.h), so nobody returns it or asks for it")
    text = without_comments(text)
    for found in OTHERS.finditer(text):
        yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found[1]}(): take memory from base/checked_memory.h"
    for found in TAKERS.finditer(text):
        end = closing(text, found.end() - 1)
        if calculated(text[found.end():end]):
            yield (f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found[1]}() of a size that may wrap: "
                   "size_sum(), size_product()")


def main():
    root = sys.argv[1]
    if sys.argv[2:] == ["fail"]:
        for bad in ("arena_array(a, n + 1, sizeof(*x))", "memory_array(n * m, 1)", "malloc(8)", "arena_alloc(a, 1u << n)",
                    "memory_zeroed(n +\n 1, sizeof(x))", "strdup(a)", "-ENOMEM", "/* 0, or -ENOMEM. */", "arena_array(a, size_sum(n, 1) + m, 4)"):
            assert len(list(faults("f", f"x = {bad};"))) == 1, bad
        for good in ("arena_array(a, size_sum(n, 1), sizeof(*x))", "memory_array(2 * ROOM, sizeof(struct x))",
                     "memory_zeroed(n, sizeof(*a->b))", "/* malloc(n + 1) */", "free(x)",
                     "memory_array(size_sum(size_product(2, n), 1), 1)", "arena_array(&w->arena, n, sizeof(*at))"):
            assert not list(faults("f", f"x = {good};")), good
        return 0
    found = []
    for path in below(root, "analyzer", (".c", ".h")):
        if path not in OWN:
            found += faults(path, text_of(root, path))
    print("\n".join(found) or "every size is checked")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
