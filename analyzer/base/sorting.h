/* SPDX-License-Identifier: MIT
 *
 * Sorting: functions for SORT() and FIND_SORTED() from what they compare; the first difference
 * decides:
 *
 *   ORDER_BY(longest_first, struct kernel_result, DOWN(sum_ms) BY_TEXT(name))
 */
#pragma once

#include <stdlib.h>

#include "base/texts.h"
#include "format/tscope_format.h"

#define ORDER_BY(function, type, comparisons)                                                      \
  static int function(const void *left_, const void *right_) {                                     \
    const type *a = left_, *b = right_;                                                            \
    comparisons return 0;                                                                          \
  }
/* The same for pointers to them. */
#define ORDER_POINTERS_BY(function, type, comparisons)                                             \
  static int function(const void *left_, const void *right_) {                                     \
    const type *a = *(const type *const *)left_, *b = *(const type *const *)right_;                \
    comparisons return 0;                                                                          \
  }
/* And for indices into a list of them, for SORT_INDICES(). */
#define ORDER_INDICES_BY(function, type, comparisons)                                              \
  static int function(const void *left_, const void *right_, void *list_) {                        \
    const type *a = (const type *)list_ + *(const u32 *)left_,                                     \
               *b = (const type *)list_ + *(const u32 *)right_;                                    \
    comparisons return 0;                                                                          \
  }

#define UP(member) LESS_FIRST(a->member, b->member)
#define DOWN(member) LESS_FIRST(b->member, a->member)
#define UP_OF(function) LESS_FIRST(function(a), function(b))
#define DOWN_OF(function) LESS_FIRST(function(b), function(a))
#define BY_TEXT(member) THEN(compare_texts(a->member, b->member))

/* What a and b have in common with strcmp()'s result. */
#define THEN(comparison)                                                                           \
  {                                                                                                \
    int order_ = comparison;                                                                       \
    if (order_)                                                                                    \
      return order_;                                                                               \
  }
#define LESS_FIRST(of_a, of_b)                                                                     \
  if ((of_a) != (of_b))                                                                            \
    return (of_a) < (of_b) ? -1 : 1;

/* Sorts a list, also one that is NULL because nothing is in it. Equal elements keep their order,
 * and the more of a list is in order before, the less it takes. */
#define SORT(at, n, order) sort_list(at, n, sizeof(*(at)), order)
#define SORT_INDICES(indices, n, list, order) sort_list_of(indices, n, sizeof(u32), order, list)

void sort_list(void *at, u32 n, size_t bytes, int (*order)(const void *, const void *));
void sort_list_of(void *at, u32 n, size_t bytes, int (*order)(const void *, const void *, void *),
                  void *of);

/* Of a list that is sorted so: the one that equals `wanted`, which points to one like it or to the
 * value that it begins with; NULL if there is none. */
#define FIND_SORTED(at, n, wanted, order)                                                          \
  ((n) ? (__typeof__(&(at)[0]))bsearch(wanted, at, n, sizeof(*(at)), order) : NULL)

/* Sorts a list and joins what is equal in that order: `join` adds `other` to `kept`, the first of
 * its equals. How many are left. */
#define SORT_AND_JOIN(at, n, order, kept, other, join)                                             \
  ({                                                                                               \
    u32 left_ = 0;                                                                                 \
    SORT(at, n, order);                                                                            \
    for (u32 i_ = 0; i_ < (n); i_++) {                                                             \
      __typeof__(&(at)[0]) other = &(at)[i_], kept = left_ ? &(at)[left_ - 1] : NULL;              \
      if (!kept || order(kept, other) != 0)                                                        \
        (at)[left_++] = *other;                                                                    \
      else                                                                                         \
        join;                                                                                      \
    }                                                                                              \
    left_;                                                                                         \
  })

/* Of [from, to), in which all that are `before` come first: the first that is not, else `to`.
 *
 *   u32 first = FIRST_NOT(0, n, i, spans[i].start < time);
 */
#define FIRST_NOT(from, to, i, before)                                                             \
  ({                                                                                               \
    u32 low_ = from, high_ = to;                                                                   \
    while (low_ < high_) {                                                                         \
      u32 i = low_ + (high_ - low_) / 2;                                                           \
      if (before)                                                                                  \
        low_ = i + 1;                                                                              \
      else                                                                                         \
        high_ = i;                                                                                 \
    }                                                                                              \
    low_;                                                                                          \
  })

/* The same, where it mostly is the one that was found last. */
#define FIRST_NOT_NEAR(last, from, to, i, before)                                                  \
  ({                                                                                               \
    u32 least_ = from, most_ = to;                                                                 \
    for (u32 i = last, n_ = 2; n_-- && i >= least_ && i < most_; i--)                              \
      if (before)                                                                                  \
        least_ = i + 1;                                                                            \
      else                                                                                         \
        most_ = i;                                                                                 \
    FIRST_NOT(least_, most_, i, before);                                                           \
  })

/* Of [0, n), over which value(i) grows: the one for which it is `wanted`, else INDEX_NONE. */
#define SORTED_INDEX(n, i, value, wanted)                                                          \
  ({                                                                                               \
    u32 first_ = FIRST_NOT(0, n, i, (value) < (wanted)), i = first_;                               \
    i < (n) && (value) == (wanted) ? i : INDEX_NONE;                                               \
  })

/* Values, and structs that begin with one. */
int by_u32(const void *left, const void *right);
int by_u64(const void *left, const void *right);
int by_i64(const void *left, const void *right);
int by_double(const void *left, const void *right);
