/* SPDX-License-Identifier: MIT
 *
 * Calls by the communicator, the sequence and the kind that records of runs and waits name them
 * with: for who looks for many. Messages have numbers of their own.
 */
#pragma once

#include "model/rank_events.h"

struct named_calls {
  struct numbered_call {
    u64 key;
    u32 index;
  } * at;
  u32 n;
};

/* Of events.calls, as they lie now. Free it with free(index.at). */
struct named_calls named_calls_make(const struct rank_events *events);

/* `comm`: the number that the process's records use. Index of the call; INDEX_NONE. */
u32 named_calls_find(const struct named_calls *index, u32 comm, u32 seq, bool message);

static inline bool names_a_call(u32 comm, u32 seq) {
  return comm != TSCOPE_UNKNOWN && seq != TSCOPE_UNKNOWN;
}
