/* SPDX-License-Identifier: MIT
 *
 * Python's pickle, protocols 2 to 5, of plain data: None, bool, int, float, str, bytes, list,
 * tuple, dict, set. (Protocols 0 and 1 write numbers and texts as lines, and have no first bytes by
 * which a pickle is recognised.) A pickle is a program. This reader has none of the instructions
 * that name or call anything, so whatever a file contains, nothing is imported, constructed or run.
 * Such a file is refused, with the name of what it requested.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "import/file_budgets.def"
#include "import/value.h"

/* Deepest nesting that is read. */
#define PICKLE_MOST_DEPTH BUDGET_VALUES_DEEP

/* Whether the bytes begin as a pickle of protocol 2 or later does. */
bool pickle_looks_like(const void *bytes, size_t n);

/* Reads one pickle into `arena`; the bytes are not needed afterwards. Memory is bounded by a small
 * multiple of `n`, whatever sizes the file claims. What comes after the pickle's end is ignored.
 * 0, or negative errno with the reason and the place in `why`; `root` is then untouched. */
int pickle_read(const void *bytes, size_t n, struct arena *arena, struct value *root, char *why,
                size_t why_bytes);
