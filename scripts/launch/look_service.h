/* SPDX-License-Identifier: MIT
 *
 * Lets tscope-stacks see this job where Yama would refuse it. A thread of tscope-run waits for
 * requests; each is answered by tscope-stacks, started as our child, which gets through
 * job_access.h what only an ancestor may do. Who asks gets stacks, and never the job's memory.
 */
#ifndef TSCOPE_LOOK_SERVICE_H
#define TSCOPE_LOOK_SERVICE_H

#include <stdbool.h>

/* Whether it is one of the words that `when` may be below. */
bool look_service_knows(const char *when);

/* `when`: "on"; "off"; "auto", only where Yama's ptrace_scope is 1. Call once the job was started,
 * so that the job inherits nothing of it. Where it cannot start, nothing is said and nothing
 * changes.
 */
void look_service_start(const char *when);

#endif
