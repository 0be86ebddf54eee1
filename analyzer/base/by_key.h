/* SPDX-License-Identifier: MIT
 *
 * Numbers, such as those of the elements of a list, by a key that each of them has: those of key k
 * are at[begin[k] .. begin[k + 1]), in their order.
 */
#pragma once

#include "base/checked_memory.h"

struct by_key {
  u32 *begin, *at;
};

/* Those of [from, end) of which `that` is true. Keys are below `keys`. Freed with
 * FREE_EACH(&listed, begin, at).
 *
 *   struct by_key on_host = LISTED_BY_KEY(n_hosts, 0, n_ranks, i, true, ranks[i].host);
 */
#define LISTED_BY_KEY(keys, from, end, i, that, key)                                               \
  ({                                                                                               \
    u32 keys_ = (keys), from_ = (from), end_ = (end);                                              \
    u32 *begin_ = memory_zeroed(size_sum(keys_, 2), sizeof(u32));                                  \
    for (u32 i = from_; i < end_; i++)                                                             \
      if (that)                                                                                    \
        begin_[(key) + 2]++;                                                                       \
    for (u32 k_ = 2; k_ < keys_ + 2; k_++)                                                         \
      begin_[k_] += begin_[k_ - 1];                                                                \
    u32 listed_ = begin_[keys_ + 1], *at_ = memory_array(listed_, sizeof(u32));                    \
    for (u32 i = from_; i < end_; i++)                                                             \
      if (that)                                                                                    \
        at_[begin_[(key) + 1]++] = i;                                                              \
    (struct by_key){begin_, at_};                                                                  \
  })
