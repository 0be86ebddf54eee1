/* SPDX-License-Identifier: MIT
 *
 * Two calls of one group that one member makes in one order and another member in the other. If two
 * threads make them, such as the thread that trains and one that saves a checkpoint, the order is
 * chance.
 */
#include "analyses/hang/suspects.h"
#include "base/hash.h"
#include "base/rank_list.h"
#include "base/reordered.h"

enum { MOST = 128 }; /* calls that are looked at */

static const struct flight_call *call_at(const struct call_index *index, u32 group, i64 seq,
                                         u32 rank) {
  const struct call_entry *entry = call_entry_of(index, group, seq, rank);
  return entry ? &index->flight->calls[entry->call] : NULL;
}

static u64 key_of(const struct flight_call *call) {
  const u64 parts[2] = {call->in_count, call->out_count};
  return hash_bytes(hash_text(0, call->op), parts, sizeof(parts));
}

/* From a number on, what two ranks called. */
struct both {
  u32 n;
  const struct flight_call *a[MOST], *b[MOST];
  u64 keys_a[MOST], keys_b[MOST];
};

static void list_both(const struct call_index *index, const struct mismatch *from, u32 a, u32 b,
                      struct both *both) {
  for (both->n = 0; both->n < MOST; both->n++) {
    u32 i = both->n;
    both->a[i] = call_at(index, from->group, from->seq + i, a);
    both->b[i] = call_at(index, from->group, from->seq + i, b);
    if (!both->a[i] || !both->b[i])
      return;
    both->keys_a[i] = key_of(both->a[i]);
    both->keys_b[i] = key_of(both->b[i]);
  }
}

static const struct flight_call *find_key(const struct flight_call *const *calls, const u64 *keys,
                                          u64 key) {
  u32 i = 0;
  while (keys[i] != key)
    i++;
  return calls[i];
}

static bool by_two_threads(const struct flight_call *a, const struct flight_call *b) {
  return a->thread != FLIGHT_NO_THREAD && b->thread != FLIGHT_NO_THREAD && a->thread != b->thread;
}

static bool is_odd(const struct mismatch *mismatch, u32 rank) {
  return ranks_have(mismatch->ranks, mismatch->n_ranks, rank);
}

/* Those that call what the rank calls at this number. */
static u32 count_alike(const struct call_index *index, const struct call_entry *entries, u32 n,
                       u64 key) {
  return NUMBER_OF(entries, n, one, key_of(&index->flight->calls[one->call]) == key);
}

/* A member that calls something else there, one of the majority if there is any; INDEX_NONE. */
static u32 choose_peer(const struct call_index *index, const struct mismatch *mismatch,
                       const struct call_entry *entries, u32 n, u64 own) {
  const struct call_entry *peer = FIND(entries, n, one,
                                       key_of(&index->flight->calls[one->call]) != own &&
                                           !(mismatch->minority && is_odd(mismatch, one->rank)));
  return peer ? peer->rank : INDEX_NONE;
}

bool find_swapped_calls(const struct suspect_search *j, const struct mismatch *mismatch, u32 rank,
                        struct suspect_facts *facts) {
  const struct call_index *index = j->index;
  struct both both;
  u32 n;
  const struct call_entry *entries = call_entries(index, mismatch->group, mismatch->seq, &n);
  const struct flight_call *call = call_at(index, mismatch->group, mismatch->seq, rank);
  u32 peer = call ? choose_peer(index, mismatch, entries, n, key_of(call)) : INDEX_NONE;
  if (peer == INDEX_NONE)
    return false;
  list_both(index, mismatch, rank, peer, &both);
  if (!reordered_until(both.keys_a, both.keys_b, both.n))
    return false;
  u64 own = both.keys_a[0], theirs = both.keys_b[0];
  *facts = (struct suspect_facts){
      .call = verdict_call_name(index, both.a[0]),
      .before = both.b[0]->op,
      .some = count_alike(index, entries, n, own),
      .all = n,
      .last_called = SEQ_UNKNOWN,
      .two_threads = by_two_threads(both.a[0], find_key(both.a, both.keys_a, theirs)) &&
                     by_two_threads(both.b[0], find_key(both.b, both.keys_b, own))};
  return true;
}
