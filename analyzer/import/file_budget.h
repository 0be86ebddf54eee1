/* SPDX-License-Identifier: MIT
 *
 * What one file may make the analyzer spend. file_budgets.def has the amounts, each a base and so
 * much for every byte of the file, so that a small file cannot cost much. The reader of a file
 * begins a budget, which then is the calling thread's; whatever reads, decompresses, expands or
 * allocates draws from it. A file beyond its budget is left out, and the report says which and why.
 */
#pragma once

#include <stdbool.h>

#include "base/checked_memory.h"
#include "import/file_budgets.def"

enum budget_kind {
#define B(NAME, base, each, what) BUDGET_##NAME,
  TSCOPE_BUDGETS(B) BUDGET_KINDS
#undef B
};

struct budget {
  struct memory_account memory, *memory_before;
  struct budget *before;        /* that of the thread up to now */
  u64 bytes;                    /* of the file */
  enum budget_kind memory_kind; /* BUDGET_MEMORY or BUDGET_PICKLED */
  u64 left[BUDGET_KINDS];
  enum budget_kind over; /* what was exceeded first; BUDGET_KINDS: nothing */
};

/* For a file of so many bytes; `memory` is the kind of what it may allocate. */
void budget_begin(struct budget *budget, enum budget_kind memory, u64 bytes);

/* `error`, what reading came to; or -EFBIG and why the file cannot be read, to follow its name. */
int budget_end(struct budget *budget, int error, char *why, size_t why_bytes);

/* Draws from the thread's budget; false from the moment at which it is exceeded. Without a budget
 * everything may be drawn. */
bool budget_take(enum budget_kind kind, u64 amount);

/* Whether the thread's budget is exceeded, also that for memory: readers ask for each record. */
bool budget_is_over(void);

/* jansson's memory counts too. Once, before threads read files. */
void budget_covers_json(void);

/* The file turns out to hold more bytes than it has on the disk. False as budget_take(). */
bool budget_inflate(u64 bytes);
