#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every example of docs/python.md, in the order of the page: python_page.py SOURCE BUILD [PREFIX].

The first is the job: it runs as the page says, on PyTorch with gloo, and its marks must be in the report. The others
read its traces. With PREFIX, an environment with an installed wheel, the programs and the module come from there, else
from the build and the source.
"""
import glob
import os
import re
import sys
import tempfile

SOURCE, BUILD = map(os.path.realpath, sys.argv[1:3])
PREFIX = os.path.realpath(sys.argv[3]) if len(sys.argv) > 3 else None
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import observed  # noqa: E402
from built import programs_of  # noqa: E402
from outcomes import expect  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

CHECK = """
steps = report["steps"]
assert steps["count"] == 30 and steps["method"] == "step marks", steps
assert report["run"]["ranks_found"] == [0, 1], report["run"]
assert report["phases"]["data_ms"] > 0, report["phases"]
assert report["quality"]["partial_ranks"] == [], report["quality"]
"""


def places():
    if not PREFIX:
        return os.path.join(SOURCE, "scripts", "packaging", "python"), programs_of(BUILD)
    return glob.glob(os.path.join(PREFIX, "lib", "python3*", "site-packages"))[0], os.path.join(PREFIX, "bin")


def check_report(run, folder):
    """The commands that users type next: the report as text, and as a page for a browser."""
    said = run("tscope", "report", "traces")
    expect("2 ranks" in said and "Verdict" in said and "step marks" in said, said)
    run("tscope", "report", "--format", "html", "--output", "page.html", "traces")
    with open(os.path.join(folder, "page.html"), encoding="utf-8") as file:
        page = file.read()
    expect(page.lower().startswith("<!doctype html>") and page.rstrip().endswith("</html>"), page[:200])
    expect("Verdict" in page and "step marks" in page, "the page lacks the verdict, or how steps were found")
    os.unlink(os.path.join(folder, "page.html"))


def main():
    python = python_or_skip()
    with open(os.path.join(SOURCE, "docs", "python.md"), encoding="utf-8") as page:
        text = page.read()
    job, *examples = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    command = re.search(r"^    tscope (run .*torchrun.*)$", text, re.M).group(1)
    module, programs = places()
    environment = observed.clean_environment(PYTHONPATH=module, OMP_NUM_THREADS="1",
                                             PATH=f"{programs}:{os.path.dirname(python)}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory(prefix="tscope-page-") as folder:
        def run(*what):
            done = observed.run(*what, cwd=folder, env=environment)
            return done.stdout + done.stderr

        with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as file:
            file.write(job)
        formats = run("tscope-report", "--help")
        said = run("tscope", *command.split())
        expect("2 ranks recorded" in said, said)
        check_report(run, folder)
        reading = [examples[0], CHECK]
        for example in examples[1:]:
            wanted = {".tables(": "sqlite", ".show(": "html"}
            missing = [name for call, name in wanted.items() if call in example and name not in formats]
            if missing:
                print(f"left out: this tscope-report has no --format {missing[0]}")
            else:
                reading.append(example)
        print(run(python, "-c", "\n".join(reading)))
        # If tscope is not loaded, the job's calls do nothing, and the job runs the same.
        run(python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
        expect(sorted(os.listdir(folder)) == ["traces", "train.py"], os.listdir(folder))
        expect("usage: tscope COMMAND" in run(python, "-m", "libtscope", "--help"), "python -m libtscope")
    return 0


if __name__ == "__main__":
    sys.exit(main())
