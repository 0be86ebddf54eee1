#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tests run does not depend on where they are started: environments.py SOURCE. No variable by which the shim tells
launchers and schedulers apart is handed on by tests/tools/observed.py, nor one of tscope or of the stand-ins; no setting
of a job is handed on by scripts/env.sh; and no test makes an environment of its own. (Who runs a program without naming an environment is not seen.)"""
import os
import re
import sys

SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import observed  # noqa: E402
from tree import below, text_of  # noqa: E402

# They run no program under the preload, or take the test's environment apart themselves.
MAY = {"tests/tools/observed.py", "tests/tools/rounds.py", "tests/torch/ranks.py", "tests/gpu/machine.py",
       "tests/install/install.py", "tests/install/module_types.py", "tests/install/packages.py"}
OWN = r"\*\*os\.environ|dict\(os\.environ|os\.environ\.(?:items|copy)\("


def variables():
    facts = "".join(text_of(SOURCE, "preload/facts/" + name) for name in ("identity.c", "launchers.def", "schedulers.def"))
    stand_ins = "".join(text_of(SOURCE, "tests/standins/" + name) for name in ("skewclock.c", "gpu/gpu_log.c"))
    return {*re.findall(r'"([A-Z][A-Z_]+_[A-Z_]+|RANK)"', facts), *re.findall(r'"((?:STANDIN|SKEW)_\w+)"', stand_ins),
            "TSCOPE", "TSCOPE_LINES"}


def handed_on_by_scripts():
    settings = re.findall(r'"(TSCOPE\w*)"', text_of(SOURCE, "preload/settings/env.def"))
    assert {"TSCOPE", "TSCOPE_GPU_STEPS"} <= set(settings), settings
    show = ["sh", "-c", '. "$(dirname "$0")/env.sh"; env', os.path.join(SOURCE, "scripts", "test")]
    kept = {**observed.clean_environment(), **dict.fromkeys(settings, "off"), "TSCOPE_TORCH": "2.15"}
    shown = observed.run(*show, env=kept).stdout
    assert "TSCOPE_TORCH=2.15" in shown, shown
    return sorted(set(settings) & set(re.findall(r"^(\w+)=", shown, re.M)))


def main():
    names = variables()
    assert {"RANK", "SLURM_JOB_ID", "PMIX_RANK", "STANDIN_LOG", "SKEW_HOSTS"} <= names, names
    os.environ.update(dict.fromkeys(names, "3"))
    handed_on = sorted(names & set(observed.clean_environment())) + handed_on_by_scripts()
    own = [path for path in below(SOURCE, "tests", ".py") if path not in MAY | {"tests/project/environments.py"}
           and "/jobs/" not in path and re.search(OWN, text_of(SOURCE, path))]
    print(f"{len(names)} variables", *(f"{name} is handed on" for name in handed_on),
          *(f"{path} makes an environment of its own" for path in own), sep="\n")
    return 1 if handed_on or own else 0


if __name__ == "__main__":
    sys.exit(main())
