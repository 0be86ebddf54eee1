/* SPDX-License-Identifier: MIT
 *
 * The environment as it was when the process woke. It is copied on the thread whose call woke the
 * process, where the job itself reads it too; tscope's own threads read the copy and never the
 * environment, which the job may change at any time.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Copies the environment, in place of an earlier copy. Not on a thread of tscope's own, and not
 * while another thread reads the copy. False if there is no memory for it. */
bool tscope_environment_copy(void);

/* A variable's value in the copy; NULL if it was not set, or empty. */
const char *tscope_environment_get(const char *name);

/* A variable as it is now, for what must be known before the process wakes, or what other libraries
 * read when they begin to work; on a thread of the job. NULL if it is not set, or empty. By the C
 * library's own function, perhaps in a signal's handler: getenv() may be another preloaded
 * library's. */
static inline const char *tscope_environment_now(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}

static inline bool tscope_environment_now_is(const char *name, const char *value) {
  const char *now = tscope_environment_now(name);
  return now && strcmp(now, value) == 0;
}

/* The entry ("NAME=value") after `entry`, the first for NULL; NULL when there are no more. */
const char *tscope_environment_next(const char *entry);
