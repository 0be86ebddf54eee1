/* SPDX-License-Identifier: MIT
 *
 * Exact arithmetic on sets of intervals. Everything is one merge, O(n).
 */
#pragma once

#include "base/arena.h"
#include "format/tscope_format.h"

#define NS_UNKNOWN INT64_MIN
#define INDEX_NONE 0xffffffffu

/* The less of two times, either of which may be unknown. The greater is MAX(): NS_UNKNOWN is less
 * than any. */
static inline i64 least_known(i64 a, i64 b) {
  return b == NS_UNKNOWN || (a != NS_UNKNOWN && a < b) ? a : b;
}

/* Of [0, n), in order of when each begins, of which few are NS_UNKNOWN: the last that has begun by
 * `time`, or -1. */
#define LAST_BEGUN(n, i, begin, time)                                                              \
  ({                                                                                               \
    u32 low_ = 0, high_ = n;                                                                       \
    while (low_ < high_) {                                                                         \
      i64 begin_ = NS_UNKNOWN;                                                                     \
      u32 middle_ = low_ + (high_ - low_) / 2, i = middle_;                                        \
      while (i < high_ && (begin_ = (begin)) == NS_UNKNOWN)                                        \
        i++;                                                                                       \
      if (begin_ != NS_UNKNOWN && begin_ <= (time))                                                \
        low_ = i + 1;                                                                              \
      else                                                                                         \
        high_ = middle_;                                                                           \
    }                                                                                              \
    (i32) low_ - 1;                                                                                \
  })

struct interval {
  i64 start, end;
};

/* Of i64 and u64 alike. */
static inline double ns_to_ms(double ns) {
  return ns / 1e6;
}

static inline double ns_to_s(double ns) {
  return ns / 1e9;
}

/* NAN if one of the times is not known. */
static inline double seconds_between(i64 from, i64 to) {
  return from == NS_UNKNOWN || to == NS_UNKNOWN ? __builtin_nan("") : ns_to_s(to - from);
}

/* Sorted by start, pairwise disjoint and non-touching. */
struct intervals {
  struct interval *at;
  u32 n;
};

/* Adds [start, end) to a set that is built in order of start; `set` must have room for one more. */
void intervals_append(struct intervals *set, i64 start, i64 end);

/* The union of n intervals in any order, which are sorted meanwhile. `out` lives in the arena. */
void intervals_unite(struct arena *arena, struct interval *at, u32 n, struct intervals *out);

/* out = a or b; out = a and not b. `out` lives in the arena. */
void intervals_union(struct arena *arena, const struct intervals *a, const struct intervals *b,
                     struct intervals *out);
void intervals_subtract(struct arena *arena, const struct intervals *a, const struct intervals *b,
                        struct intervals *out);

/* Those parts of a set that lie in [start, end): pieces of `set` that `cursor` (0 at first, only
 * forward) finds, in `out`, which must have room for as many as `set` has. */
void intervals_within(const struct intervals *set, u32 *cursor, i64 start, i64 end,
                      struct intervals *out);

/* How much of [start, end) the set covers. Successive calls with one cursor must not go back in
 * `start`; a cursor begins at 0. */
i64 intervals_covered(const struct intervals *set, u32 *cursor, i64 start, i64 end);
