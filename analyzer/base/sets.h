/* SPDX-License-Identifier: MIT
 *
 * Which of some things, by their numbers, belong together: of what is joined, one stands for all.
 */
#pragma once

#include "format/tscope_format.h"

/* Each of [n] stands for itself. */
static inline void sets_begin(u32 *set, u32 n) {
  for (u32 i = 0; i < n; i++)
    set[i] = i;
}

/* The one that stands for it. */
static inline u32 set_of(u32 *set, u32 one) {
  while (set[one] != one)
    one = set[one] = set[set[one]];
  return one;
}

static inline void sets_join(u32 *set, u32 a, u32 b) {
  a = set_of(set, a);
  b = set_of(set, b);
  set[MAX(a, b)] = MIN(a, b);
}
