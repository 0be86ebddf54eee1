/* SPDX-License-Identifier: MIT
 *
 * Counts, sums, and the largest, of what several threads see; and memory that they share out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* Down to 0: an end may come without its beginning. */
static inline void tscope_atomic_less_one(u32 *count) {
  u32 seen = __atomic_load_n(count, __ATOMIC_RELAXED);
  while (seen && !__atomic_compare_exchange_n(count, &seen, seen - 1, true, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED))
    ;
}

/* Takes the next `bytes` of memory of which `used` are taken; false where `size` has no room. */
static inline bool tscope_atomic_take(u32 *used, size_t bytes, u32 size, u32 *place) {
  *place = __atomic_load_n(used, __ATOMIC_RELAXED);
  do {
    if (bytes > size - *place)
      return false;
  } while (!__atomic_compare_exchange_n(used, place, *place + (u32)bytes, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return true;
}
