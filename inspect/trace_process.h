/* SPDX-License-Identifier: MIT
 *
 * The process that writes a trace, as the kernel of this machine sees it. A trace says the number
 * that the process has in its own PID namespace; in a container that is not its number here.
 */
#pragma once

#include <sys/types.h>

#include "format/tscope_format.h"

struct trace_process {
  pid_t pid;  /* its number here; 0 if it is not there, or not known */
  char state; /* R, S, D, T, t, Z, X of /proc; 0: there is no such process; '?': cannot be told, as
                 of another host, of this one before it was booted, or of a namespace that cannot be
                 seen from here */
};

struct trace_process trace_process_find(const struct tscope_file_header *header);
