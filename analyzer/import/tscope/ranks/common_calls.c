/* SPDX-License-Identifier: MIT */
#include "import/tscope/ranks/common_calls.h"

#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/robust.h"
#include "kernels/communication.h"
#include "model/rank_clock.h"

#define LEAST_CALLS 10u
#define ENOUGH_CALLS 1000u
#define WRONG_TIMES 10u /* one of so many times may be damaged */
#define UNFINISHED 64u  /* calls by which a rank may be behind when it is ended */

/* The widest communicator that both were members of, by its number in each. */
static bool find_common(const struct rank_events *a, const struct rank_events *b, u32 *in_a,
                        u32 *in_b) {
  u32 widest = 1;
  for (u32 i = 0; i < a->n_comms; i++)
    for (u32 k = 0; k < b->n_comms; k++) {
      const struct comm_definition *x = &a->comms[i], *y = &b->comms[k];
      if (x->size <= widest || x->identity != y->identity || x->size != y->size)
        continue;
      widest = x->size;
      *in_a = i;
      *in_b = k;
    }
  return widest > 1;
}

/* The next call from *at on that works as a barrier and is known to have ended; NULL. What a call
 * does not wait for may run long after it returned. */
static const struct rank_call *next_call(const struct rank_events *events, u32 comm, u32 *at) {
  while (*at < events->calls.n) {
    const struct rank_call *call = &events->calls.at[(*at)++];
    const struct rank_run *run = call->run == INDEX_NONE ? NULL : &events->runs.at[call->run];
    if (call->comm == comm && run && op_is_barrier_like(call->op) && run->start != NS_UNKNOWN &&
        run->end != NS_UNKNOWN)
      return call;
  }
  return NULL;
}

/* Nobody ends such a call before all have started it: so each bounds by how much b's clock is
 * ahead, however late threads notice an end. */
struct pairs {
  VECTOR(i64) least, most; /* less the first end on b less that on a */
  i64 base;                /* that */
  i64 first, last;         /* ends on a */
  u32 more;                /* calls of one after the other's last */
};

static void add_pair(struct pairs *pairs, const struct rank_run *a, const struct rank_run *b) {
  i64 apart, in_a, in_b, least, most;
  if (__builtin_sub_overflow(b->end, a->end, &apart) ||
      __builtin_sub_overflow(a->end, a->start, &in_a) ||
      __builtin_sub_overflow(b->end, b->start, &in_b))
    return;
  if (pairs->least.n == 0) {
    pairs->base = apart;
    pairs->first = a->end;
  }
  if (__builtin_sub_overflow(apart, pairs->base, &apart) ||
      __builtin_sub_overflow(apart, in_b, &least) || __builtin_add_overflow(apart, in_a, &most))
    return;
  VECTOR_PUSH(&pairs->least, least);
  VECTOR_PUSH(&pairs->most, most);
  pairs->last = a->end;
}

static void pair_calls(struct pairs *pairs, const struct rank_events *a,
                       const struct rank_events *b, u32 in_a, u32 in_b) {
  u32 i = 0, k = 0;
  const struct rank_call *x = next_call(a, in_a, &i), *y = next_call(b, in_b, &k);
  while (x && y && pairs->least.n < ENOUGH_CALLS) {
    if (x->seq < y->seq)
      x = next_call(a, in_a, &i);
    else if (y->seq < x->seq)
      y = next_call(b, in_b, &k);
    else {
      add_pair(pairs, &a->runs.at[x->run], &b->runs.at[y->run]);
      x = next_call(a, in_a, &i);
      y = next_call(b, in_b, &k);
    }
  }
  for (; x && !y; x = next_call(a, in_a, &i))
    pairs->more++;
  for (; y && !x; y = next_call(b, in_b, &k))
    pairs->more++;
}

enum common_calls common_calls_of(const struct rank_events *a, const struct rank_events *b) {
  u32 in_a = 0, in_b = 0;
  if (!a->calls.n || !b->calls.n || !find_common(a, b, &in_a, &in_b))
    return CALLS_NOT_KNOWN;
  struct pairs pairs = {0};
  pair_calls(&pairs, a, b, in_a, in_b);
  SCOPED i64 *least = pairs.least.at, *most = pairs.most.at;
  u32 n = pairs.least.n;
  if (n < LEAST_CALLS)
    return CALLS_NOT_KNOWN;
  double drifted = MOST_DRIFT * ((double)pairs.last - (double)pairs.first);
  if ((double)ranked_i64(least, n, n - 1 - n / WRONG_TIMES) >
      (double)ranked_i64(most, n, n / WRONG_TIMES) + SAME_CLOCK_NS + drifted)
    return CALLS_ARE_OTHERS;
  return pairs.more <= UNFINISHED ? CALLS_ARE_COMMON : CALLS_NOT_KNOWN;
}
