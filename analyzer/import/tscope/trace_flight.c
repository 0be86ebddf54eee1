/* SPDX-License-Identifier: MIT */
#include "import/tscope/trace_source.h"

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/trace_words.h"
#include "format/dtypes.h"
#include "kernels/communication.h"
#include "model/building.h"
#include "model/stalls.h"

/* For each rank, as many calls as PyTorch's flight recorder keeps; fewer if there are very many
 * ranks. */
#define MOST_KEPT 2000u
#define LEAST_KEPT 64u
#define MOST_KEPT_IN_ALL (2u << 20)

#define SECOND_NS (1000 * 1000 * 1000ll)

/* A call counts as held up if it has waited longer than that, and than twice the longest wait that
 * ended. */
#define HELD_UP_NS (2 * SECOND_NS)
#define HELD_UP_RATIO 2

struct flight_making {
  const struct model *model;
  struct arena *arena;
  struct flight_record *flight;
  u32 *rank_of; /* [model.n_ranks] index into flight.ranks */
  i64 *alive;   /* [model.n_ranks] last sign of life, on the model's axis */
  i64 end;      /* of all ranks */
  bool runs;    /* the job does, as far as a process of it is known to */
  i64 longest;  /* that a call took which ended */
  u32 keep;     /* calls of each rank */
  struct {
    u64 count;
    const char *text;
  } sizes[64]; /* texts of sizes, by what was called last */
};

static bool is_needed(const struct model *model) {
  return model->n_ranks &&
         (model_lacks_ranks(model) || ANY(model->ranks, model->n_ranks, one, !one->closed) ||
          ANY(model->collectives, model->n_collectives, one, one->mismatched));
}

/* Where a rank was outside communication: in an open phase, else after the last phase that ended.
 */
static const char *phase_of(struct flight_making *m, u32 rank) {
  const struct rank_events *events = model_events(m->model, rank);
  const struct rank_phase *open = NULL, *last = NULL;
  FOR_EACH(events->phases.at, events->phases.n, phase) {
    if (!phase_word(phase->kind))
      continue;
    if (phase->end == NS_UNKNOWN)
      open = phase;
    else if (!last || phase->end > last->end)
      last = phase;
  }
  if (open)
    return arena_printf(m->arena, "It was last seen in a phase: %s.", phase_word(open->kind));
  return last ? arena_printf(m->arena, "The last phase it ended was %s.", phase_word(last->kind))
              : NULL;
}

/* While a job runs, as in tscope top. The ranks of one that is over were ended one after the other,
 * after a long run over many seconds; and in a trace without signs of life only anchors show it. */
static i64 silence_limit(const struct flight_making *m, u32 rank) {
  const struct rank *of = &m->model->ranks[rank];
  if (m->runs && of->ending.alive != NS_UNKNOWN)
    return of->may_run ? SILENT_ELSEWHERE_NS : SILENT_NS;
  i64 apart = m->alive[rank] > TSCOPE_FIRST_ANCHORS_S * SECOND_NS ? TSCOPE_LATER_ANCHORS_S : 1;
  return 5 * apart * SECOND_NS / 2;
}

/* Its signs of life stopped long before those of others: it died, or was stopped. */
static bool is_silent(const struct flight_making *m, u32 rank) {
  return !m->model->ranks[rank].closed && m->end - m->alive[rank] >= silence_limit(m, rank);
}

static const char *describe_place(struct flight_making *m, u32 rank) {
  const char *phase = phase_of(m, rank);
  if (m->alive[rank] == NS_UNKNOWN || !is_silent(m, rank))
    return phase;
  i64 silence = m->end - m->alive[rank];
  return arena_printf(m->arena, "%s%sIts last sign of life is %s before that of the others.",
                      text_or_empty(phase), phase ? " " : "", duration_s(ns_to_s(silence)).text);
}

static void find_alive_times(struct flight_making *m) {
  m->end = INT64_MIN;
  for (u32 r = 0; r < m->model->n_ranks; r++) {
    i64 anchor = model_events(m->model, r)->last_anchor;
    i64 at = anchor ? clock_to_axis(model_clock(m->model, r), anchor) : NS_UNKNOWN;
    at = MAX(rank_alive_until(&m->model->ranks[r]), at);
    const struct rank_stall *pause = rank_last_pause(&m->model->ranks[r], at);
    m->alive[r] = pause ? pause->begin : at;
    m->end = MAX(m->alive[r], m->end);
  }
}

static void add_rank(struct flight_making *m, u32 global) {
  m->flight->ranks[m->flight->n_ranks++] =
      (struct flight_rank){.rank = global, .first_created = NS_UNKNOWN, .last_seen = NS_UNKNOWN};
}

/* Ranks with a trace, and ranks of the world without one. */
static void make_ranks(struct flight_making *m) {
  const struct model *model = m->model;
  u32 world = model->world_size, next = 0;
  m->flight->ranks =
      arena_array(m->arena, size_sum(model->n_ranks, world), sizeof(struct flight_rank));
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank *rank = &model->ranks[r];
    for (; next < rank->rank && next < world; next++)
      add_rank(m, next);
    next = rank->rank + 1;
    m->rank_of[r] = m->flight->n_ranks;
    add_rank(m, rank->rank);
    struct flight_rank *to = &m->flight->ranks[m->rank_of[r]];
    to->host = rank->host;
    to->path = rank->path;
    to->seen = true;
    to->ended = rank->closed;
    to->why = rank->damage;
    to->last_seen = m->alive[r];
    to->where = describe_place(m, r);
    to->silent = is_silent(m, r);
    to->kept_all = true;
    for (u32 i = 0; i < TSCOPE_LOSS_REASONS; i++)
      to->kept_all &= i == TSCOPE_LOSS_RING || i == TSCOPE_LOSS_GPU || !rank->lost[i];
  }
  for (; next < world; next++)
    add_rank(m, next);
}

static u32 flight_rank(const struct flight_making *m, u32 global) {
  return SORTED_INDEX(m->flight->n_ranks, i, m->flight->ranks[i].rank, global);
}

/* A member without a trace is known only by its position: in a communicator of the whole world that
 * is its rank, and if only one rank is missing it is that one. */
static u32 missing_member(const struct flight_making *m, const struct comm *comm, u32 place) {
  u32 only = INDEX_NONE, n = 0;
  if (comm->size == m->model->world_size)
    return flight_rank(m, place);
  for (u32 r = 0; r < m->flight->n_ranks; r++)
    if (!m->flight->ranks[r].seen) {
      only = r;
      n++;
    }
  return n == 1 ? only : INDEX_NONE;
}

static void make_groups(struct flight_making *m) {
  const struct model *model = m->model;
  m->flight->groups = arena_array(m->arena, model->n_comms, sizeof(struct flight_group));
  m->flight->n_groups = model->n_comms;
  for (u32 c = 0; c < model->n_comms; c++) {
    const struct comm *comm = &model->comms[c];
    struct flight_group *group = &m->flight->groups[c];
    group->name = comm_label(comm->name, comm->identity, comm->size, m->arena);
    group->members = arena_array(m->arena, comm->size, sizeof(u32));
    group->members_known = comm->size != 0;
    for (u32 i = 0; i < comm->size; i++) {
      u32 rank = comm->members[i] == INDEX_NONE ? missing_member(m, comm, i)
                                                : m->rank_of[comm->members[i]];
      if (rank == INDEX_NONE)
        group->members_known = false;
      else
        group->members[group->n_members++] = rank;
    }
  }
}

/* How far a call got. Where it ran is known once it is done there; that it was not seen to run
 * means little if nothing was watched. */
static u8 state_of(const struct flight_making *m, u32 rank, const struct rank_call *call,
                   bool waited_for, bool wait_over) {
  const struct rank_events *events = model_events(m->model, rank);
  if (call->times == TIMES_LEFT_OUT)
    return FLIGHT_COMPLETED;
  if (call->run != INDEX_NONE)
    return events->runs.at[call->run].end == NS_UNKNOWN ? FLIGHT_STARTED : FLIGHT_COMPLETED;
  if (call->end == NS_UNKNOWN || waited_for)
    return FLIGHT_SCHEDULED;
  if (wait_over)
    return FLIGHT_COMPLETED;
  bool runs_are_seen = m->model->ranks[rank].collective_runs > 0;
  bool in_time = m->end - call->start >= HELD_UP_NS;
  return runs_are_seen && in_time && !is_silent(m, rank) ? FLIGHT_SCHEDULED : FLIGHT_CALLED;
}

static const char *size_text(struct flight_making *m, u64 count) {
  u32 place = (u32)(count * 0x9e3779b97f4a7c15u >> 58);
  if (!m->sizes[place].text || m->sizes[place].count != count) {
    m->sizes[place].count = count;
    m->sizes[place].text =
        arena_printf(m->arena, "%llu element%s", (unsigned long long)count, count == 1 ? "" : "s");
  }
  return m->sizes[place].text;
}

static void add_call(struct flight_making *m, u32 rank, u32 index, bool waited_for,
                     bool wait_over) {
  const struct rank_events *events = model_events(m->model, rank);
  const struct rank_call *call = &events->calls.at[index];
  struct flight_rank *to = &m->flight->ranks[m->rank_of[rank]];
  u32 comm = model_comm_of(m->model, rank, call->comm);
  if (comm == INDEX_NONE || call->failed)
    return;
  bool message = op_is_message(call->op);
  struct flight_call out = {.rank = m->rank_of[rank],
                            .group = comm,
                            .seq = call->seq,
                            .order = index,
                            .created = call->start,
                            .op = op_name(call->op),
                            .like = comm_op_like(call->op),
                            .in_type = tscope_dtype_name(call->dtype),
                            .in_count = call->count,
                            .peer = INDEX_NONE,
                            .root = INDEX_NONE,
                            .thread = call->thread,
                            .state = state_of(m, rank, call, waited_for, wait_over),
                            .message = message,
                            .sends = call->op == TSCOPE_OP_SEND};
  if (call->peer >= 0 && (u32)call->peer < m->model->comms[comm].size) {
    u32 other = m->model->comms[comm].members[call->peer];
    *(message ? &out.peer : &out.root) =
        other == INDEX_NONE ? missing_member(m, &m->model->comms[comm], (u32)call->peer)
                            : m->rank_of[other];
  }
  out.in = size_text(m, call->count);
  if (message && !out.sends) {
    out.out = out.in;
    out.out_type = out.in_type;
    out.in = out.in_type = NULL;
  }
  if (to->n_calls++ == 0)
    to->first_created = call->start;
  m->flight->calls[m->flight->n_calls++] = out;
}

static void update_longest(struct flight_making *m, i64 start, i64 end) {
  if (start != NS_UNKNOWN && end != NS_UNKNOWN && end - start > m->longest)
    m->longest = end - start;
}

/* Calls of a communicator end in order, so if one is done, those before it are too. */
static void complete_earlier(struct flight_making *m, u32 rank, i64 *newest) {
  const struct flight_rank *to = &m->flight->ranks[m->rank_of[rank]];
  FILL(newest, m->model->n_comms, SEQ_UNKNOWN);
  for (u32 i = to->n_calls; i-- > 0;) {
    struct flight_call *call = &m->flight->calls[to->first_call + i];
    if (call->message)
      continue;
    if (call->state == FLIGHT_COMPLETED && call->seq > newest[call->group])
      newest[call->group] = call->seq;
    else if (call->seq < newest[call->group])
      call->state = FLIGHT_COMPLETED;
  }
}

/* If nothing shows when calls end, a rank that lives but has done nothing for long is in its last
 * call. */
static void assume_last_call_pending(struct flight_making *m, u32 rank) {
  const struct flight_rank *to = &m->flight->ranks[m->rank_of[rank]];
  struct flight_call *last =
      to->n_calls ? &m->flight->calls[to->first_call + to->n_calls - 1] : NULL;
  i64 end = m->model->ranks[rank].end;
  if (last && last->state == FLIGHT_CALLED && !to->ended && end != NS_UNKNOWN &&
      m->alive[rank] - end >= HELD_UP_NS && end - last->created < HELD_UP_NS)
    last->state = FLIGHT_SCHEDULED;
}

static void add_calls_of_rank(struct flight_making *m, u32 rank, bool *waited_for, bool *wait_over,
                              i64 *newest) {
  const struct rank_events *events = model_events(m->model, rank);
  struct flight_rank *to = &m->flight->ranks[m->rank_of[rank]];
  u32 first = events->calls.n > m->keep ? events->calls.n - m->keep : 0;
  to->first_call = m->flight->n_calls;
  to->kept_all &= first == 0;
  memset(waited_for, 0, m->keep * sizeof(*waited_for));
  memset(wait_over, 0, m->keep * sizeof(*wait_over));
  FOR_EACH(events->waits.at, events->waits.n, wait) {
    update_longest(m, wait->start, wait->end);
    if (wait->call == INDEX_NONE || wait->call < first || wait->call >= events->calls.n)
      continue;
    waited_for[wait->call - first] |= wait->end == NS_UNKNOWN;
    wait_over[wait->call - first] |= wait->end != NS_UNKNOWN;
  }
  FOR_EACH(events->runs.at, events->runs.n, run)
    update_longest(m, run->start, run->end);
  for (u32 i = first; i < events->calls.n; i++) {
    update_longest(m, events->calls.at[i].start, events->calls.at[i].end);
    add_call(m, rank, i, waited_for[i - first], wait_over[i - first]);
  }
  complete_earlier(m, rank, newest);
  assume_last_call_pending(m, rank);
}

static void make_calls(struct flight_making *m) {
  u64 total = 0;
  for (u32 r = 0; r < m->model->n_ranks; r++) {
    u32 n = model_events(m->model, r)->calls.n;
    total += MIN(n, m->keep);
  }
  m->flight->calls = arena_array(m->arena, total, sizeof(struct flight_call));
  SCOPED bool *waits = memory_array(size_product(2, m->keep), sizeof(*waits));
  SCOPED i64 *newest = memory_array(size_sum(m->model->n_comms, 1), sizeof(*newest));
  if (total >= INDEX_NONE)
    memory_is_short(total, sizeof(struct flight_call));
  for (u32 r = 0; r < m->model->n_ranks; r++)
    add_calls_of_rank(m, r, waits, waits + m->keep, newest);
}

/* What a rank was in when its file was copied says nothing, if others' files are newer. */
static void ignore_calls_of_older_files(struct flight_making *m) {
  const bool *older = model_find_older_files(m->model, m->arena);
  for (u32 r = 0; r < m->model->n_ranks; r++) {
    struct flight_rank *rank = &m->flight->ranks[m->rank_of[r]];
    if (!older[r])
      continue;
    rank->silent = false;
    rank->why = "its file is older than those of other ranks";
    for (u32 i = rank->first_call; i < rank->first_call + rank->n_calls; i++)
      if (m->flight->calls[i].state != FLIGHT_COMPLETED)
        m->flight->calls[i].state = FLIGHT_CALLED;
  }
}

/* A run that still goes on, or that was killed from outside, also has calls in flight. They are
 * held up only if one of them has lasted longer than any call that ended. */
static void ignore_recent_calls(struct flight_making *m) {
  struct flight_record *flight = m->flight;
  i64 oldest = m->end;
  FOR_EACH(flight->calls, flight->n_calls, call) {
    bool pending = flight_call_is_pending(call);
    /* for a rank that died, calls are as old as its last sign of life */
    if (pending && call->created < oldest)
      oldest = call->created;
  }
  i64 age = m->end - oldest;
  if (age >= HELD_UP_NS && age >= HELD_UP_RATIO * m->longest)
    return;
  FOR_EACH_CHANGED(flight->calls, flight->n_calls, each)
    if (each->state != FLIGHT_COMPLETED)
      each->state = FLIGHT_CALLED;
}

const struct flight_record *trace_flight_record(const struct model *model, struct arena *arena) {
  if (!is_needed(model))
    return NULL;
  struct flight_record *flight = arena_alloc(arena, sizeof(*flight));
  struct flight_making m = {
      .model = model,
      .arena = arena,
      .flight = flight,
      .runs = ANY(model->ranks, model->n_ranks, one, one->running || one->may_run),
      .rank_of = arena_array(arena, model->n_ranks, sizeof(u32)),
      .alive = arena_array(arena, model->n_ranks, sizeof(i64))};
  u32 share = MOST_KEPT_IN_ALL / model->n_ranks;
  m.keep = CLAMP(share, LEAST_KEPT, MOST_KEPT);
  find_alive_times(&m);
  make_ranks(&m);
  make_groups(&m);
  make_calls(&m);
  trace_flight_nccl(model, m.rank_of, arena, flight);
  ignore_calls_of_older_files(&m);
  ignore_recent_calls(&m);
  flight->source = "traces of a run that did not end normally";
  flight->end = m.end;
  return flight;
}
