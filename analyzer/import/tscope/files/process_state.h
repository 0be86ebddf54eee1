/* SPDX-License-Identifier: MIT
 *
 * Whether the process that writes a trace still exists, as the kernel of this machine says.
 */
#ifndef TSCOPE_PROCESS_STATE_H
#define TSCOPE_PROCESS_STATE_H

#include "format/tscope_format.h"

/* R, S, D, T, Z of /proc; 0 if there is no such process, '?' if it is not known. The trace must be
 * of this machine. */
char process_state_of(const struct tscope_file_header *header);

/* Its state, as above, if the process runs: its trace has no end, it was written on this host since
 * that was started, and the process is there. Else 0, also for a process of another host. */
char process_runs(const struct tscope_file_header *header);

#endif
