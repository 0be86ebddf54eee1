/* SPDX-License-Identifier: MIT */
#include "model/rank_facts.h"

#include <stddef.h>

#include "model/rank_lists.def"
#include "model/stalls.h"

#define M(member) CARRY(c, &of->member);
#define S(what, type, MEMBERS)                                                                     \
  static void carry_##what(struct carrier *c, struct type *of) {                                   \
    MEMBERS(M)                                                                                     \
  }
RANK_STRUCTS(S)
#undef S
#undef M

static void carry_rank(struct carrier *c, struct rank *rank) {
  u32 clock = rank->gpu_clock;
  carry_process(c, rank);
  FOR_EACH_CHANGED(rank->info, LENGTH_OF(rank->info), each)
    CARRY(c, each);
  FOR_EACH_CHANGED(rank->lost, LENGTH_OF(rank->lost), one)
    CARRY(c, one);
  CARRY(c, &clock);
  rank->gpu_clock = clock;
  carry_ending(c, &rank->ending);
  carry_scheduling(c, &rank->scheduling);
}

void carry_call_frame(struct carrier *c, struct call_frame *frame) {
  carry_frame(c, frame);
}

static void carry_thread_and_stack(struct carrier *c, struct stalled_thread *thread) {
  carry_thread(c, thread);
  thread->n_frames = carry_count(c, thread->n_frames, 8);
  CARRY_ARRAY(c, thread->frames, thread->n_frames);
  struct call_frame *frames =
      c->reads ? arena_array(c->arena, thread->n_frames, sizeof(*frames)) : NULL;
  for (u32 i = 0; i < thread->n_frames; i++) {
    struct call_frame frame = c->reads ? (struct call_frame){0} : *thread->frames[i];
    carry_frame(c, &frame);
    if (c->reads) {
      frames[i] = frame;
      thread->frames[i] = &frames[i];
    }
  }
}

static void carry_whole_stall(struct carrier *c, struct rank_stall *stall) {
  carry_stall(c, stall);
  CARRY_LIST(c, stall->threads, stall->n_threads, 12, carry_thread_and_stack);
  CARRY_LIST(c, stall->peers, stall->n_peers, 5, carry_peer);
  CARRY_LIST(c, stall->comms, stall->n_comms, 4, carry_stalled_comm);
}

static void carry_comms(struct carrier *c, struct rank_events *events) {
  struct comm_definition *comms = (struct comm_definition *)events->comms;
  CARRY_LIST(c, comms, events->n_comms, 8, carry_comm);
  events->comms = comms;
}

#define N(member) COLUMN(COLUMN_OF, member),
#define S(member, other) COLUMN_LASTING(COLUMN_OF, member, other),
#define A(member, other) COLUMN_NEAR(COLUMN_OF, member, other),
#define T(member) COLUMN_OF_TEXT(COLUMN_OF, member),
#define B(member) COLUMN_AS_BYTES(COLUMN_OF, member),

#define L(list, element, FIELDS)                                                                   \
  static void carry_##list(struct carrier *c, struct rank_events *events) {                        \
    typedef struct element COLUMN_OF;                                                              \
    static const struct column columns[] = {FIELDS(N, S, A, T, B)};                                \
    u32 n = carry_count(c, events->list.n, LENGTH_OF(columns));                                    \
    if (c->reads && n) {                                                                           \
      events->list.at = memory_zeroed(n, sizeof(*events->list.at));                                \
      events->list.n = events->list.room = n;                                                      \
    }                                                                                              \
    carry_columns(c, events->list.at, n, sizeof(*events->list.at), columns, LENGTH_OF(columns));   \
  }
RANK_LISTS(L)
#undef L
#undef N
#undef S
#undef A
#undef T
#undef B

static bool leads(u32 number, u32 n) {
  return number < n || number == INDEX_NONE;
}

/* Numbers of other elements lead to elements, or nowhere. */
static void check_references(struct carrier *c, const struct rank_events *events) {
  u32 comms = events->n_comms, calls = events->calls.n, runs = events->runs.n;
  c->bad |= !(ALL(events->calls.at, calls, one, leads(one->comm, comms) && leads(one->run, runs)) &&
              ALL(events->runs.at, runs, one, leads(one->first_call, calls)) &&
              ALL(events->kernels.at, events->kernels.n, one, leads(one->comm, comms)) &&
              ALL(events->insides.at, events->insides.n, one, leads(one->call, calls)) &&
              ALL(events->waits.at, events->waits.n, one, leads(one->call, calls)) &&
              ALL(events->step_bounds.at, events->step_bounds.n, one, one->behind != INT64_MAX));
}

void carry_rank_facts(struct carrier *c, struct rank *rank, struct rank_events *events) {
  carry_rank(c, rank);
  CARRY_LIST(c, rank->stalls, rank->n_stalls, 20, carry_whole_stall);
  carry_comms(c, events);
  carry_totals(c, events);
#define L(list, element, FIELDS) carry_##list(c, events);
  RANK_LISTS(L)
#undef L
  if (c->reads)
    check_references(c, events);
}
