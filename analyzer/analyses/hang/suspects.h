/* SPDX-License-Identifier: MIT
 *
 * What the two halves of the verdict share: suspects.c follows which rank waits for which, order.c
 * examines calls that all members have made.
 */
#ifndef TSCOPE_SUSPECTS_H
#define TSCOPE_SUSPECTS_H

#include "analyses/hang/waits.h"

struct judging {
  struct graph *g;
  struct call_index *index;
  const struct matching *matching;
  struct waits *waits;
  bool *named; /* [ranks] */
};

/* Names a rank, once; `evidence` is the caller's arena_printf(). 0, or -ENOMEM. */
int accuse(struct judging *j, u32 rank, enum suspect_reason reason, char *evidence);

static inline const struct ledger_call *call_of(const struct judging *j, u32 front) {
  return &j->index->ledger->calls[j->g->fronts.at[front].call];
}

static inline u32 global(const struct judging *j, u32 rank) {
  return j->index->ledger->ranks[rank].rank;
}

/* The position, in the order of a rank's calls, of the call that holds it up. */
static inline u64 order_on(const struct judging *j, u32 rank, u32 front) {
  const struct member_progress *member =
      member_progress_of(j->index, j->g->fronts.at[front].group, rank);
  return member && member->front_call != INDEX_NONE
             ? j->index->ledger->calls[member->front_call].order
             : 0;
}

/* Ranks that make two calls, which all members have made, in another order than the others. 0, or
 * -ENOMEM. */
int judge_order(struct judging *j);

/* The call in which the waiting begins: ranks that have not begun it while most have, or that this
 * is not known. 0, or -ENOMEM. */
int judge_root(struct judging *j);

#endif
