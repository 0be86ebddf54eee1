/* SPDX-License-Identifier: MIT
 *
 * The threads of the process, as the kernel counts them.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

enum { TSCOPE_OWN_THREADS = 2 };

/* How many there are, tscope's own included; 0 if that is not known. Uses no descriptor. */
u32 tscope_threads_left(void);

/* UNKNOWN: the first thread has ended, and others cannot be counted (without /proc). ENDED: only
 * tscope's own threads are left. Then the C library does not end the process, as it would without
 * them. */
enum tscope_job { TSCOPE_JOB_RUNS, TSCOPE_JOB_UNKNOWN, TSCOPE_JOB_ENDED };

/* With descriptors of its own, the calling thread also sees that what is left are threads of the
 * kernel's; else this uses none. */
enum tscope_job tscope_job_now(bool own_descriptors);

/* How the first thread ended, as waitpid() tells it of a process; 0 if that is not known. */
int tscope_first_thread_status(void);
