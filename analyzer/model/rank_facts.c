/* SPDX-License-Identifier: MIT */
#include "model/rank_facts.h"

#include <stddef.h>

#include "model/rank_lists.def"
#include "model/stalls.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

/* --- the rank's process --- */

static void carry_ending(struct carrier *c, struct rank_end *end) {
  CARRY(c, &end->known);
  CARRY(c, &end->kind);
  CARRY(c, &end->failed_whose);
  CARRY(c, &end->status);
  CARRY(c, &end->signal);
  CARRY(c, &end->end);
  CARRY(c, &end->alive);
  CARRY(c, &end->reaped);
  CARRY(c, &end->out_of_memory_kills);
  CARRY(c, &end->exception);
  CARRY(c, &end->exception_at);
  CARRY(c, &end->last_line);
  CARRY(c, &end->last_line_at);
  CARRY(c, &end->exception_file);
  CARRY(c, &end->exception_function);
  CARRY(c, &end->exception_line);
  CARRY(c, &end->failed);
  CARRY(c, &end->failed_result);
  CARRY(c, &end->failed_at);
}

static void carry_scheduling(struct carrier *c, struct rank_scheduling *scheduling) {
  CARRY(c, &scheduling->seconds);
  CARRY(c, &scheduling->cpu_s);
  CARRY(c, &scheduling->wait_s);
  CARRY(c, &scheduling->training_wait_s);
  CARRY(c, &scheduling->stolen_s);
  CARRY(c, &scheduling->threads);
  CARRY(c, &scheduling->cores);
  CARRY(c, &scheduling->quota);
}

static void carry_process(struct carrier *c, struct rank *rank) {
  CARRY(c, &rank->rank);
  CARRY(c, &rank->local_rank);
  CARRY(c, &rank->pid);
  CARRY(c, &rank->host);
  CARRY(c, &rank->path);
  for (size_t i = 0; i < COUNT_OF(rank->info); i++)
    CARRY(c, &rank->info[i]);
  CARRY(c, &rank->closed);
  CARRY(c, &rank->running);
  CARRY(c, &rank->last_moments_missing);
  carry_ending(c, &rank->ending);
  CARRY(c, &rank->damage);
  CARRY(c, &rank->records);
  for (size_t i = 0; i < COUNT_OF(rank->lost); i++)
    CARRY(c, &rank->lost[i]);
  CARRY(c, &rank->launches);
  CARRY(c, &rank->gpu_kernels);
  CARRY(c, &rank->collective_calls);
  CARRY(c, &rank->collective_runs);
  CARRY(c, &rank->replayed_runs);
  CARRY(c, &rank->replayed_known);
  u32 clock = rank->gpu_clock;
  CARRY(c, &clock);
  rank->gpu_clock = clock;
  CARRY(c, &rank->gpu_clock_reason);
  CARRY(c, &rank->gpu_dropped);
  CARRY(c, &rank->gpu_invalid);
  CARRY(c, &rank->gpu_event_error_ns);
  CARRY(c, &rank->gpu_overhead_ns);
  carry_scheduling(c, &rank->scheduling);
  CARRY(c, &rank->samples);
  CARRY(c, &rank->unread_samples);
  CARRY(c, &rank->cost_helper_cpu_ns);
  CARRY(c, &rank->cost_startup_ns);
  CARRY(c, &rank->cost_slow_path_ns);
  CARRY(c, &rank->cost_ns_per_record);
  CARRY(c, &rank->file_bytes);
}

/* --- where it stalled --- */

void carry_call_frame(struct carrier *c, struct call_frame *frame) {
  CARRY(c, &frame->file);
  CARRY(c, &frame->function);
  CARRY(c, &frame->line);
  CARRY(c, &frame->first_line);
  CARRY(c, &frame->others);
  CARRY(c, &frame->library);
  CARRY(c, &frame->native_own);
}

static void carry_thread(struct carrier *c, struct stalled_thread *thread) {
  CARRY(c, &thread->tid);
  CARRY(c, &thread->number);
  CARRY(c, &thread->state);
  CARRY(c, &thread->name);
  CARRY(c, &thread->wait);
  CARRY(c, &thread->call);
  CARRY(c, &thread->file);
  CARRY(c, &thread->main);
  CARRY(c, &thread->python);
  CARRY(c, &thread->holds_gil);
  CARRY(c, &thread->moved);
  CARRY(c, &thread->cut);
  thread->n_frames = carry_count(c, thread->n_frames, 7);
  CARRY_ARRAY(c, thread->frames, thread->n_frames);
  struct call_frame *frames =
      c->reads ? arena_array(c->arena, size_sum(thread->n_frames, 1), sizeof(*frames)) : NULL;
  for (u32 i = 0; i < thread->n_frames; i++) {
    struct call_frame frame = c->reads ? (struct call_frame){0} : *thread->frames[i];
    carry_call_frame(c, &frame);
    if (c->reads) {
      frames[i] = frame;
      thread->frames[i] = &frames[i];
    }
  }
}

static void carry_peer(struct carrier *c, struct stalled_peer *peer) {
  CARRY(c, &peer->pid);
  CARRY(c, &peer->state);
  CARRY(c, &peer->wait);
  CARRY(c, &peer->call);
  CARRY(c, &peer->file);
}

static void carry_stalled_comm(struct carrier *c, struct stalled_comm *comm) {
  CARRY(c, &comm->comm);
  CARRY(c, &comm->name);
  CARRY(c, &comm->result);
  CARRY(c, &comm->heard);
}

static void carry_stall(struct carrier *c, struct rank_stall *stall) {
  CARRY(c, &stall->what);
  CARRY(c, &stall->begin);
  CARRY(c, &stall->looked);
  CARRY(c, &stall->end);
  CARRY(c, &stall->limit_s);
  CARRY(c, &stall->step_s);
  CARRY(c, &stall->all_threads);
  CARRY(c, &stall->no_python);
  stall->n_threads = carry_count(c, stall->n_threads, 12);
  CARRY_ARRAY(c, stall->threads, stall->n_threads);
  for (u32 i = 0; i < stall->n_threads; i++)
    carry_thread(c, &stall->threads[i]);
  stall->n_peers = carry_count(c, stall->n_peers, 5);
  CARRY_ARRAY(c, stall->peers, stall->n_peers);
  for (u32 i = 0; i < stall->n_peers; i++)
    carry_peer(c, &stall->peers[i]);
  stall->n_comms = carry_count(c, stall->n_comms, 4);
  CARRY_ARRAY(c, stall->comms, stall->n_comms);
  for (u32 i = 0; i < stall->n_comms; i++)
    carry_stalled_comm(c, &stall->comms[i]);
}

static void carry_stalls(struct carrier *c, struct rank *rank) {
  rank->n_stalls = carry_count(c, rank->n_stalls, 20);
  CARRY_ARRAY(c, rank->stalls, rank->n_stalls);
  for (u32 i = 0; i < rank->n_stalls; i++)
    carry_stall(c, &rank->stalls[i]);
}

/* --- its events --- */

static void carry_comms(struct carrier *c, struct rank_events *events) {
  events->n_comms = carry_count(c, events->n_comms, 8);
  struct comm_definition *comms = (struct comm_definition *)events->comms;
  CARRY_ARRAY(c, comms, events->n_comms);
  for (u32 i = 0; i < events->n_comms; i++) {
    CARRY(c, &comms[i].identity);
    CARRY(c, &comms[i].parent);
    CARRY(c, &comms[i].comm);
    CARRY(c, &comms[i].rank);
    CARRY(c, &comms[i].size);
    CARRY(c, &comms[i].name);
    CARRY(c, &comms[i].backend);
    CARRY(c, &comms[i].library);
  }
  events->comms = comms;
}

#define N(member) COLUMN(COLUMN_OF, member),
#define A(member, other) COLUMN_NEAR(COLUMN_OF, member, other),
#define T(member) COLUMN_OF_TEXT(COLUMN_OF, member),
#define B(member) COLUMN_AS_BYTES(COLUMN_OF, member),

#define L(list, element, FIELDS)                                                                   \
  static void carry_##list(struct carrier *c, struct rank_events *events) {                        \
    typedef struct element COLUMN_OF;                                                              \
    static const struct column columns[] = {FIELDS(N, A, T, B)};                                   \
    u32 n = carry_count(c, events->list.n, COUNT_OF(columns));                                     \
    if (c->reads && n) {                                                                           \
      events->list.at = memory_zeroed(n, sizeof(*events->list.at));                                \
      events->list.n = events->list.room = n;                                                      \
    }                                                                                              \
    carry_columns(c, events->list.at, n, sizeof(*events->list.at), columns, COUNT_OF(columns));    \
  }
RANK_LISTS(L)
#undef L
#undef N
#undef A
#undef T
#undef B

static void carry_totals(struct carrier *c, struct rank_events *events) {
  CARRY(c, &events->realtime_minus_monotonic);
  CARRY(c, &events->anchor_error_ns);
  CARRY(c, &events->last_anchor);
  CARRY(c, &events->begin);
  CARRY(c, &events->end);
  CARRY(c, &events->failed.what);
  CARRY(c, &events->failed.time);
  CARRY(c, &events->failed.result);
  CARRY(c, &events->failed.whose);
  CARRY(c, &events->launches);
  CARRY(c, &events->gpu_kernels);
  CARRY(c, &events->named_ranges);
  CARRY(c, &events->cut_short);
  CARRY(c, &events->end_lost);
  CARRY(c, &events->unpaired_calls);
  CARRY(c, &events->unpaired_runs);
  CARRY(c, &events->idle_calls);
  CARRY(c, &events->replayed_runs);
  CARRY(c, &events->replayed_known);
  CARRY(c, &events->names_gpu_graphs);
  CARRY(c, &events->gpu_overhead_ns);
  CARRY(c, &events->gpu_event_error_ns);
  CARRY(c, &events->inside_error_ns);
}

/* Numbers of other elements lead to elements, or nowhere. */
static void check_references(struct carrier *c, const struct rank_events *events) {
  bool good = true;
  for (u32 i = 0; i < events->calls.n; i++) {
    u32 comm = events->calls.at[i].comm, run = events->calls.at[i].run;
    good &= (comm < events->n_comms || comm == INDEX_NONE) &&
            (run < events->runs.n || run == INDEX_NONE);
  }
  for (u32 i = 0; i < events->runs.n; i++)
    good &= events->runs.at[i].first_call < events->calls.n ||
            events->runs.at[i].first_call == INDEX_NONE;
  for (u32 i = 0; i < events->kernels.n; i++)
    good &=
        events->kernels.at[i].comm < events->n_comms || events->kernels.at[i].comm == INDEX_NONE;
  for (u32 i = 0; i < events->insides.n; i++)
    good &=
        events->insides.at[i].call < events->calls.n || events->insides.at[i].call == INDEX_NONE;
  for (u32 i = 0; i < events->waits.n; i++)
    good &= events->waits.at[i].call < events->calls.n || events->waits.at[i].call == INDEX_NONE;
  c->bad |= !good;
}

void carry_rank_facts(struct carrier *c, struct rank *rank, struct rank_events *events) {
  carry_process(c, rank);
  carry_stalls(c, rank);
  carry_comms(c, events);
  carry_totals(c, events);
#define L(list, element, FIELDS) carry_##list(c, events);
  RANK_LISTS(L)
#undef L
  if (c->reads)
    check_references(c, events);
}
