/* SPDX-License-Identifier: MIT
 *
 * Makes one call of the messages of an exchange, and gives it a number: that of a collective of its
 * communicator. What the program calls collectives get numbers that leave room for it.
 */
#include "join/exchanges.h"

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "join/messages.h"
#include "kernels/communication.h"

struct placed {
  u32 comm, exchange;
  u64 place;
};

ORDER_BY(by_place, struct placed, UP(comm) UP(place) UP(exchange))

/* The exchanges of each communicator, in order. */
struct numbering {
  struct placed *at;
  u32 n;
  u32 *first;    /* [n_comms + 1] */
  u32 *before;   /* [n_comms] exchanges that are not in the record */
  bool renumber; /* there are any of these */
};

static u32 collectives_before(const struct placed *placed) {
  return (u32)(placed->place >> 32);
}

/* Where the record does not begin with the first call: each rank has one group in each. */
static bool count_before(const struct model *model, u32 *before) {
  bool any = false;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(model, r);
    for (u32 c = 0; events->groups_before && c < events->n_comms; c++) {
      u32 comm = model_comm_of(model, r, c);
      if (comm != INDEX_NONE && events->groups_before[c] > before[comm])
        before[comm] = events->groups_before[c];
      any |= comm != INDEX_NONE && before[comm];
    }
  }
  return any;
}

static void number_exchanges(struct exchanges *all, struct numbering *numbering) {
  u32 n_comms = all->model->n_comms;
  numbering->at = memory_array(size_sum(all->list.n, 1), sizeof(*numbering->at));
  numbering->first = memory_zeroed(size_sum(n_comms, 1), sizeof(u32));
  numbering->before = memory_zeroed(size_sum(n_comms, 1), sizeof(u32));
  numbering->renumber = count_before(all->model, numbering->before);
  for (u32 i = 0; i < all->list.n; i++)
    if (!all->list.at[i].refused)
      numbering->at[numbering->n++] =
          (struct placed){all->list.at[i].comm, i, all->list.at[i].place};
  SORT(numbering->at, numbering->n, by_place);
  for (u32 i = 0; i < numbering->n; i++)
    numbering->first[numbering->at[i].comm + 1] = i + 1;
  for (u32 c = 0; c < n_comms; c++)
    numbering->first[c + 1] = MAX(numbering->first[c], numbering->first[c + 1]);
  for (u32 i = 0; i < numbering->n; i++)
    all->list.at[numbering->at[i].exchange].seq = collectives_before(&numbering->at[i]) +
                                                  numbering->before[numbering->at[i].comm] + i -
                                                  numbering->first[numbering->at[i].comm];
}

/* Calls that are collectives also without this. */
static void renumber_calls(const struct exchanges *all, const struct numbering *numbering) {
  struct model *model = all->model;
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct rank_events *events = model_events(model, r);
    FOR_EACH_CHANGED(events->calls.at, events->calls.n, call) {
      u32 comm = model_comm_of(model, r, call->comm);
      if (comm == INDEX_NONE || op_is_message(call->op) || call->seq == TSCOPE_UNKNOWN)
        continue;
      u32 first = numbering->first[comm], end = numbering->first[comm + 1];
      call->seq += numbering->before[comm] +
                   FIRST_NOT(first, end, k, collectives_before(&numbering->at[k]) <= call->seq) -
                   first;
    }
  }
}

/* What the call of an all-to-all would say: elements for each other rank, the mean of the side that
 * has more, because bandwidth is that of the busiest link. */
static void fill_call(const struct exchanges *all, const struct bundle *bundle,
                      struct rank_call *call) {
  u32 size = all->model->comms[bundle->comm].size, others = size > 1 ? size - 1 : 1;
  u64 element = call->count ? call->bytes / call->count : 0;
  u64 most = MAX(bundle->sent, bundle->received);
  most = size > 1 ? most : bundle->kept;
  call->op = TSCOPE_OP_ALLTOALL;
  call->count = (most + others - 1) / others;
  call->bytes = bundle->sent * element;
  call->peer = -1;
  call->seq = all->list.at[bundle->exchange].seq;
}

static bool is_in(const struct rank_call *call, const struct bundle *bundle, u32 comm) {
  return call_is_message(call) && call->group == bundle->group && comm == bundle->comm;
}

/* Puts the messages of a bundle into the first of them; `into` says where calls went. */
static void merge_bundle(const struct exchanges *all, const struct bundle *bundle, u32 *into) {
  struct rank_events *events = model_events(all->model, bundle->rank);
  struct rank_call *call = &events->calls.at[bundle->first];
  for (u32 i = bundle->first + 1; i <= bundle->last; i++) {
    const struct rank_call *other = &events->calls.at[i];
    if (!is_in(other, bundle, model_comm_of(all->model, bundle->rank, other->comm)))
      continue;
    into[i] = bundle->first;
    call->end = call->end == NS_UNKNOWN || other->end == NS_UNKNOWN ? NS_UNKNOWN
                : other->end > call->end                            ? other->end
                                                                    : call->end;
    call->run = call->run == INDEX_NONE ? other->run : call->run;
  }
  fill_call(all, bundle, call);
}

/* Removes the calls that went into others: `into` then says for each call where it is. */
static u32 remove_merged(struct rank_events *events, u32 *into) {
  u32 kept = 0;
  for (u32 i = 0; i < events->calls.n; i++) {
    if (into[i] != i) {
      into[i] = into[into[i]];
      continue;
    }
    into[i] = kept;
    events->calls.at[kept++] = events->calls.at[i];
  }
  return kept;
}

static void follow(u32 *call, const u32 *into) {
  *call = *call == INDEX_NONE ? INDEX_NONE : into[*call];
}

static void follow_calls(struct rank_events *events, const u32 *into) {
  FOR_EACH_CHANGED(events->runs.at, events->runs.n, run)
    follow(&run->first_call, into);
  FOR_EACH_CHANGED(events->insides.at, events->insides.n, inside)
    follow(&inside->call, into);
  FOR_EACH_CHANGED(events->waits.at, events->waits.n, wait)
    follow(&wait->call, into);
}

void merge_calls_again(const struct rank_events *joined, struct rank_events *events) {
  if (!joined->merged_into || joined->n_unmerged != events->calls.n)
    return;
  u32 kept = 0;
  for (u32 i = 0; i < joined->n_unmerged; i++)
    if (joined->merged_into[i] == kept) /* the first of those that went there */
      events->calls.at[kept++] = events->calls.at[i];
  events->calls.n = kept;
  follow_calls(events, joined->merged_into);
}

static void merge_calls_of(const struct exchanges *all, u32 first, u32 end) {
  u32 rank = all->bundles.at[first].rank;
  struct rank_events *events = model_events(all->model, rank);
  u32 n = events->calls.n, *into = arena_array(model_arena(all->model), n, sizeof(u32));
  for (u32 i = 0; i < n; i++)
    into[i] = i;
  for (u32 i = first; i < end; i++)
    if (all->bundles.at[i].exchange != INDEX_NONE)
      merge_bundle(all, &all->bundles.at[i], into);
  events->calls.n = remove_merged(events, into);
  events->merged_into = into;
  events->n_unmerged = n;
  follow_calls(events, into);
}

/* Exchanges that not all ranks of their communicator have a part in. */
static void list_sparse(const struct exchanges *all, const struct numbering *numbering) {
  struct model *model = all->model;
  FOR_EACH(numbering->at, numbering->n, one) {
    const struct exchange *exchange = &all->list.at[one->exchange];
    if (exchange->absent == 0 && exchange->members < model->comms[exchange->comm].size)
      VECTOR_PUSH(&internal_of(model)->sparse,
                  ((struct sparse_collective){exchange->comm, exchange->seq, exchange->members}));
  }
}

void merge_exchanges(struct model *model, unsigned threads) {
  struct exchanges all = {.model = model};
  struct numbering numbering = {0};
  find_exchanges(&all, threads);
  number_exchanges(&all, &numbering);
  if (numbering.n || numbering.renumber)
    renumber_calls(&all, &numbering);
  for (u32 i = 0, n; numbering.n && i < all.bundles.n; i += n) {
    n = ROW_OF_EQUALS(&all.bundles.at[i], all.bundles.n - i, a, b, a->rank == b->rank);
    merge_calls_of(&all, i, i + n);
  }
  list_sparse(&all, &numbering);
  FREE_EACH(&numbering, at, first, before);
  FREE_EACH(&all, bundles.at, list.at);
}
