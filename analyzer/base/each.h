/* SPDX-License-Identifier: MIT
 *
 * The same for each element of a list, and for each member of a struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "format/tscope_format.h"

/* A loop over a list, which stays as it is meanwhile; `one` points to an element, which changes
 * only with FOR_EACH_CHANGED():
 *
 *   FOR_EACH(model->ranks, model->n_ranks, rank)
 *     launches += rank->launches;
 */
#define FOR_EACH(at, n, one)                                                                       \
  for (const __typeof__((at)[0]) *one = (at), *one##_end = one ? one + (n) : one; one < one##_end; \
       one++)
#define FOR_EACH_CHANGED(at, n, one)                                                               \
  for (__typeof__((at)[0]) *one = (at), *one##_end = one ? one + (n) : one; one < one##_end; one++)

/* Gives all elements a value. */
#define FILL(at, n, value)                                                                         \
  FOR_EACH_CHANGED(at, n, filled_)                                                                 \
  *filled_ = (value)

/* What is asked of each element is said of `one`, which points to it:
 *
 *   const struct rank *late = FIND(model->ranks, model->n_ranks, one, one->late);
 *
 * The first of which `that` is true; NULL if there is none. */
#define FIND(at, n, one, that)                                                                     \
  ({                                                                                               \
    __typeof__((at)[0]) *found_ = NULL;                                                            \
    for (size_t i_ = 0; i_ < (n) && !found_; i_++) {                                               \
      __typeof__((at)[0]) *one = &(at)[i_];                                                        \
      if (that)                                                                                    \
        found_ = one;                                                                              \
    }                                                                                              \
    found_;                                                                                        \
  })

/* Its index; INDEX_NONE. */
#define INDEX_OF(at, n, one, that)                                                                 \
  ({                                                                                               \
    const __typeof__((at)[0]) *index_of_ = FIND(at, n, one, that);                                 \
    index_of_ ? (u32)(index_of_ - (at)) : INDEX_NONE;                                              \
  })

/* Whether there is one. */
#define ANY(at, n, one, that) (FIND(at, n, one, that) != NULL)

/* Whether it is true of all. */
#define ALL(at, n, one, that) (!ANY(at, n, one, !(that)))

/* Of how many it is true, and the sum of a value over all. */
#define NUMBER_OF(at, n, one, that) TOTAL(u32, at, n, one, (that) ? 1u : 0u)
#define TOTAL(type, at, n, one, value)                                                             \
  ({                                                                                               \
    type total_ = 0;                                                                               \
    FOR_EACH(at, n, one)                                                                           \
      total_ += (value);                                                                           \
    total_;                                                                                        \
  })

/* The largest value over all, 0 for none. */
#define MOST_OF(type, at, n, one, value)                                                           \
  ({                                                                                               \
    type most_of_ = 0;                                                                             \
    FOR_EACH(at, n, one) {                                                                         \
      type value_of_ = (value);                                                                    \
      most_of_ = MAX(value_of_, most_of_);                                                         \
    }                                                                                              \
    most_of_;                                                                                      \
  })

/* Of those of which it is true the one with the largest value, a double; of equal ones the first.
 * NAN, which is not known, is less than any. NULL if there is none. */
#define LARGEST(at, n, one, that, value)                                                           \
  ({                                                                                               \
    __typeof__((at)[0]) *largest_ = NULL;                                                          \
    double most_ = 0;                                                                              \
    for (size_t i_ = 0; i_ < (n); i_++) {                                                          \
      __typeof__((at)[0]) *one = &(at)[i_];                                                        \
      if (!(that))                                                                                 \
        continue;                                                                                  \
      double value_ = (value);                                                                     \
      if (!largest_ || value_ > most_ || (most_ != most_ && value_ == value_)) {                   \
        largest_ = one;                                                                            \
        most_ = value_;                                                                            \
      }                                                                                            \
    }                                                                                              \
    largest_;                                                                                      \
  })

/* Lists `value` of each number i of [from, end) of which it is true; how many. What is given to has
 * room for all:
 *
 *   u32 n = LIST_WHERE(late, 0, model->n_ranks, i, model->ranks[i].late, model->ranks[i].rank);
 */
#define LIST_WHERE(to, from, end, i, that, value)                                                  \
  ({                                                                                               \
    u32 listed_ = 0, until_ = (end);                                                               \
    for (u32 i = (from); i < until_; i++)                                                          \
      if (that)                                                                                    \
        (to)[listed_++] = (value);                                                                 \
    listed_;                                                                                       \
  })

/* The same of values that are known: a double that is NAN is not. */
#define LIST_KNOWN(to, from, end, i, value)                                                        \
  ({                                                                                               \
    u32 listed_ = 0, until_ = (end);                                                               \
    for (u32 i = (from); i < until_; i++) {                                                        \
      double value_ = (value);                                                                     \
      if (value_ == value_)                                                                        \
        (to)[listed_++] = value_;                                                                  \
    }                                                                                              \
    listed_;                                                                                       \
  })

/* The mean of those that are known; NAN if none is. */
#define MEAN_KNOWN(from, end, i, value)                                                            \
  ({                                                                                               \
    double sum_ = 0;                                                                               \
    u32 known_ = 0;                                                                                \
    for (u32 i = (from), until_ = (end); i < until_; i++) {                                        \
      double value_ = (value);                                                                     \
      sum_ += value_ == value_ ? value_ : 0;                                                       \
      known_ += value_ == value_;                                                                  \
    }                                                                                              \
    known_ ? sum_ / known_ : __builtin_nan("");                                                    \
  })

/* The number of [from, end) with the largest value, a double; of equal ones the first, and `from`
 * if none is known. */
#define NUMBER_OF_LARGEST(from, end, i, value)                                                     \
  ({                                                                                               \
    u32 largest_ = (from), until_ = (end);                                                         \
    double most_ = -__builtin_inf();                                                               \
    for (u32 i = largest_; i < until_; i++) {                                                      \
      double value_ = (value);                                                                     \
      if (value_ > most_) {                                                                        \
        largest_ = i;                                                                              \
        most_ = value_;                                                                            \
      }                                                                                            \
    }                                                                                              \
    largest_;                                                                                      \
  })

/* The number of [0, n) that most are like, if it is most; else any. `alike` says so of i and k
 * [Boyer and Moore 1991]; `times` gets how many are. */
#define MAJORITY(n, i, k, alike, times)                                                            \
  ({                                                                                               \
    u32 i = 0, lead_ = 0, of_ = (n);                                                               \
    for (u32 k = 0; k < of_; k++) {                                                                \
      i = lead_ ? i : k;                                                                           \
      lead_ += (alike) ? 1 : -1u;                                                                  \
    }                                                                                              \
    (times) = 0;                                                                                   \
    for (u32 k = 0; k < of_; k++)                                                                  \
      (times) += (alike);                                                                          \
    i;                                                                                             \
  })

/* Whether it is true of any number of [from, end). */
#define ANY_NUMBER(from, end, i, that)                                                             \
  ({                                                                                               \
    bool any_ = false;                                                                             \
    for (u32 i = (from), limit_ = (end); i < limit_ && !any_; i++)                                 \
      any_ = (that);                                                                               \
    any_;                                                                                          \
  })

/* Keeps those of which it is true, in their order; how many are left. */
#define KEEP_WHERE(at, n, one, that)                                                               \
  ({                                                                                               \
    u32 kept_ = 0;                                                                                 \
    for (size_t i_ = 0; i_ < (n); i_++) {                                                          \
      __typeof__((at)[0]) *one = &(at)[i_];                                                        \
      if (that)                                                                                    \
        (at)[kept_++] = *one;                                                                      \
    }                                                                                              \
    kept_;                                                                                         \
  })

/* How many elements from the first on are like it; `that` says so of `first` and another `one`. */
#define ROW_OF_EQUALS(at, n, first, one, that)                                                     \
  ({                                                                                               \
    __typeof__((at)[0]) *first = (at), *one = first + 1, *behind_ = first + (n);                   \
    while (one < behind_ && (that))                                                                \
      one++;                                                                                       \
    (u32)(one - first);                                                                            \
  })

/* Of neighbours of which `alike` is true, `last` that was kept and the next `one`, keeps the first;
 * how many are left. */
#define KEEP_FIRST(at, n, last, one, alike)                                                        \
  ({                                                                                               \
    u32 left_ = 0;                                                                                 \
    for (size_t i_ = 0; i_ < (n); i_++) {                                                          \
      __typeof__((at)[0]) *one = &(at)[i_], *last = left_ ? &(at)[left_ - 1] : NULL;               \
      if (!last || !(alike))                                                                       \
        (at)[left_++] = *one;                                                                      \
    }                                                                                              \
    left_;                                                                                         \
  })

/* Members, named once: EACH(DO, a, b, c) is DO(a) DO(b) DO(c), for up to a hundred of them. */
#define EACH(DO, ...) EACH_SCANS(EACH_SCANS(EACH_SCANS(EACH_SCANS(EACH_STEP(DO, __VA_ARGS__)))))

/* A macro is not expanded within itself: each scan of the text makes a few steps. */
#define EACH_STEP(DO, one, ...) DO(one) __VA_OPT__(EACH_AGAIN EACH_PARENTHESES(DO, __VA_ARGS__))
#define EACH_AGAIN() EACH_STEP
#define EACH_PARENTHESES ()
#define EACH_SCANS(...) EACH_SOME(EACH_SOME(EACH_SOME(EACH_SOME(EACH_SOME(__VA_ARGS__)))))
#define EACH_SOME(...) EACH_FEW(EACH_FEW(EACH_FEW(EACH_FEW(EACH_FEW(__VA_ARGS__)))))
#define EACH_FEW(...) __VA_ARGS__

/* The same with something beside each member: DO(with, a) DO(with, b) DO(with, c). */
#define EACH_WITH(DO, with, ...)                                                                   \
  EACH_SCANS(EACH_SCANS(EACH_SCANS(EACH_SCANS(EACH_WITH_STEP(DO, with, __VA_ARGS__)))))
#define EACH_WITH_STEP(DO, with, one, ...)                                                         \
  DO(with, one) __VA_OPT__(EACH_WITH_AGAIN EACH_PARENTHESES(DO, with, __VA_ARGS__))
#define EACH_WITH_AGAIN() EACH_WITH_STEP

/* In an initializer: these members are as those of another struct.
 *
 *   struct device device = {.known = true, SAME(result, rank, bytes)};
 */
#define SAME(from, one, ...)                                                                       \
  .one = (from)->one __VA_OPT__(EACH_WITH(ONE_MORE_SAME, from, __VA_ARGS__))
#define ONE_MORE_SAME(from, member) , .member = (from)->member

/* Of a struct that is there already. */
#define COPY_EACH(to, from, ...)                                                                   \
  do {                                                                                             \
    __typeof__(&*(to)) to_ = (to);                                                                 \
    __typeof__(&*(from)) from_ = (from);                                                           \
    EACH(COPY_MEMBER, __VA_ARGS__)                                                                 \
  } while (0)
#define COPY_MEMBER(member) to_->member = from_->member;

/* Adds these members of one struct to those of another. */
#define ADD_EACH(to, from, ...)                                                                    \
  do {                                                                                             \
    __typeof__(to) to_ = (to);                                                                     \
    __typeof__(from) from_ = (from);                                                               \
    EACH(ADD_MEMBER, __VA_ARGS__)                                                                  \
  } while (0)
#define ADD_MEMBER(member) to_->member += from_->member;

/* Divides these members of a struct. */
#define DIVIDE_EACH(of, by, ...)                                                                   \
  do {                                                                                             \
    __typeof__(&*(of)) of_ = (of);                                                                 \
    double by_ = (by);                                                                             \
    EACH(DIVIDE_MEMBER, __VA_ARGS__)                                                               \
  } while (0)
#define DIVIDE_MEMBER(member) of_->member /= by_;

/* Frees the memory that these members of a struct point to. */
#define FREE_EACH(of, ...)                                                                         \
  do {                                                                                             \
    __typeof__(&*(of)) of_ = (of);                                                                 \
    EACH(FREE_MEMBER, __VA_ARGS__)                                                                 \
  } while (0)
#define FREE_MEMBER(member) free(of_->member);
