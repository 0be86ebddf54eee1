# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced by the other scripts: paths and functions. `root` is the clone, `venv` the Python
# environment that scripts/setup makes outside it.
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${TSCOPE_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tscope/venv}
PATH=$venv/bin:$PATH
# The clone's own tests and demo must not inherit a profiler, or settings meant for a job.
# shellcheck disable=SC2046
unset LD_PRELOAD PYTHONHOME PYTHONPATH TSCOPE_DIR_MAX \
  $(sed -n 's/^  X([^"]*"\(TSCOPE[A-Z_]*\)".*/\1/p' "$root/preload/settings/env.def")
export TSCOPE_VENV="$venv" PATH PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "tscope $(basename "$0"): $*" >&2; }
die() {
  say "$*"
  exit 1
}

# quietly LOG COMMAND...: the command's output goes to LOG and is shown only if the command fails.
quietly() {
  log=$1
  shift
  if "$@" >"$log" 2>&1; then return 0; fi
  tail -n 60 "$log" >&2
  say "failed: $* (whole output: $log)"
  return 1
}

# configure FOLDER [OPTION...]: makes or reconfigures a build folder of the clone.
configure() {
  folder=$1
  shift
  if [ -f "$folder/build.ninja" ] && meson setup --reconfigure "$@" "$folder" "$root"; then return 0; fi
  rm -rf "$folder"
  meson setup "$@" "$folder" "$root"
}
