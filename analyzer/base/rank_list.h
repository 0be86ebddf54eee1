/* SPDX-License-Identifier: MIT
 *
 * Ranks as "0, 3-7, 12", shortened by "and 31 more". They need not be sorted.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/each.h"

/* Whether a rank is among these. */
static inline bool ranks_have(const u32 *ranks, u32 n, u32 rank) {
  return ANY(ranks, n, one, *one == rank);
}

/* Takes apart a list like "[0, 1, 2]", as Python writes it. 0, and `ranks` stays as it is, where it
 * is not complete ("[0, 1, ...]"), or has a rank of `most` or more. */
u32 ranks_listed(struct arena *arena, const char *text, u32 most, u32 **ranks);

/* Characters of a list that can be read in a sentence. */
enum { LIST_READS_WELL = 60 };

/* Shortened to about `limit` characters. The caller frees. */
char *rank_list(const u32 *ranks, u32 n, size_t limit);

/* "rank 3", or "ranks 0-3, 7 and 12 more". */
char *ranks_by_name(struct arena *arena, const u32 *ranks, u32 n, size_t limit);

/* Shortened to what can be read in a sentence: the list; "rank 3" or "ranks 0-3, 7"; the same at
 * the sentence's beginning, "Rank 3". */
char *rank_list_in(struct arena *arena, const u32 *ranks, u32 n);
char *ranks_in(struct arena *arena, const u32 *ranks, u32 n);
char *ranks_first_in(struct arena *arena, const u32 *ranks, u32 n);
