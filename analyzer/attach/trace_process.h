/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_TRACE_PROCESS_H
#define TSCOPE_TRACE_PROCESS_H

#include <stdbool.h>

#include "format/tscope_format.h"

/* Whether the process that writes the trace with this header runs on this host: a process with its
 * number that started before its trace did and has tscope's helper. */
bool trace_process_runs(const struct tscope_file_header *header);

/* Whether it ran on this host: then trace_process_runs() knows whether it still does. */
bool trace_process_is_of_this_host(const struct tscope_file_header *header);

#endif
