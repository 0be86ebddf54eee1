/* SPDX-License-Identifier: MIT
 *
 * Lets tscope-stacks see this job if Yama would refuse it. A thread of tscope-run waits for
 * requests. For each it starts tscope-stacks as a child, which gets through job_access.h what only
 * an ancestor may do. The client gets only stacks, and never the job's memory.
 */
#ifndef TSCOPE_STACK_SERVICE_H
#define TSCOPE_STACK_SERVICE_H

#include <stdbool.h>

/* Whether `when` is one of the words below. */
bool stack_service_is_setting(const char *when);

/* `when`: "on"; "off"; "auto", only where Yama's ptrace_scope is 1. Call after the job was started,
 * so that the job inherits nothing of it. If it cannot start, there is no message and nothing
 * changes. */
void stack_service_start(const char *when);

#endif
