/* SPDX-License-Identifier: MIT
 *
 * What `tscope run` says of the traces of its command: the last line, and why there can be none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "facts/run_folders.h"

/* Why nothing is recorded, in `why`; false if nothing speaks against it. */
bool is_off(const char *directory, char *why, size_t bytes);

/* When one of these folders in `directory` last got a trace, ns since 1970 by the clock of the file
 * system. INT64_MIN if there is none. */
int64_t runs_changed_ns(const char *directory, const struct tscope_run_folders *folders);

/* How many ranks were recorded and how to see the report, or why there is no trace. `changed_ns`:
 * by runs_changed_ns() before the command began. `off`: why nothing could be written then, "" if it
 * could. */
void print_closing_line(const char *command, const char *directory,
                        const struct tscope_run_folders *folders, int64_t changed_ns,
                        const char *off);
