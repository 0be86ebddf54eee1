/* SPDX-License-Identifier: MIT
 *
 * Sums, and the largest, of what several threads see.
 */
#pragma once

#include "format/tscope_format.h"

static inline void tscope_atomic_add(u64 *sum, u64 more) {
  __atomic_fetch_add(sum, more, __ATOMIC_RELAXED);
}

static inline void tscope_atomic_max(u64 *most, u64 value) {
  u64 seen = __atomic_load_n(most, __ATOMIC_RELAXED);
  while (value > seen &&
         !__atomic_compare_exchange_n(most, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}
