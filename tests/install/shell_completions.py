#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the shells complete: shell_completions.py SOURCE. Runs the shells themselves; a shell that is not installed is
left out, with a message."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.realpath(sys.argv[1])

# The typed text, and what the shell must and must not offer.
TYPED = [
    (["tscope", "r"], {"run", "report"}, {"diff"}),
    (["tscope", "run", "--d"], {"--dir"}, {"--detail"}),
    (["tscope", "report", "--fo"], {"--format"}, {"--dir"}),
    (["tscope-report", "--fail"], {"--fail-on"}, set()),
    (["tscope-top", "--pr"], {"--prometheus"}, {"--print-env"}),
    (["tscope", "top", "--on"], {"--once"}, set()),
    (["tscope-run", "--pr"], {"--print-env"}, set()),
]
COMMAND = (["tscope-run", "--dir", "x", "--", "basenam"], {"basename"}, {"--dir"})


def offered(command, **more):
    return set(subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout.split())


def in_bash(file, words):
    script = (f'source "{file}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tscope; printf "%s\\n" "${{COMPREPLY[@]}}"')
    return offered(["bash", "--norc", "-c", script, "bash", *words])


def in_fish(file, words):
    lines = subprocess.run(["fish", "--no-config", "-c", f'source "{file}"; complete -C "{" ".join(words)}"'],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split("\t")[0] for line in lines}


def in_zsh(file, words):
    """Uses zsh's own widget, in a pseudo-terminal."""
    folder = os.path.dirname(file)
    shutil.copy(file, os.path.join(folder, "_tscope"))
    script = f"""
zmodload zsh/zpty
zpty z 'zsh -f -i'
zpty -w z 'PS1=; fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; bindkey "^I" complete-word'
zpty -w z 'zstyle ":completion:*" list-prompt ""; LISTMAX=0; setopt autolist nobeep; print RE""ADY'
zpty -r z out '*READY*'
zpty -w -n z $'{" ".join(words)}\\t'
zpty -w z $'\\n'
zpty -w z 'print DO""NE'
zpty -r z out '*DONE*'
print -r -- $out
"""
    text = subprocess.run(["zsh", "-f", "-c", script], check=True, capture_output=True, text=True, timeout=60).stdout
    return set(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[=\b\r]", " ", text).split())


def main():
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="tscope-complete-") as folder:
        for shell, ask in (("bash", in_bash), ("fish", in_fish), ("zsh", in_zsh)):
            if not shutil.which(shell):
                print(f"left out: no {shell} here")
                continue
            file = os.path.join(folder, shell)
            with open(file, "w", encoding="utf-8") as out:
                subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "packaging", "completions.py"), shell,
                                SOURCE], check=True, stdout=out)
            for words, must, must_not in TYPED + ([COMMAND] if shell == "bash" else []):
                got = ask(file, words)
                if not must <= got or must_not & got:
                    print(f"{shell}: {' '.join(words)}: {sorted(got)}")
                    wrong += 1
            print(f"{shell}: asked {len(TYPED)} times")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
