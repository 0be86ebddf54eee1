/* SPDX-License-Identifier: MIT
 *
 * In which folders the processes that this one starts write their traces, as far as it can be told
 * without being one of them. What names them: identity.c.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "facts/file_name.h"

struct tscope_scheduler {
  const char *name, *job, *step; /* schedulers.def */
};

/* The scheduler of this job; NULL if there is none. `get`: a variable's value, NULL without one. */
const struct tscope_scheduler *tscope_scheduler_of(const char *(*get)(const char *name));

struct tscope_run_folders {
  char begin[TSCOPE_RUN_NAME_BYTES]; /* of their names; "": named in another way */
  bool given;                        /* not by a job */
  char starters[3][24];              /* "-123-": one of them may have started the run */
};

/* For `child`, or 0 for any. From the environment as it is now. Only the stack. */
void tscope_run_folders_find(struct tscope_run_folders *folders, pid_t child);

/* Whether a child's trace may be in a folder of this name. Only the stack. */
bool tscope_run_folders_have(const struct tscope_run_folders *folders, const char *name);
