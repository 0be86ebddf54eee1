#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The result of `meson install`: install.py SOURCE BUILD. Everything is there, works from there, and finds its other
parts."""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import observed  # noqa: E402
from manual import pages_of  # noqa: E402

SOURCE, BUILD = map(os.path.realpath, sys.argv[1:3])


def one(root, pattern):
    found = glob.glob(os.path.join(root, "**", pattern), recursive=True)
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def output(*command, **more):
    return observed.run(*command, **more).stdout


def check_umbrella(umbrella, report, library):
    """`tscope X` runs the program for X of the same installation, also if it is not in PATH."""
    env = {"PATH": "/nonexistent"}
    with open(os.path.join(SOURCE, "scripts", "launch", "commands.def"), encoding="utf-8") as table:
        commands = re.findall(r'C\("(\w+)", "([\w-]+)", (?:NULL|"([^"]*)"), "([^"]*)"', table.read().partition("#define TSCOPE_COMMANDS(")[2])
    assert len(commands) >= 4, commands
    helped = output(umbrella, "--help", env=env)
    with open(os.path.join(SOURCE, "docs", "man", "tscope.1"), encoding="utf-8") as page:
        manual = page.read()
    for name, program, first, what in commands:
        assert re.search(rf"^  {name} +{re.escape(what)}$", helped, re.M), helped
        assert re.search(rf"^\.B {name}\n{re.escape(what)}:$", manual, re.M), name
        direct = output(os.path.join(os.path.dirname(report), program), *([first] if first else []), "--help", env=env)
        assert output(umbrella, name, "--help", env=env) == direct == output(umbrella, "help", name, env=env)
    shown = output(umbrella, "run", "--print-env", env=env)
    assert f"LD_PRELOAD={library}\n" in shown, shown
    where = subprocess.run([umbrella, "report"], env={**env, "TSCOPE_DIR": "/nonexistent/traces"},
                           capture_output=True, text=True)
    assert where.returncode == 2 and "/nonexistent/traces" in where.stderr, where
    for arguments, status in ((["run", "--", "sh", "-c", "exit 7"], 7), (["nonsense"], 2), ([], 2)):
        done = subprocess.run([umbrella, *arguments], capture_output=True, text=True)
        assert done.returncode == status, (arguments, done)


def check_requirements():
    """pip builds with the headers that scripts/setup installs."""
    with open(os.path.join(SOURCE, "pyproject.toml"), encoding="utf-8") as file:
        wanted = set(re.findall(r'"(nvidia-\S+) == (\S+)"', file.read()))
    with open(os.path.join(SOURCE, "scripts", "requirements", "headers.txt"), encoding="utf-8") as file:
        assert wanted == set(re.findall(r"^(nvidia-\S+)==(\S+)$", file.read(), re.M)), wanted


def check_closing_line(run, report):
    """The last line of tscope-run is a command that works unchanged."""
    with tempfile.TemporaryDirectory(prefix="tscope it's ") as folder:
        for path in ("/usr/bin:/bin", os.path.dirname(report) + ":/usr/bin:/bin"):
            env = {"PATH": path, "HOME": "/nonexistent"}
            said = subprocess.run([run, "--dir", folder, "--run", "a", "true"], env=env,
                                  capture_output=True, text=True).stderr
            command = said.partition("run: ")[2]
            done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True)
            assert done.returncode == 2 and folder in done.stderr, (said, done)
            assert command.startswith("tscope-report " if report.startswith(path.split(":")[0]) else report), said


def check_prefix(root):
    """Installation without root: a prefix in the home folder, and no file outside it."""
    prefix = os.path.join(root, "home", ".local")
    built = os.path.join(root, "build-prefix")
    subprocess.run(["meson", "setup", built, SOURCE, "--prefix", prefix, "-Dtests=disabled"], check=True,
                   capture_output=True)
    plan = output("meson", "introspect", "--installed", built)
    assert plan.count(prefix) == plan.count('": "'), plan


def main():
    with tempfile.TemporaryDirectory(prefix="tscope-install-") as root:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True)
        library, report, run, top, stacks, umbrella = (one(root, name) for name in (
            "libtscope.so", "bin/tscope-report", "bin/tscope-run", "bin/tscope-top", "bin/tscope-stacks",
            "bin/tscope"))
        header, pkgconfig = one(root, "tscope.h"), one(root, "tscope.pc")
        for page in pages_of(SOURCE):
            assert os.path.getsize(one(root, page)) > 0
        for place in ("bash-completion/completions/tscope", "zsh/site-functions/_tscope",
                      "fish/vendor_completions.d/tscope.fish"):
            assert os.path.getsize(one(root, place)) > 0

        assert "usage" in output(report, "--help").lower()
        assert "usage" in output(top, "--help").lower()
        assert "usage" in output(stacks, "--help").lower()
        shown = output(run, "--print-env", env={"PATH": os.environ["PATH"]})
        assert f"LD_PRELOAD={library}\n" in shown, shown

        check_umbrella(umbrella, report, library)
        check_requirements()
        check_closing_line(run, report)
        check_prefix(root)

        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pkgconfig), PKG_CONFIG_SYSROOT_DIR=root)
        flags = output("pkg-config", "--cflags", "--libs", "tscope", env=env).split()
        preload = output("pkg-config", "--variable=preload", "tscope", env=env).strip()
        assert os.path.basename(preload) == "libtscope.so", preload
        program = os.path.join(root, "annotated")
        source = b'#include <tscope.h>\nint main(void) { TSCOPE_STEP(1); return 0; }\n'
        subprocess.run(["cc", "-x", "c", "-", "-o", program, f"-I{os.path.dirname(header)}", *flags],
                       input=source, check=True)
        subprocess.run([program], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
