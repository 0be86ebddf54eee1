/* SPDX-License-Identifier: MIT
 *
 * A tree as a list: a node, what is below it, and so on, without recursion, however deep it is.
 */
#pragma once

#include "base/checked_memory.h"

/* Puts nodes, numbers below `nodes`, into that order; `above` is the one that node i is below,
 * INDEX_NONE if none. It is listed before what is below it, or not at all. Those below one node
 * stay in their order. */
#define ORDER_AS_TREE(listed, n, nodes, i, above)                                                  \
  do {                                                                                             \
    u32 n_ = (n);                                                                                  \
    size_t room_ = size_sum(nodes, 1);                      /* [0] is of none */                   \
    SCOPED u32 *whole_ = memory_zeroed(room_, sizeof(u32)); /* it and all that is below it */      \
    SCOPED u32 *next_ = memory_zeroed(room_, sizeof(u32));  /* place of the next one below it */   \
    SCOPED u32 *ordered_ = memory_array(n_, sizeof(u32));                                          \
    for (u32 k_ = n_; k_-- > 0;) {                                                                 \
      u32 i = (listed)[k_];                                                                        \
      u32 with_all_ = ++whole_[i + 1];                                                             \
      whole_[(u32)((above) + 1)] += with_all_;                                                     \
    }                                                                                              \
    for (u32 k_ = 0; k_ < n_; k_++) {                                                              \
      u32 i = (listed)[k_], *place_ = &next_[(u32)((above) + 1)];                                  \
      ordered_[*place_] = i;                                                                       \
      next_[i + 1] = *place_ + 1;                                                                  \
      *place_ += whole_[i + 1];                                                                    \
    }                                                                                              \
    memcpy(listed, ordered_, n_ * sizeof(u32));                                                    \
  } while (0)
