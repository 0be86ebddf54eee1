/* SPDX-License-Identifier: MIT
 *
 * Does for tscope-stacks, which runs as our child, what only an ancestor may do to a process of the
 * job (see inspect/guarded_access.h).
 */
#ifndef TSCOPE_JOB_ACCESS_H
#define TSCOPE_JOB_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process descends from this one. */
bool job_contains(pid_t pid);

/* Answers the requests about `pid` that come through the socket `requests`, until the other side
 * closes it or `ms` milliseconds have passed. Call in a thread in which all signals are blocked. */
void job_access_serve(pid_t pid, int requests, int ms);

#endif
