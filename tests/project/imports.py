#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the project's Python files import from each other is there, and is found from where it is imported: imports.py
SOURCE. Scripts that only people start are as good as those that tests start."""
import ast
import functools
import pathlib
import sys

from tree import python_files

SOURCE = pathlib.Path(sys.argv[1]).resolve()


def imports_of(tree):
    """Of each import, also within functions: line, module, and the names that are taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name, []) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module, [one.name for one in node.names]


def defined_in(tree):
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {one.asname or one.name for one in node.names}
    return names


@functools.cache  # asked for again on each way to a module
def folders_added(tree):
    """Words of the statements that say where modules are."""
    return {word for node in ast.walk(tree) if isinstance(node, ast.stmt) and "sys.path" in ast.unparse(node)
            for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            for word in one.value.split("/")}


def main():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in map(SOURCE.joinpath, python_files(SOURCE))}
    everywhere, named, wrong = {path.parent.name for path in trees}, {}, []
    for path in trees:
        named.setdefault(path.stem, []).append(path)

    def near(module, folders):
        return [path for path in named.get(module, []) if path.parent.name in folders]

    def folders_of(path, seen):
        """Where this file finds modules: in its own folder, in those it adds, and in those its modules add."""
        folders = {path.parent.name} | folders_added(trees[path])
        for _, module, _ in imports_of(trees[path]):
            for one in near(module, folders):
                if one not in seen:
                    folders |= folders_of(one, seen | {one})
        return folders

    for path, tree in trees.items():
        folders = folders_of(path, {path})
        is_program = path.read_bytes().startswith(b"#!")  # a module is found where a program finds it
        for line, module, names in imports_of(tree):
            found = near(module, folders if is_program else everywhere)
            if module not in named or module in sys.stdlib_module_names:
                continue
            missing = [name for name in names if not any(name in defined_in(trees[one]) for one in found)]
            if not found or missing:
                wrong.append(f"{path.relative_to(SOURCE)}:{line}: {module} "
                             + (f"has no {', '.join(missing)}" if found else "is not on its path"))
    print("\n".join(wrong) or f"{len(trees)} files, all that they import from each other is there")
    return bool(wrong)


sys.exit(main())
