/* SPDX-License-Identifier: MIT */
#include "analyses/hang/verdict.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "kernels/communication.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ORDER_BY(by_place, struct member_progress, UP(group) UP(rank))

ORDER_BY(by_entry, struct call_entry, UP(group) UP(seq) UP(rank) UP(call))

struct member_progress *member_progress_of(const struct call_index *index, u32 group, u32 rank) {
  struct member_progress key = {.group = group, .rank = rank};
  u32 first = index->first_place[group], n = index->first_place[group + 1] - first;
  return FIND_SORTED(index->members + first, n, &key, by_place);
}

/* The first entry not before (group, seq, rank). */
static u32 lower_entry(const struct call_index *index, u32 group, i64 seq, u32 rank) {
  struct call_entry key = {.group = group, .seq = seq, .rank = rank};
  return FIRST_NOT(0, index->n_entries, i, by_entry(&index->entries[i], &key) < 0);
}

const struct call_entry *call_entry_of(const struct call_index *index, u32 group, i64 seq,
                                       u32 rank) {
  u32 at = lower_entry(index, group, seq, rank);
  const struct call_entry *entry = &index->entries[at];
  return at < index->n_entries && entry->group == group && entry->seq == seq && entry->rank == rank
             ? entry
             : NULL;
}

const struct call_entry *call_entries(const struct call_index *index, u32 group, i64 seq, u32 *n) {
  u32 at = lower_entry(index, group, seq, 0);
  *n = 0;
  while (at + *n < index->n_entries && index->entries[at + *n].group == group &&
         index->entries[at + *n].seq == seq)
    ++*n;
  return *n ? &index->entries[at] : NULL;
}

static void list_members(struct call_index *index) {
  const struct flight_record *flight = index->flight;
  u32 n = 0;
  index->first_place = arena_array(index->arena, flight->n_groups, sizeof(u32));
  for (u32 g = 0; g < flight->n_groups; g++) {
    index->first_place[g] = n;
    n += flight->groups[g].n_members;
  }
  index->first_place[flight->n_groups] = n;
  index->members = arena_array(index->arena, n, sizeof(*index->members));
  for (u32 g = 0; g < flight->n_groups; g++) {
    struct member_progress *members = index->members + index->first_place[g];
    for (u32 m = 0; m < flight->groups[g].n_members; m++)
      members[m] = (struct member_progress){.group = g,
                                            .rank = flight->groups[g].members[m],
                                            .called = SEQ_UNKNOWN,
                                            .completed = SEQ_UNKNOWN,
                                            .oldest_pending = SEQ_UNKNOWN,
                                            .oldest_pending_call = INDEX_NONE};
    SORT(members, flight->groups[g].n_members, by_place);
  }
}

static void add_call(struct call_index *index, u32 number) {
  const struct flight_call *call = &index->flight->calls[number];
  struct member_progress *member = member_progress_of(index, call->group, call->rank);
  if (!member)
    return;
  index->entries[index->n_entries++] =
      (struct call_entry){.call = number, SAME(call, group, rank, seq)};
  member->called = MAX(call->seq, member->called);
  if (call->state == FLIGHT_COMPLETED && call->seq > member->completed)
    member->completed = call->seq;
  if (flight_call_is_pending(call) &&
      (member->oldest_pending == SEQ_UNKNOWN || call->seq < member->oldest_pending)) {
    member->oldest_pending = call->seq;
    member->oldest_pending_call = number;
  }
}

/* PyTorch counts a group's collectives and messages separately, but has one progress counter for
 * both. The counter of a group in which messages were sent, or whose numbers do not agree with the
 * calls, says nothing. */
static bool *find_reliable_counters(const struct call_index *index) {
  const struct flight_record *flight = index->flight;
  bool *reliable = arena_array(index->arena, flight->n_groups, sizeof(bool));
  memset(reliable, true, flight->n_groups);
  FOR_EACH(flight->calls, flight->n_calls, call)
    reliable[call->group] &= !call->message;
  FOR_EACH(flight->progress, flight->n_progress, progress) {
    const struct member_progress *member =
        member_progress_of(index, progress->group, progress->rank);
    if (!member || (member->called != SEQ_UNKNOWN && progress->called != member->called))
      reliable[progress->group] = false;
  }
  return reliable;
}

static void add_progress_counters(struct call_index *index) {
  const bool *reliable = find_reliable_counters(index);
  FOR_EACH(index->flight->progress, index->flight->n_progress, progress) {
    struct member_progress *member = member_progress_of(index, progress->group, progress->rank);
    if (!member || !reliable[progress->group])
      continue;
    member->called = MAX(progress->called, member->called);
    member->completed = MAX(progress->completed, member->completed);
  }
}

void call_index_make(struct call_index *index, const struct flight_record *flight,
                     struct arena *arena) {
  *index = (struct call_index){.flight = flight, .arena = arena};
  list_members(index);
  index->entries = arena_array(arena, flight->n_calls, sizeof(*index->entries));
  for (u32 i = 0; i < flight->n_calls; i++) {
    const struct flight_call *call = &flight->calls[i];
    if (!call->message && !call->coalesced && call->seq != SEQ_UNKNOWN)
      add_call(index, i);
  }
  SORT(index->entries, index->n_entries, by_entry);
  add_progress_counters(index);
}

enum call_state call_entry_state(const struct call_index *index,
                                 const struct member_progress *member, i64 seq, i64 created) {
  const struct flight_rank *rank = &index->flight->ranks[member->rank];
  if (!rank->seen)
    return CALL_UNRECORDED;
  const struct call_entry *entry = call_entry_of(index, member->group, seq, member->rank);
  if (entry) {
    const struct flight_call *call = &index->flight->calls[entry->call];
    return flight_call_is_pending(call)      ? CALL_PENDING
           : call->state == FLIGHT_COMPLETED ? CALL_DONE
           : member->completed >= seq        ? CALL_DONE
                                             : CALL_MADE;
  }
  if (member->called != SEQ_UNKNOWN && seq > member->called)
    return CALL_ABSENT;
  if (member->called != SEQ_UNKNOWN)
    return CALL_DONE; /* called, but no longer in the record */
  /* The record has nothing of this group, although it goes back beyond the call of the peers: then
   * the rank did not call it. */
  if (rank->kept_all || rank->n_calls == 0)
    return CALL_ABSENT;
  bool goes_back =
      created != NS_UNKNOWN && rank->first_created != NS_UNKNOWN && created >= rank->first_created;
  return goes_back ? CALL_ABSENT : CALL_UNKNOWN;
}

bool verdict_waits_for_all(const struct flight_call *call) {
  return call->like ? op_is_barrier_like(call->like) : strcmp(call->op, "coalesced") != 0;
}

char *verdict_name_call(const struct call_index *index, const char *op, i64 seq, u32 group) {
  const struct flight_group *of = &index->flight->groups[group];
  const char *label = flight_group_label(of);
  bool number = !label[strspn(label, "0123456789")]; /* as PyTorch names groups */
  label = strcmp(label, of->name) != 0 ? say(index, "%s (group %s)", label, of->name)
          : number                     ? say(index, "group %s", label)
                                       : label;
  return call_name(index->arena, op, seq, label);
}

char *verdict_call_name(const struct call_index *index, const struct flight_call *call) {
  return verdict_name_call(index, call->op, call->message ? SEQ_UNKNOWN : call->seq, call->group);
}

u32 *verdict_global_ranks(const struct call_index *index, const u32 *ranks, u32 n) {
  u32 *numbers = arena_array(index->arena, n, sizeof(u32));
  for (u32 i = 0; i < n; i++)
    numbers[i] = index->flight->ranks[ranks[i]].rank;
  return numbers;
}

char *verdict_rank_list(const struct call_index *index, const u32 *ranks, u32 n) {
  return ranks_in(index->arena, verdict_global_ranks(index, ranks, n), n);
}
