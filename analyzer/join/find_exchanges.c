/* SPDX-License-Identifier: MIT */

#include "join/exchanges.h"

#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/sets.h"
#include "base/sorting.h"
#include "join/messages.h"
#include "kernels/communication.h"

enum {
  GROUP_REACH = 64, /* groups of several threads lie between each other's calls */
  ROUNDS = 8        /* of putting exchanges in order; two do, if all ranks agree */
};

/* A rank that a bundle of an exchange names, and that is not in it. */
struct absent {
  u32 exchange, rank; /* rank: in the communicator */
};

ORDER_BY(by_absent, struct absent, UP(exchange) UP(rank))

struct finding {
  struct exchanges *all;
  u8 *candidate; /* [n_comms] of its messages some may be an exchange */
  message_sides sides;
  VECTOR(struct absent) absent;
  u32 *set; /* [bundles.n] those that exchange messages with each other */
};

static void look_for_candidates(void *user, u32 rank, unsigned worker) {
  struct finding *f = user;
  const struct model *model = f->all->model;
  const struct rank_events *events = model_events(model, rank);
  u32 group = 0, sends = 0;
  (void)worker;
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (!op_is_message(call->op) || call->group == 0)
      continue;
    u32 comm = model_comm_of(model, rank, call->comm);
    if (comm == INDEX_NONE)
      continue;
    sends = call->group == group ? sends : 0;
    group = call->group;
    sends += call->op == TSCOPE_OP_SEND;
    u32 size = model->comms[comm].size;
    if ((u32)call->peer == events->comms[call->comm].rank ||
        (size >= LEAST_WITHOUT_OWN && sends >= size - 1))
      __atomic_store_n(&f->candidate[comm], 1, __ATOMIC_RELAXED);
  }
}

static struct bundle *bundle_of(struct exchanges *all, u32 first, u32 comm, u32 group) {
  u32 n = all->bundles.n;
  for (u32 back = 1; group && back <= n - first && back <= GROUP_REACH; back++) {
    struct bundle *bundle = &all->bundles.at[n - back];
    if (bundle->comm == comm && bundle->group == group)
      return bundle;
  }
  return NULL;
}

static void add_message(struct finding *f, u32 first, struct bundle fresh,
                        struct message_side side) {
  struct exchanges *all = f->all;
  const struct rank_call *call = &model_events(all->model, fresh.rank)->calls.at[fresh.first];
  struct bundle *bundle = bundle_of(all, first, fresh.comm, fresh.group);
  if (!bundle) {
    VECTOR_PUSH(&all->bundles, fresh);
    bundle = &all->bundles.at[all->bundles.n - 1];
  }
  bool send = call->op == TSCOPE_OP_SEND, own = side.source == side.target;
  bundle->last = fresh.first;
  bundle->lone |= call->dtype != bundle->dtype;
  bundle->keeps |= own;
  *(own    ? &bundle->kept
    : send ? &bundle->sent
           : &bundle->received) += own && !send ? 0 : call->count;
  side.bundle = (u32)(bundle - all->bundles.at);
  VECTOR_PUSH(&f->sides, side);
}

/* What a rank has called on a communicator so far. */
struct called {
  u32 collectives, newest; /* newest: bundle */
};

static void list_bundles_of(struct finding *f, u32 rank, struct called *called) {
  struct exchanges *all = f->all;
  const struct rank_events *events = model_events(all->model, rank);
  u32 first = all->bundles.n;
  FOR_EACH_CHANGED(called, events->n_comms, one)
    *one = (struct called){0, INDEX_NONE};
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    u32 comm = model_comm_of(all->model, rank, call->comm);
    if (comm == INDEX_NONE || !f->candidate[comm])
      continue;
    struct called *here = &called[call->comm];
    if (!op_is_message(call->op)) {
      if (call->seq != TSCOPE_UNKNOWN && call->seq + 1 > here->collectives)
        here->collectives = call->seq + 1;
      if (here->newest != INDEX_NONE)
        all->bundles.at[here->newest].more = true;
      continue;
    }
    struct message_side side;
    u32 n = all->bundles.n;
    if (!message_side_of(all->model, rank, i, &side))
      continue;
    add_message(f, first,
                (struct bundle){.rank = rank,
                                .comm = comm,
                                .group = call->group,
                                .first = i,
                                .previous = here->newest,
                                .before = here->collectives,
                                .exchange = INDEX_NONE,
                                .dtype = call->dtype,
                                .lone = call->group == 0},
                side);
    if (all->bundles.n == n)
      continue;
    if (here->newest != INDEX_NONE)
      all->bundles.at[here->newest].more = true;
    here->newest = n;
  }
}

static void list_bundles(struct finding *f) {
  const struct model *model = f->all->model;
  u32 most = MOST_OF(u32, internal_of(model)->events, model->n_ranks, one, one->n_comms);
  SCOPED struct called *called = memory_array(size_sum(most, 1), sizeof(*called));
  for (u32 r = 0; r < model->n_ranks; r++)
    list_bundles_of(f, r, called);
}

static void match_sides(void *user, const struct message_side *at, u32 n_sends, u32 n) {
  struct finding *f = user;
  struct exchanges *all = f->all;
  bool own = at->source == at->target;
  for (u32 i = 0; i < n; i++) {
    struct bundle *bundle = &all->bundles.at[at[i].bundle];
    bool another = i == 0 || at[i - 1].bundle != at[i].bundle;
    bundle->targets += another && i < n_sends && !own;
    bundle->sources += another && i >= n_sends && !own;
  }
  for (u32 i = 0; i < n_sends && n_sends + i < n; i++)
    sets_join(f->set, at[i].bundle, at[n_sends + i].bundle);
}

static bool is_over(const struct model *model, const struct bundle *bundle) {
  const struct rank_events *events = model_events(model, bundle->rank);
  u32 run = events->calls.at[bundle->first].run;
  return bundle->more || (run != INDEX_NONE && events->runs.at[run].end != NS_UNKNOWN);
}

static void add_to_exchange(struct finding *f, u32 number) {
  struct exchanges *all = f->all;
  struct bundle *bundle = &all->bundles.at[number];
  u32 of = set_of(f->set, number);
  if (all->bundles.at[of].exchange == INDEX_NONE) {
    all->bundles.at[of].exchange = all->list.n;
    VECTOR_PUSH(&all->list, ((struct exchange){.comm = bundle->comm,
                                               .source = INDEX_NONE,
                                               .target = INDEX_NONE,
                                               .last_rank = INDEX_NONE}));
  }
  bundle->exchange = all->bundles.at[of].exchange;
  struct exchange *exchange = &all->list.at[bundle->exchange];
  u32 others = all->model->comms[bundle->comm].size - 1;
  exchange->members++;
  exchange->keeps |= bundle->keeps;
  exchange->sparse |= bundle->targets != others || bundle->sources != others;
  exchange->refused |= bundle->lone || exchange->last_rank == bundle->rank;
  exchange->unsettled |= !is_over(all->model, bundle);
  exchange->last_rank = bundle->rank;
}

static void note_end(u32 *one, bool *several, u32 rank) {
  *several |= *one != INDEX_NONE && *one != rank;
  *one = rank;
}

/* Who sends and receives in each exchange, and whose part is not there. */
static void note_sides(void *user, const struct message_side *at, u32 n_sends, u32 n) {
  struct finding *f = user;
  struct exchanges *all = f->all;
  u32 n_receives = n - n_sends, both = MIN(n_sends, n_receives);
  const struct comm *comm = &all->model->comms[at->comm];
  for (u32 i = 0; i < n; i++) {
    u32 number = all->bundles.at[at[i].bundle].exchange;
    struct exchange *exchange = &all->list.at[number];
    if (at->source != at->target) {
      note_end(&exchange->source, &exchange->sources, at->source);
      note_end(&exchange->target, &exchange->targets, at->target);
    }
    bool send = i < n_sends;
    if ((send ? i : i - n_sends) < both)
      continue;
    u32 other = send ? at->target : at->source;
    exchange->blames |= other < comm->size && comm->members[other] != INDEX_NONE;
    VECTOR_PUSH(&f->absent, ((struct absent){number, other}));
  }
}

static void count_absent(struct finding *f) {
  SORT(f->absent.at, f->absent.n, by_absent);
  for (u32 i = 0; i < f->absent.n; i++)
    if (i == 0 || by_absent(&f->absent.at[i - 1], &f->absent.at[i]))
      f->all->list.at[f->absent.at[i].exchange].absent++;
}

/* One that does not have all ranks of the communicator must be known to be over: else nobody could
 * say whether the others have nothing to exchange or have not come. */
static bool is_all_to_all(const struct model *model, const struct exchange *exchange) {
  u32 size = model->comms[exchange->comm].size, named = exchange->members + exchange->absent;
  bool own = exchange->source == INDEX_NONE && exchange->absent == 0;
  bool full = !exchange->sparse && size >= LEAST_WITHOUT_OWN;
  bool several = exchange->keeps && exchange->sources && exchange->targets;
  bool all_named = named == size, over = !exchange->blames && !exchange->unsettled;
  return !exchange->refused && named <= size && (own || full || several) && (all_named || over);
}

/* The order of exchanges on a communicator is that in which each rank called them. */
static void put_in_order(struct exchanges *all) {
  bool changed = true;
  for (u32 round = 0; changed && round < ROUNDS; round++) {
    changed = false;
    FOR_EACH_CHANGED(all->bundles.at, all->bundles.n, bundle) {
      struct exchange *exchange =
          bundle->exchange == INDEX_NONE ? NULL : &all->list.at[bundle->exchange];
      u64 place = (u64)bundle->before << 32;
      u64 after = bundle->previous == INDEX_NONE ? 0 : all->bundles.at[bundle->previous].place + 1;
      place = MAX(after, place);
      changed |= exchange && place > exchange->place;
      if (exchange && place > exchange->place)
        exchange->place = place;
      bundle->place = exchange ? exchange->place : place;
    }
  }
}

void find_exchanges(struct exchanges *all, unsigned threads) {
  struct model *model = all->model;
  struct finding f = {.all = all, .candidate = memory_zeroed(size_sum(model->n_comms, 1), 1)};
  parallel_for(model->n_ranks, threads, look_for_candidates, &f);
  if (model->n_comms && memchr(f.candidate, 1, model->n_comms))
    list_bundles(&f);
  f.set = memory_array(size_sum(all->bundles.n, 1), sizeof(*f.set));
  sets_begin(f.set, all->bundles.n);
  message_sides_sort(&f.sides);
  message_sides_visit(&f.sides, match_sides, &f);
  for (u32 i = 0; i < all->bundles.n; i++)
    add_to_exchange(&f, i);
  message_sides_visit(&f.sides, note_sides, &f);
  count_absent(&f);
  FOR_EACH_CHANGED(all->list.at, all->list.n, one)
    one->refused = !is_all_to_all(model, one);
  FOR_EACH_CHANGED(all->bundles.at, all->bundles.n, bundle)
    if (all->list.at[bundle->exchange].refused)
      bundle->exchange = INDEX_NONE;
  put_in_order(all);
  FREE_EACH(&f, candidate, sides.at, absent.at, set);
}
