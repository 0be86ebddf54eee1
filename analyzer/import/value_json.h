/* SPDX-License-Identifier: MIT
 *
 * JSON into the same tree as pickles (value.h).
 */
#ifndef TSCOPE_VALUE_JSON_H
#define TSCOPE_VALUE_JSON_H

#include "base/arena.h"
#include "import/value.h"

/* Reads one JSON text into `arena`; the bytes are not needed afterwards. 0, or negative errno with
 * the reason and the place in `why`. */
int value_read_json(const char *text, size_t n, struct arena *arena, struct value *root, char *why,
                    size_t why_bytes);

#endif
