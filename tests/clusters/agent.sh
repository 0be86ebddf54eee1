#!/bin/sh
# SPDX-License-Identifier: MIT
# agent.sh [OPTION...] HOST COMMAND...: replaces ssh for mpirun, and runs the command on this
# machine as on a host with that name.
while case $1 in -*) true ;; *) false ;; esac do shift; done
host=$1
shift
exec unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
