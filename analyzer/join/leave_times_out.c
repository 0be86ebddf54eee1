/* SPDX-License-Identifier: MIT */
#include "join/leave_times_out.h"

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "join/find_steps.h"
#include "kernels/communication.h"

#define LONG_STEP 1.5 /* times the median */
enum { MOST_LONG_STEPS = 8 };

/* Of two neighbours chance takes one, again and again until one block is left: so blocks follow no
 * period of the job. */
static u32 block_of(u32 cell, u32 level) {
  for (; level > 0; level--)
    cell = 2 * cell + (hash_number(level, cell) >> 16 & 1);
  return cell;
}

void choose_timed_steps(u32 n, u32 most, u8 *times) {
  u32 blocks = (n + STEPS_IN_A_BLOCK - 1) / STEPS_IN_A_BLOCK, level = 0;
  u32 cells =
      most / STEPS_IN_A_BLOCK > 1 ? most / STEPS_IN_A_BLOCK - 1 : 1; /* and the last steps */
  while ((blocks - 1) >> level >= cells)
    level++;
  memset(times, n > most ? TIMES_LEFT_OUT : TIMES_KEPT, n);
  for (u32 cell = 0; n > most && cell <= (blocks - 1) >> level; cell++)
    for (u32 i = 0, first = block_of(cell, level) * STEPS_IN_A_BLOCK; i < STEPS_IN_A_BLOCK; i++)
      if (first + i < n)
        times[first + i] = TIMES_KEPT;
  for (u32 step = n > STEPS_IN_A_BLOCK ? n - STEPS_IN_A_BLOCK : 0; step < n; step++)
    times[step] = TIMES_KEPT;
}

struct length {
  i64 ns;
  u32 step;
};

ORDER_BY(longest_first, struct length, DOWN(ns) UP(step))

/* Times of the longest steps tell what is different there, such as one rank that saves a
 * checkpoint. Ranks that wait for each other have the same ones. */
static void keep_long_steps(const struct rank_bounds *bounds, u32 n_ranks, u32 n, u8 *times) {
  SCOPED struct length *lengths = memory_zeroed(n, sizeof(*lengths));
  FOR_EACH(bounds, n_ranks, bound)
    for (u32 s = 0; s + 1 < bound->at.n; s++) {
      struct length *length = &lengths[bound->first + s];
      i64 ns = bound->at.at[s + 1] - bound->at.at[s];
      length->ns = MAX(ns, length->ns);
    }
  for (u32 step = 0; step < n; step++)
    lengths[step].step = step;
  SORT(lengths, n, longest_first);
  i64 median = lengths[n / 2].ns;
  for (u32 i = 0; i < n && i < MOST_LONG_STEPS; i++)
    if ((double)lengths[i].ns >= LONG_STEP * (double)median &&
        times[lengths[i].step] == TIMES_LEFT_OUT)
      times[lengths[i].step] = TIMES_OF_LONG_STEP;
}

struct leaving {
  struct rank_events *events;
  const struct rank_whole *whole;
  const struct rank_bounds *bounds;
  const u8 *times;
};

static bool can_be_left_out(const struct rank_events *events) {
  return events->runs.n && !events->kernels.n &&
         !ANY(events->calls.at, events->calls.n, call, op_is_message(call->op));
}

static u8 times_at(const struct leaving *l, i32 step) {
  return step < 0 ? TIMES_KEPT : l->times[step];
}

/* Who holds up a job is judged by what did not finish: that is kept. */
static bool was_done(const struct leaving *l, const struct rank_call *call) {
  return call->end != NS_UNKNOWN && call->run != INDEX_NONE &&
         l->whole->runs.at[call->run].end != NS_UNKNOWN;
}

/* The only communicator of the rank in which ranks wait for each other; INDEX_NONE. */
static u32 only_comm(const struct rank_whole *whole) {
  u32 comm = INDEX_NONE;
  FOR_EACH(whole->calls.at, whole->calls.n, call) {
    if (!op_is_barrier_like(call->op) || call->comm == comm)
      continue;
    if (comm != INDEX_NONE)
      return INDEX_NONE;
    comm = call->comm;
  }
  return comm;
}

/* Who is late shows at the first collective of a step: its times are kept in every step, where that
 * is enough to tell. With several communicators it is not: what a rank waited for in another. */
static bool is_first_of_step(const struct rank_call *call, u32 comm, i32 step, i32 *last_step) {
  bool first = call->comm == comm && op_is_barrier_like(call->op) && step != *last_step;
  *last_step = first ? step : *last_step;
  return first;
}

static void add_calls(struct leaving *l, bool *has_run) {
  u32 comm = only_comm(l->whole);
  i32 last_step = -1;
  FOR_EACH(l->whole->calls.at, l->whole->calls.n, from) {
    struct rank_call call = *from;
    i32 step = bounds_step_at(l->bounds, call.start);
    call.times = times_at(l, step);
    bool first = comm != INDEX_NONE && is_first_of_step(&call, comm, step, &last_step);
    if (call.times == TIMES_LEFT_OUT && was_done(l, from) && !first) {
      call.start = call.end = call.launched = l->bounds->at.at[(u32)step - l->bounds->first];
      call.run = INDEX_NONE;
    } else if (call.times == TIMES_LEFT_OUT) {
      call.times = TIMES_KEPT;
    }
    if (call.run != INDEX_NONE)
      has_run[call.run] = true;
    VECTOR_PUSH(&l->events->calls, call);
  }
}

/* Those of calls that keep their times. */
static void add_runs(struct leaving *l, const bool *has_run) {
  SCOPED u32 *now = memory_array(size_sum(l->whole->runs.n, 1), sizeof(*now));
  for (u32 i = 0; i < l->whole->runs.n; i++) {
    now[i] = l->events->runs.n;
    if (has_run[i] || l->whole->runs.at[i].first_call == INDEX_NONE)
      VECTOR_PUSH(&l->events->runs, l->whole->runs.at[i]);
  }
  FOR_EACH_CHANGED(l->events->calls.at, l->events->calls.n, call)
    if (call->run != INDEX_NONE)
      call->run = now[call->run];
}

/* Whether what begins then, for that call, keeps its times. */
static bool stays(const struct leaving *l, u32 call, i64 start) {
  u8 times = call == INDEX_NONE ? times_at(l, bounds_step_at(l->bounds, start))
                                : l->events->calls.at[call].times;
  return times != TIMES_LEFT_OUT;
}

static void leave_out(struct rank_events *events, struct rank_bounds *bounds, const u8 *times) {
  struct rank_whole *whole = memory_zeroed(1, sizeof(*whole));
  struct leaving l = {.events = events, .whole = whole, .bounds = bounds, .times = times};
  SCOPED bool *has_run = memory_zeroed(size_sum(events->runs.n, 1), sizeof(*has_run));
  bounds_on_gpu(events, bounds);
#define L(list, element)                                                                           \
  whole->list.at = events->list.at;                                                                \
  whole->list.n = events->list.n;                                                                  \
  events->list.at = NULL;                                                                          \
  events->list.n = events->list.room = 0;
  RANK_WHOLE_LISTS(L)
#undef L
  add_calls(&l, has_run);
  add_runs(&l, has_run);
  FOR_EACH(whole->waits.at, whole->waits.n, wait)
    if (stays(&l, wait->call, wait->start))
      VECTOR_PUSH(&events->waits, *wait);
  FOR_EACH(whole->insides.at, whole->insides.n, inside)
    if (stays(&l, inside->call, inside->start))
      VECTOR_PUSH(&events->insides, *inside);
  for (u32 i = 0; i < bounds->at.n; i++) {
    i64 gpu = bounds->gpu.at[i];
    bool is_step = i + 1 < bounds->at.n;
    struct rank_step_bound bound = {gpu == NS_UNKNOWN ? NS_UNKNOWN : gpu - bounds->at.at[i],
                                    is_step ? times[bounds->first + i] : TIMES_KEPT};
    VECTOR_PUSH(&events->step_bounds, bound);
  }
  events->whole = whole;
}

void leave_times_out(struct model *model, u32 most) {
  struct rank_bounds *bounds = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(*bounds));
  double confidence;
  bool named = most && bounds_by_names(model, bounds, &confidence);
  u32 n = named ? bounds_steps(bounds, model->n_ranks) : 0;
  if (n > most) {
    SCOPED u8 *times = memory_array(n, sizeof(*times));
    choose_timed_steps(n, most, times);
    keep_long_steps(bounds, model->n_ranks, n, times);
    for (u32 r = 0; r < model->n_ranks; r++)
      if (bounds[r].at.n > 1 && can_be_left_out(model_events(model, r)))
        leave_out(model_events(model, r), &bounds[r], times);
  }
  bounds_release(bounds, model->n_ranks);
}
