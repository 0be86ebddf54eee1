/* SPDX-License-Identifier: MIT
 *
 * One element of a list. What is asked of each is said of `one`, which points to it:
 *
 *   const struct rank *late = FIND(model->ranks, model->n_ranks, one, one->late);
 */
#ifndef TSCOPE_CHOOSE_H
#define TSCOPE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "format/tscope_format.h"

/* The first of which `that` is true; NULL if there is none. */
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

/* Whether there is one. */
#define ANY(at, n, one, that) (FIND(at, n, one, that) != NULL)

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

#endif
