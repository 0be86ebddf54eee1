/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/named_calls.h"

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "kernels/communication.h"

static u64 key_of(u32 comm, u32 seq, bool message) {
  return (u64)(comm & INT32_MAX) << 33 | (u64)message << 32 | seq;
}

struct named_calls named_calls_make(const struct rank_events *events) {
  u32 n = events->calls.n;
  struct named_calls index = {memory_array(size_sum(n, 1), sizeof(*index.at)), n};
  for (u32 i = 0; i < n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    u32 comm = call->comm < events->n_comms ? events->comms[call->comm].comm : TSCOPE_UNKNOWN;
    index.at[i] = (struct numbered_call){key_of(comm, call->seq, op_is_message(call->op)), i};
  }
  SORT(index.at, n, by_u64);
  return index;
}

u32 named_calls_find(const struct named_calls *index, u32 comm, u32 seq, bool message) {
  u64 key = key_of(comm, seq, message);
  const struct numbered_call *found =
      names_a_call(comm, seq) ? FIND_SORTED(index->at, index->n, &key, by_u64) : NULL;
  return found ? found->index : INDEX_NONE;
}
