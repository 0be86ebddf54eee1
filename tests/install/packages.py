#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The contents of the packages for Debian and RPM: packages.py SOURCE deb|rpm|conda [PACKAGE].

Without PACKAGE, scripts/packages makes one of the commit that is checked out, and checks Debian's with lintian.
Everything is in the package and works from where it was unpacked. For conda, the recipe's script and tests run on the
files of the commit, with an empty folder as the environment: this tests the project's part of the recipe.
"""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from manual import check_each_starts, pages_of, programs_of  # noqa: E402
from observed import run  # noqa: E402
from outcomes import Skip  # noqa: E402

try:
    import jinja2
    import yaml
except ImportError:
    jinja2 = yaml = None

SOURCE, KIND = os.path.realpath(sys.argv[1]), sys.argv[2]
NEEDS = {"deb": ("dh", "dpkg-deb", "lintian"), "rpm": ("rpmbuild", "rpm2cpio", "cpio"), "conda": ("git", "meson")}
UNPACK = {"deb": 'dpkg-deb -x "$0" .', "rpm": 'rpm2cpio "$0" | cpio -idm --quiet'}
# Distributions compress pages in different ways.
ELSEWHERE = ["usr/lib/tscope/libtscope.so", "usr/include/tscope.h", "usr/share/pkgconfig/tscope.pc",
             "usr/share/bash-completion/completions/tscope", "usr/share/bash-completion/completions/tscope-top",
             "usr/share/zsh/site-functions/_tscope", "usr/share/fish/vendor_completions.d/tscope.fish"]


def output(*command, **more):
    done = run(*command, **more)
    return done.stdout + done.stderr


def made():
    output(os.path.join(SOURCE, "scripts", "packages"), KIND)
    folder = os.path.join(SOURCE, "dist")
    return max((os.path.join(folder, name) for name in os.listdir(folder) if name.endswith("." + KIND)),
               key=os.path.getmtime)


def check_conda(root):
    """The recipe as conda renders it; its requests for conda's compilers have no meaning here."""
    output(os.path.join(SOURCE, "scripts", "packages"), "conda")
    recipe = os.path.join(SOURCE, "dist", "conda", "meta.yaml")
    with open(recipe, encoding="utf-8") as file:
        template = lambda what: lambda language: f"{what}_{language}"
        text = jinja2.Template(file.read(), undefined=jinja2.StrictUndefined).render(
            compiler=template("compiler"), stdlib=template("stdlib"))
    rendered = yaml.safe_load(text)
    source, prefix = os.path.join(root, "work"), os.path.join(root, "prefix")
    origin = os.path.normpath(os.path.join(os.path.dirname(recipe), rendered["source"]["git_url"]))
    output("git", "clone", "-q", origin, source)
    env = dict(os.environ, PREFIX=prefix)
    output("sh", "-ec", rendered["build"]["script"], cwd=source, env=env)
    assert os.path.exists(os.path.join(source, rendered["about"]["license_file"]))
    modules = [place for place, _, names in os.walk(prefix) if "__init__.py" in names]
    assert len(modules) == 1, modules
    env = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "PYTHONPATH": os.path.dirname(modules[0])}
    for command in rendered["test"]["commands"]:
        output("sh", "-ec", command, cwd=root, env=env)
    for module in rendered["test"]["imports"]:
        where = output(sys.executable, "-c", f"import {module}; print({module}.program('tscope-top'))", env=env)
        assert where.strip() == os.path.join(prefix, "bin", "tscope-top"), where
    there = set(os.listdir(os.path.join(prefix, "bin"))) - {"tscope-reduce-mpi"}  # which tscope-reduce starts, where MPI is
    assert there == set(programs_of(SOURCE)), there
    print(f"{rendered['package']}: script, {len(rendered['test']['commands'])} commands, imports")


def check(package, root):
    output("sh", "-c", UNPACK[KIND], package, cwd=root)
    programs = programs_of(SOURCE)
    found = [os.path.relpath(os.path.join(place, name), root)
             for place, _, names in os.walk(root) for name in names]
    for path in ELSEWHERE + [f"usr/bin/{program}" for program in programs]:
        assert path in found, (path, found)
    for page in pages_of(SOURCE):
        assert any(path.startswith(f"usr/share/man/man{page[-1]}/{page}") for path in found), (page, found)
    extra = [path for path in found if not path.startswith(("usr/bin/tscope", "usr/lib/tscope/libtscope.so",
             "usr/include/tscope.h", "usr/share/", "usr/lib/.build-id/"))]  # made by rpmbuild
    assert not extra, extra
    check_each_starts(os.path.join(root, "usr", "bin"), SOURCE, output)
    shown = output(os.path.join(root, "usr", "bin", "tscope"), "run", "--print-env", env={})
    assert f"LD_PRELOAD={root}/usr/lib/tscope/libtscope.so\n" in shown, shown
    print(f"{os.path.basename(package)}: {len(found)} files, {len(programs)} programs")


def main():
    missing = [name for name in NEEDS[KIND] if not shutil.which(name)]
    if missing:
        raise Skip(f"no {', '.join(missing)} here (scripts/setup long)")
    if not os.path.exists(os.path.join(SOURCE, ".git")):
        raise Skip("the source is no clone, so what belongs to it is not known")
    if KIND == "conda" and not (jinja2 and yaml):
        raise Skip("no jinja2 and PyYAML here, which render the recipe (scripts/setup long)")
    with tempfile.TemporaryDirectory(prefix="tscope-packages-") as root:
        if KIND == "conda":
            check_conda(root)
        else:
            check(os.path.realpath(sys.argv[3]) if len(sys.argv) > 3 else made(), root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
