/* SPDX-License-Identifier: MIT
 *
 * Which file or folder a name that people give stands for: that of a run, of a host.
 */
#pragma once

#include <stddef.h>

enum { TSCOPE_RUN_NAME_BYTES = 128 }; /* of a run's folder, with the end */

/* What is added to a run's name for the parts of one job that have it all. */
#define TSCOPE_RUN_TASK "-task"
#define TSCOPE_RUN_REQUEUE "-requeue"
#define TSCOPE_RUN_STEP "-step"

/* Keeps letters, digits and "._-" of `text`; anything else becomes '_', and so does a leading dot.
 * Changes nothing in a name that it made. Only the stack. */
void tscope_file_name_from(char *name, size_t bytes, const char *text);
