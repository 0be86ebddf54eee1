/* SPDX-License-Identifier: MIT
 *
 * Numbers of processes, which each PID namespace gives anew.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "format/tscope_format.h"

/* What identifies on this machine the namespace that a folder of /proc is about, such as "self"; 0
 * if that cannot be read. */
u64 pid_namespace_of(const char *process);

/* Whether /proc numbers processes as this one's own namespace does: otherwise what the process
 * knows by number is somebody else there. */
bool proc_numbers_as_own(void);

/* The name of a process's folder in /proc. For the calling process "self": where /proc numbers
 * processes as another namespace does, its own number is somebody else's. */
const char *proc_name(pid_t pid, char room[16]);
