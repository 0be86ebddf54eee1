/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_READ_VALUES_H
#define TSCOPE_READ_VALUES_H

#include "base/arena.h"
#include "import/value.h"

/* Reads a file, with or without gzip, that holds a pickle or one JSON text: its first bytes say
 * which. The values live in `arena`. 0, or negative errno with the reason in `why`. */
int read_values(const char *path, struct arena *arena, struct value *root, char *why,
                size_t why_bytes);

#endif
