#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The types of the Python module are right: module_types.py SOURCE. mypy in strict mode accepts the module itself,
knows the types of the values in the examples of docs/python.md, and refuses a wrong call."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from outcomes import Skip  # noqa: E402

SOURCE = os.path.realpath(sys.argv[1])
MODULE = os.path.join(SOURCE, "scripts", "packaging", "python")

# The types of results, in mypy's words.
KNOWN = {
    'libtscope.report("x")': "dict[str, Any]",
    'libtscope.tables("x", run="y")': "sqlite3.Connection",
    'libtscope.show("x")': "libtscope.Page",
    'libtscope.show("x").save("y")': "str",
    "libtscope.step()": "None",
    'libtscope.program("tscope")': "str",
}
WRONG = ("libtscope.report(1)", 'libtscope.step("one")', "libtscope.range(1)", 'libtscope.scalar("loss", "low")')


def mypy():
    for program in (os.path.join(os.path.dirname(sys.executable), "mypy"), shutil.which("mypy")):
        if program and os.path.exists(program):
            return program
    return None


def check(program, cache, *arguments):
    """mypy's output for `arguments`, with the module found like an installed one."""
    done = subprocess.run([program, "--strict", "--cache-dir", cache, *arguments], capture_output=True,
                          text=True, check=False, env=dict(os.environ, MYPYPATH=MODULE), cwd=cache)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def main():
    program = mypy()
    if not program:
        raise Skip("no mypy here (scripts/setup test)")
    with tempfile.TemporaryDirectory(prefix="tscope-types-") as folder:
        said = check(program, folder, "--package", "libtscope")
        assert said.startswith("Success:"), said

        def file(name, text):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write("import libtscope\n" + text)
            return os.path.join(folder, name)

        with open(os.path.join(SOURCE, "docs", "python.md"), encoding="utf-8") as page:
            _, *examples = re.findall(r"^```python\n(.*?)^```", page.read(), re.M | re.S)
        assert len(examples) >= 4, examples
        said = check(program, folder, file("examples.py", "\n".join(examples)))
        assert said.startswith("Success:"), said
        said = check(program, folder, file("known.py", "".join(f"reveal_type({call})\n" for call in KNOWN)))
        for call, what in KNOWN.items():  # the version of mypy determines which names it shortens
            plain = said.replace("builtins.", "").replace("typing.", "").replace("Dict[", "dict[")
            assert f'Revealed type is "{what}"' in plain, (call, plain)
        said = check(program, folder, file("wrong.py", "".join(call + "\n" for call in WRONG)))
        for line, call in enumerate(WRONG, start=2):
            assert f"wrong.py:{line}: error" in said, (call, said)
    assert os.path.exists(os.path.join(MODULE, "libtscope", "py.typed"))
    print(f"{subprocess.run([program, '--version'], capture_output=True, text=True, check=True).stdout.strip()}: "
          f"the module, {len(examples)} examples, {len(KNOWN)} types, {len(WRONG)} wrong calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
