/* SPDX-License-Identifier: MIT
 *
 * What the two halves of the verdict share: suspects.c follows which rank waits for which,
 * group_order.c examines calls that all members have made.
 */
#pragma once

#include "analyses/hang/waits.h"

struct suspect_search {
  struct wait_graph *g;
  struct call_index *index;
  const struct matching *matching;
  struct collective_check *check;
  suspect_list *suspects;
  u32 *unrecorded; /* ranks that others wait for and that left no record */
  u32 n_unrecorded;
  bool *named;  /* [ranks] */
  u32 *waiting; /* [ranks] the blocked call, with the most ranks in it, that waits for each */
  const struct came *came; /* [ranks] unusual_calls.c; NULL until it is asked for */
};

/* Names a rank, once. */
void name_suspect(struct suspect_search *j, u32 rank, enum suspect_reason reason,
                  struct suspect_facts facts);

static inline const struct flight_call *call_of(const struct suspect_search *j, u32 blocked) {
  return &j->index->flight->calls[j->g->blocked_calls.at[blocked].call];
}

static inline u32 global(const struct suspect_search *j, u32 rank) {
  return j->index->flight->ranks[rank].rank;
}

/* The position, in the order of a rank's calls, of the call that holds it up. */
static inline u64 order_on(const struct suspect_search *j, u32 rank, u32 blocked) {
  const struct member_progress *member =
      member_progress_of(j->index, j->g->blocked_calls.at[blocked].group, rank);
  return member && member->oldest_pending_call != INDEX_NONE
             ? j->index->flight->calls[member->oldest_pending_call].order
             : 0;
}

/* Whether a rank makes the call of a mismatch, and one that another member makes there, both, but
 * the other way round. */
bool find_swapped_calls(const struct suspect_search *j, const struct mismatch *mismatch, u32 rank,
                        struct suspect_facts *facts);

/* Names those of a cycle that alone came to their call in another way than ever before; whether
 * there are any. */
bool name_unusual_of_cycle(struct suspect_search *j, u32 cycle);

/* Ranks that make two calls, which all members have made, in another order than the others. */
void find_order_suspects(struct suspect_search *j);

/* Whether ranks make two calls in another order than others, as far as records show it: calls in
 * which all members with a record are. */
bool orders_differ(struct suspect_search *j);

/* The call in which the waiting begins: ranks that have not begun it while most have, or that this
 * is not known. */
void find_root_suspects(struct suspect_search *j);
