#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `meson install` puts in place: install.py SOURCE BUILD. Everything is there, usable from
there, and finds its other parts."""
import glob
import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(os.path.realpath, sys.argv[1:3])


def one(root, pattern):
    found = glob.glob(os.path.join(root, "**", pattern), recursive=True)
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def output(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def main():
    with tempfile.TemporaryDirectory(prefix="tscope-install-") as root:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True)
        library, report, run = (one(root, name) for name in ("libtscope.so", "tscope-report", "tscope-run"))
        header, pkgconfig = one(root, "tscope.h"), one(root, "tscope.pc")
        for page in glob.glob(os.path.join(SOURCE, "docs", "man", "*.[1-8]*")):
            name = os.path.basename(page).removesuffix(".in")
            assert os.path.getsize(one(root, name)) > 0
        for page in ("tscope-report.1", "tscope-run.1"):
            one(root, page)

        assert "usage" in output(report, "--help").lower()
        shown = output(run, "--print-env", env={"PATH": os.environ["PATH"]})
        assert f"LD_PRELOAD={library}\n" in shown, shown

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
