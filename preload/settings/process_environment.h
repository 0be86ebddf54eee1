/* SPDX-License-Identifier: MIT
 *
 * The environment as it was when the process woke. It is copied on the thread whose call woke the
 * process, where the job itself reads it too; tscope's own threads read the copy and never the
 * environment, which the job may change at any time.
 */
#pragma once

#include <stdbool.h>

/* Copies the environment, in place of an earlier copy. Not on a thread of tscope's own, and not
 * while another thread reads the copy. False if there is no memory for it. */
bool tscope_environment_copy(void);

/* A variable's value in the copy; NULL if it was not set. */
const char *tscope_environment_get(const char *name);

/* The entry ("NAME=value") after `entry`, the first for NULL; NULL when there are no more. */
const char *tscope_environment_next(const char *entry);
