#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completions for a shell, from the tables of commands and options: completions.py bash|zsh|fish SOURCE."""
import os
import re
import sys

STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'


# In options.def this macro stands for the table of formats.
FORMATS = "TSCOPE_REPORT_BACKENDS(FORMAT_AND_WHAT)"


def formats(source):
    with open(os.path.join(source, "analyzer/report/backends.def"), encoding="utf-8") as file:
        backends = re.findall(r'^ +B\((\w+), "([^"]*)"\)', file.read(), re.M)
    return "".join(f"{name} ({what}); " for name, what in backends)


def rows(source, path, pattern):
    """The rows of a table of macros, with adjacent strings joined as by the compiler."""
    with open(os.path.join(source, path), encoding="utf-8") as file:
        table = file.read().partition("#define")[2].replace("\\\n", "\n")
    if FORMATS in table:
        table = table.replace(FORMATS, '"' + formats(source) + '"')
    joined = lambda text: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"') if text.startswith('"') else text
    return [tuple(joined(cell) for cell in row) for row in re.findall(pattern, table)]


TABLES = {"report": "analyzer/report/options.def", "top": "analyzer/top/top_options.def",
          "reduce": "analyzer/programs/reduce_options.def", "stacks": "analyzer/programs/stacks_options.def"}


def tables(source):
    commands = rows(source, "scripts/launch/commands.def",
                    rf'C\(\s*{STRINGS},\s*{STRINGS},\s*(NULL|{STRINGS[1:-1]}),\s*{STRINGS}\)')
    options = {"tscope-run": rows(source, "scripts/launch/run_options.def",
                                  rf"O\('(\w)',\s*{STRINGS},\s*{STRINGS},\s*{STRINGS}\)")}
    for name, path in TABLES.items():
        options[f"tscope-{name}"] = [("", *row) for row in
                                     rows(source, path, rf"\bO\(\s*{STRINGS},\s*{STRINGS},\s*{STRINGS},")]
    return commands, options


def words(options):
    """Options as users type them, without a "=" for those that take a value."""
    return " ".join(word for letter, name, *_ in options
                    for word in ([f"-{letter}"] if letter else []) + [f"--{name}"])


def bash(commands, options):
    cases = "\n".join(f'    {name}) program={program} ;;' for name, program, *_ in commands)
    takes = {program: "|".join(word for letter, name, argument, _ in table if argument
                               for word in ([f"-{letter}"] if letter else []) + [f"--{name}"])
             for program, table in options.items()}
    return f"""# SPDX-License-Identifier: MIT
# bash completion for tscope, made from its tables
_tscope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} program=${{COMP_WORDS[0]##*/}} at=1 words takes
  COMPREPLY=()
  if [ "$program" = tscope ]; then
    if [ "$COMP_CWORD" -eq 1 ]; then
      COMPREPLY=($(compgen -W "{' '.join(row[0] for row in commands)} --help --version" -- "$current"))
      return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    *) return ;;
    esac
    at=2
  fi
  case $program in
  tscope-run) words='{words(options["tscope-run"])}' takes='{takes["tscope-run"]}' ;;
  tscope-top) words='{words(options["tscope-top"])}' takes='{takes["tscope-top"]}' ;;
  tscope-reduce) words='{words(options["tscope-reduce"])}' takes='{takes["tscope-reduce"]}' ;;
  tscope-stacks) words='{words(options["tscope-stacks"])}' takes='{takes["tscope-stacks"]}' ;;
  *) words='{words(options["tscope-report"])}' takes='{takes["tscope-report"]}' ;;
  esac
  if [ "$program" = tscope-run ]; then
    # The command that tscope-run runs begins behind its own options: that is completed as any other.
    while [ "$at" -lt "$COMP_CWORD" ]; do
      case ${{COMP_WORDS[at]}} in
      --) at=$((at + 1)); break ;;
      -*) [[ "|$takes|" != *"|${{COMP_WORDS[at]}}|"* ]] || at=$((at + 1)) ;;
      *) break ;;
      esac
      at=$((at + 1))
    done
    if [ "$at" -lt "$COMP_CWORD" ] || [ "${{COMP_WORDS[at - 1]}}" = -- ]; then
      if declare -F _command_offset >/dev/null; then _command_offset "$at"
      elif [ "$at" -eq "$COMP_CWORD" ]; then COMPREPLY=($(compgen -c -- "$current"))
      else COMPREPLY=($(compgen -f -- "$current")); fi
      return
    fi
  fi
  case $current in
  -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  *) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}}
complete -F _tscope tscope tscope-run tscope-report tscope-top tscope-reduce tscope-stacks
"""


def zsh(commands, options):
    quoted = lambda text: re.sub(r"([\[\]:])", r"\\\1", text).replace("'", "'\\''")
    def spec(letter, name, argument, what):
        value = f":{argument}:_files" if argument else ""
        if not letter:
            return f"'--{name}{'=' if argument else ''}[{quoted(what)}]{value}'"
        return f"'(-{letter} --{name})'{{-{letter},--{name}}}'[{quoted(what)}]{value}'"
    arguments = {program: " \\\n    ".join(spec(*row) for row in table) for program, table in options.items()}
    listed = "\n    ".join(f"'{name}:{quoted(what)}'" for name, _, _, what in commands)
    cases = "\n    ".join(f"{name}) _{program.replace('-', '_')} ;;" for name, program, *_ in commands)
    return f"""#compdef tscope tscope-run tscope-report tscope-top tscope-reduce tscope-stacks
# SPDX-License-Identifier: MIT
# zsh completion for tscope, made from its tables
_tscope_run() {{
  _arguments -S -s \\
    {arguments["tscope-run"]} \\
    '*:::command:_normal'
}}
_tscope_report() {{
  _arguments -s \\
    {arguments["tscope-report"]} \\
    '*:traces:_files'
}}
_tscope_top() {{
  _arguments -s \\
    {arguments["tscope-top"]} \\
    '*:traces:_files'
}}
_tscope_reduce() {{
  _arguments -s \\
    {arguments["tscope-reduce"]} \\
    '*:traces:_files'
}}
_tscope_stacks() {{
  _arguments -s \\
    {arguments["tscope-stacks"]} \\
    '*:traces:_files'
}}
_tscope() {{
  local -a commands
  commands=(
    {listed}
  )
  case $service in
  tscope-run) _tscope_run; return ;;
  tscope-report) _tscope_report; return ;;
  tscope-top) _tscope_top; return ;;
  tscope-reduce) _tscope_reduce; return ;;
  tscope-stacks) _tscope_stacks; return ;;
  esac
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
    {cases}
  esac
}}
_tscope "$@"
"""


def fish(commands, options):
    quoted = lambda text: text.replace("\\", "\\\\").replace("'", "\\'")
    lines = ["# SPDX-License-Identifier: MIT", "# fish completion for tscope, made from its tables"]
    lines += [f"complete -c tscope -n __fish_use_subcommand -f -a {name} -d '{quoted(what)}'"
              for name, _, _, what in commands]
    lines += [f"complete -c tscope -n '__fish_seen_subcommand_from {name}' -w {program}"
              for name, program, first, _ in commands if first == "NULL"]
    for program, table in options.items():
        for letter, name, argument, what in table:
            short = f" -s {letter}" if letter else ""
            lines.append(f"complete -c {program}{short} -l {name}{' -r' if argument else ''} -d '{quoted(what)}'")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print({"bash": bash, "zsh": zsh, "fish": fish}[sys.argv[1]](*tables(sys.argv[2])), end="")
