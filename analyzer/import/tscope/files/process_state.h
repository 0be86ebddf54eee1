/* SPDX-License-Identifier: MIT
 *
 * Whether the process that writes a trace still exists, as the kernel of this machine says.
 */
#ifndef TSCOPE_PROCESS_STATE_H
#define TSCOPE_PROCESS_STATE_H

#include <stdbool.h>

#include "format/tscope_format.h"

/* R, S, D, T, Z of /proc; 0 if there is no such process, '?' if it is not known. The trace must be
 * of this machine. */
char process_state_of(const struct tscope_file_header *header);

/* True if the process runs: its trace has no end, it was written on this host since it was started,
 * and the process is there. False also for a process of another host. */
bool process_runs(const struct tscope_file_header *header);

#endif
