/* SPDX-License-Identifier: MIT
 *
 * What only an ancestor may do to a process of the job (see inspect/guarded_access.h), done for
 * tscope-stacks when it runs as our child.
 */
#ifndef TSCOPE_JOB_ACCESS_H
#define TSCOPE_JOB_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process descends from this one. */
bool job_has(pid_t pid);

/* Answers the requests about `pid` that come through the socket `asked`, until the other side
 * closes it or `ms` milliseconds are over. Call in a thread in which all signals are blocked. */
void job_access_serve(pid_t pid, int asked, int ms);

#endif
