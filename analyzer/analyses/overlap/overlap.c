/* SPDX-License-Identifier: MIT
 *
 * Overlap of compute, communication and memcpys on each rank, by exact interval arithmetic:
 *
 *   step = compute + (comm \ compute) + (memcpy \ compute \ comm) + idle
 *
 * Exposed communication is what remains of the collectives outside compute. Where collectives run
 * at the same time (several streams), each instant belongs to the one that started first, so that
 * the parts add up to the union. Each part is split where its collective's transfer began: before
 * that the rank waited for others.
 */
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/gpu_gaps.h"
#include "analyses/queries.h"
#include "analyses/steps/series.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/intervals.h"
#include "kernels/communication.h"
#include "model/building.h"
#include "model/phase_times.h"

/* Exposed wait of one rank since its current step began, by communicator. */
struct waits {
  i64 all;
  i64 *by_comm;
  u32 *step_of_comm; /* step + 1 in which by_comm was last set */
  u32 step;          /* + 1 */
  /* the latest wait, part of which may still lie ahead of the next arrival */
  u32 last_comm;
  i64 last_begin, last_end;
};

struct sweep {
  struct analysis *a;
  const struct timeline *timeline;
  struct rank_summary *sum;
  struct arena scratch;
  struct window *windows;   /* ascending */
  struct step_parts *parts; /* [n_windows] */
  u32 n_windows, window;
  struct intervals compute, comm;
  u32 compute_cursor;
  struct waits waits;
  u32 *collectives, *phases; /* spans of these kinds, in order */
  u32 n_collectives, n_phases;
};

/* One pass over the spans: all others look at their own kind only. */
static void list_spans_by_kind(struct sweep *s) {
  const struct timeline *t = s->timeline;
  s->collectives =
      memory_array(size_sum(t->n_spans, 1), sizeof(u32)); /* little of it will be touched */
  s->phases = memory_array(size_sum(t->n_spans, 1), sizeof(u32));
  for (u32 i = 0; i < t->n_spans; i++) {
    if (t->spans[i].kind == SPAN_COLLECTIVE)
      s->collectives[s->n_collectives++] = i;
    else if (t->spans[i].kind == SPAN_PHASE)
      s->phases[s->n_phases++] = i;
  }
}

/* Without steps: the stretches of the run of which all GPU work is known. */
static void list_known_windows(struct sweep *s) {
  const struct timeline *t = s->timeline;
  struct intervals known;
  struct window run;
  if (!analysis_window(s->a, t->rank, s->a->first_step, &run))
    return;
  if (t->has_comm && analysis_untimed(s->a, t->rank, run.step)) {
    s->sum->steps_untimed++;
    return;
  }
  model_gpu_known(&s->a->model->ranks[t->rank], t->ring_begin, &s->scratch, &known);
  FOR_EACH(known.at, known.n, one) {
    i64 begin = MAX(one->start, run.begin);
    i64 end = MIN(one->end, run.end);
    if (begin < end)
      s->windows[s->n_windows++] = (struct window){begin, end, run.step};
  }
  s->sum->steps = s->n_windows > 0;
}

/* Steps whose kernels are not known would look idle; those in which collectives ran, nobody knows
 * when, would show too little communication. */
static void find_windows(struct sweep *s) {
  const struct analysis *a = s->a;
  const struct timeline *t = s->timeline;
  u32 most = a->n_steps + a->model->ranks[t->rank].n_gpu_windows + 1u;
  s->windows = arena_array(&s->scratch, most, sizeof(*s->windows));
  s->parts = arena_array(&s->scratch, most, sizeof(*s->parts));
  if (a->whole_run && t->on_gpu) {
    list_known_windows(s);
    return;
  }
  for (u32 i = 0; i < a->n_steps; i++) {
    struct window window;
    if (!analysis_window(a, t->rank, a->first_step + i, &window))
      continue;
    enum gpu_step step = analysis_gpu_step(a, t->rank, t, &window);
    if (step == GPU_STEP_UNTIMED && !t->has_comm)
      step = GPU_STEP_KNOWN; /* but for communication, which is known of no step */
    s->sum->steps_overwritten += step == GPU_STEP_OVERWRITTEN;
    s->sum->steps_unseen += step == GPU_STEP_UNSEEN;
    s->sum->steps_left_out += step == GPU_STEP_LEFT_OUT;
    s->sum->steps_untimed += step == GPU_STEP_UNTIMED;
    if (step == GPU_STEP_KNOWN)
      s->windows[s->n_windows++] = window;
  }
  s->sum->steps = NUMBER_OF(s->windows, s->n_windows, one, analysis_is_training(a, one->step));
}

static void add_time(struct waits *waits, u32 step, u32 comm, i64 begin, i64 end, i64 exposed) {
  if (waits->step != step + 1) {
    waits->step = step + 1;
    waits->all = 0;
    waits->last_end = waits->last_begin = 0;
  }
  waits->all += exposed;
  waits->last_comm = comm;
  waits->last_begin = begin;
  waits->last_end = end;
  if (comm == INDEX_NONE)
    return;
  if (waits->step_of_comm[comm] != step + 1) {
    waits->step_of_comm[comm] = step + 1;
    waits->by_comm[comm] = 0;
  }
  waits->by_comm[comm] += exposed;
}

static i64 time_in_other_comms(const struct sweep *s, u32 comm, i64 now) {
  const struct waits *w = &s->waits;
  if (s->window == s->n_windows || w->step != s->windows[s->window].step + 1)
    return 0;
  i64 waited = w->all - (w->step_of_comm[comm] == w->step ? w->by_comm[comm] : 0);
  if (w->last_comm != comm && w->last_end > now)
    waited -= w->last_end - MAX(w->last_begin, now);
  return MAX(waited, 0);
}

static struct op_times *times_of_op(struct rank_summary *sum, u8 op) {
  FOR_EACH_CHANGED(sum->by_op.at, sum->by_op.n, one)
    if (one->op == op)
      return one;
  VECTOR_PUSH(&sum->by_op, (struct op_times){.op = op});
  return &sum->by_op.at[sum->by_op.n - 1];
}

/* One stretch of a collective that no earlier one covers; `transfer` is where it began to move
 * data, NS_UNKNOWN if it cannot be told. How much of it is exposed in steps of training. */
static i64 add_piece(struct sweep *s, u8 op, u32 comm, i64 start, i64 transfer, i64 end) {
  struct op_times *of_op = times_of_op(s->sum, op < OPS ? op : 0);
  i64 exposed = 0;
  while (s->window < s->n_windows && s->windows[s->window].end <= start)
    s->window++;
  for (u32 i = s->window; i < s->n_windows && s->windows[i].begin < end; i++) {
    i64 low = CLAMP(start, s->windows[i].begin, s->windows[i].end);
    i64 high = CLAMP(end, s->windows[i].begin, s->windows[i].end);
    i64 split = transfer == NS_UNKNOWN ? low : CLAMP(transfer, low, high);
    i64 before = split - low - intervals_covered(&s->compute, &s->compute_cursor, low, split);
    i64 after = high - split - intervals_covered(&s->compute, &s->compute_cursor, split, high);
    bool trains = analysis_is_training(s->a, s->windows[i].step);
    of_op->comm += trains ? high - low : 0;
    exposed += trains ? before + after : 0;
    if (transfer == NS_UNKNOWN)
      continue;
    of_op->wait += trains ? before : 0;
    of_op->transfer += trains ? after : 0;
    s->parts[i].wait += before;
    s->parts[i].transfer += after;
    /* messages make a rank late for a collective of the same communicator, too */
    add_time(&s->waits, s->windows[i].step, op_is_message(op) ? INDEX_NONE : comm, low, high,
             before + after);
  }
  of_op->exposed += exposed;
  return exposed;
}

static bool trains_in_window(const struct sweep *s, i64 until) {
  const struct window *window = &s->windows[s->window];
  return s->window < s->n_windows && window->begin < until &&
         analysis_is_training(s->a, window->step);
}

static void sweep_collectives(struct sweep *s) {
  const struct model *model = s->a->model;
  const struct timeline *t = s->timeline;
  if (s->n_collectives == 0)
    return;
  s->comm.at = arena_array(&s->scratch, s->n_collectives, sizeof(*s->comm.at));
  s->waits.by_comm = arena_array(&s->scratch, model->n_comms, sizeof(i64));
  s->waits.step_of_comm = arena_array(&s->scratch, model->n_comms, sizeof(u32));
  s->sum->exposed = memory_array(s->n_collectives, sizeof(*s->sum->exposed));
  i64 covered = INT64_MIN;
  FOR_EACH(s->collectives, s->n_collectives, collective) {
    const struct span *span = &t->spans[*collective];
    u8 op = 0;
    u32 comm = INDEX_NONE;
    i64 transfer = NS_UNKNOWN;
    while (s->window < s->n_windows && s->windows[s->window].end <= span->start)
      s->window++;
    bool counts = trains_in_window(s, span->end);
    if (span->link != INDEX_NONE) {
      const struct arrival *arrival = &model->arrivals[span->link];
      op = arrival->op;
      transfer = arrival_transfer_begin(s->a, arrival);
      if (arrival->collective != INDEX_NONE) {
        comm = model->collectives[arrival->collective].comm;
        s->a->time_in_other_comms[span->link] = time_in_other_comms(s, comm, span->start);
      }
    } else if (span->category == COMM_OP_PEER_COPY) {
      op = span->category;
      transfer = span->start;
    }
    intervals_append(&s->comm, span->start, span->end);
    i64 start = MAX(span->start, covered);
    i64 exposed = start < span->end ? add_piece(s, op, comm, start, transfer, span->end) : 0;
    s->sum->exposed[collective - s->collectives] = counts || exposed ? exposed : NS_UNKNOWN;
    covered = MAX(span->end, covered);
  }
  FOR_EACH(s->sum->by_op.at, s->sum->by_op.n, of_op)
    ADD_EACH(&s->sum->all, of_op, comm, exposed, wait, transfer);
}

/* Union of the host's phases, either the data phases or all other named ones. */
static void phase_union(struct sweep *s, bool data, struct intervals *out) {
  const struct timeline *t = s->timeline;
  *out = (struct intervals){0};
  if (s->n_phases == 0)
    return;
  out->at = arena_array(&s->scratch, s->n_phases, sizeof(*out->at));
  FOR_EACH(s->phases, s->n_phases, phase) {
    const struct span *span = &t->spans[*phase];
    if (data ? span->category == TSCOPE_PHASE_DATA : phase_computes(span->category))
      intervals_append(out, span->start, span->end);
  }
}

/* Where the rank loads its input: as its phases say, or as was inferred. */
static void input_union(struct sweep *s, struct intervals *out) {
  struct input_pause *pauses;
  u32 n;
  if (s->n_phases) {
    phase_union(s, true, out);
    return;
  }
  *out = (struct intervals){0};
  input_pauses(s->a, s->timeline, &s->scratch, &pauses, &n);
  if (n == 0)
    return;
  *out = (struct intervals){arena_array(&s->scratch, n, sizeof(*out->at)), 0};
  FOR_EACH(pauses, n, pause)
    intervals_append(out, pause->begin, pause->end);
}

/* Where a device does nothing though it has work: from when all other work is done and the launch
 * has returned, until it begins much later than a free device would. */
static void late_union(struct sweep *s, struct intervals *out) {
  const struct gpu_gaps *gaps = s->sum->gaps;
  *out = (struct intervals){arena_array(&s->scratch, gaps->n, sizeof(*out->at)), 0};
  FOR_EACH(gaps->at, gaps->n, gap)
    if (gap->launched != NS_UNKNOWN && gap->end - gap->launched > LONGEST_LATENCY)
      intervals_append(out, gap->launched, gap->end);
}

/* Where the rank is in a phase, or communicates. */
static void inside_union(struct sweep *s, const struct intervals *data,
                         const struct intervals *phases, struct intervals *out) {
  struct intervals both;
  intervals_union(&s->scratch, data, phases, &both);
  intervals_union(&s->scratch, &both, &s->comm, out);
}

enum { COMPUTE, COMMUNICATION, MEMCPYS, LATE, CAPTURING, DATA, HOST, UNIONS };

/* The sums over windows of nested unions; what each adds to the one inside it is its own. */
static void sum_windows(struct sweep *s, const struct intervals *data,
                        const struct intervals *phases) {
  struct intervals late, inside, within[UNIONS] = {s->compute};
  struct rank_summary *sum = s->sum;
  const struct intervals *more[UNIONS] = {
      NULL, &s->comm, &s->timeline->memcpy, &late, &s->timeline->capturing, data, phases};
  late_union(s, &late);
  for (u32 k = 1; k < UNIONS; k++)
    intervals_union(&s->scratch, &within[k - 1], more[k], &within[k]);
  inside_union(s, data, phases, &inside);
  u32 at[UNIONS] = {0}, at_data = 0, at_inside = 0;
  float *compute_ms = s->a->compute_ms + (size_t)s->timeline->rank * s->a->n_steps;
  for (u32 i = 0; i < s->n_windows; i++) {
    i64 begin = s->windows[i].begin, end = s->windows[i].end, own[UNIONS], all = 0;
    for (u32 k = 0; k < UNIONS; k++) {
      i64 covered = intervals_covered(&within[k], &at[k], begin, end);
      own[k] = covered - all;
      all = covered;
    }
    struct step_parts *parts = &s->parts[i];
    parts->wall = end - begin;
    parts->compute = own[COMPUTE];
    parts->exposed = own[COMMUNICATION];
    parts->memcpy = own[MEMCPYS];
    parts->idle = parts->wall - own[COMPUTE] - own[COMMUNICATION] - own[MEMCPYS];
    parts->input = intervals_covered(data, &at_data, begin, end);
    if (!analysis_is_training(s->a, s->windows[i].step)) {
      sum->other_steps += parts->wall;
      continue;
    }
    sum->total += parts->wall;
    sum->compute += parts->compute;
    sum->exposed_comm += parts->exposed;
    sum->exposed_memcpy += parts->memcpy;
    sum->idle += parts->idle;
    sum->begun_late += own[LATE];
    sum->capturing += own[CAPTURING];
    sum->capture_steps += own[CAPTURING] > 0;
    sum->data_stall += own[DATA];
    sum->host_bound += own[HOST];
    sum->data += parts->input;
    sum->outside += parts->wall - intervals_covered(&inside, &at_inside, begin, end);
    if (sum->has_compute)
      compute_ms[s->windows[i].step - s->a->first_step] = (float)ns_to_ms(parts->compute);
  }
}

/* Whether the model knows how long loading took on this rank, if only that it took no time. */
static bool input_is_known(const struct analysis *a, u32 rank) {
  const struct phase_times *phases = a->model->phases;
  return phases && ANY_NUMBER(a->first_step, a->model->steps.n, step,
                              phases[cell_of_step(a->model, step, rank)].data != NS_UNKNOWN);
}

static void carry_windows(struct carrier *c, struct window **windows, struct step_parts **parts,
                          u32 *n) {
  static const struct column of_window[] = {COLUMN(struct window, begin),
                                            COLUMN_NEAR(struct window, end, begin),
                                            COLUMN(struct window, step)};
  static const struct column of_parts[] = {
      EACH_COLUMN(struct step_parts, wall, compute, exposed, wait, transfer, memcpy, idle, input)};
  *n = carry_count(c, *n, 11);
  CARRY_ARRAY(c, *windows, *n);
  CARRY_ARRAY(c, *parts, *n);
  carry_columns(c, *windows, *n, sizeof(**windows), COLUMNS(of_window));
  carry_columns(c, *parts, *n, sizeof(**parts), COLUMNS(of_parts));
}

/* By arrival of the rank: the same on all nodes, because all have joined the same ranks. */
static void carry_waits(struct analysis *a, u32 rank, struct carrier *c) {
  const struct model *model = a->model;
  const struct rank_events *events = model_events(model, rank);
  u32 n = carry_count(c, events->calls.n + events->kernels.n, 1);
  i64 *waits = a->time_in_other_comms;
  for (u32 i = 0; i < n && i < events->calls.n + events->kernels.n; i++) {
    u32 arrival = i < events->calls.n ? events->calls.at[i].arrival
                                      : events->kernels.at[i - events->calls.n].arrival;
    i64 wait = c->reads || arrival >= model->n_arrivals ? 0 : waits[arrival];
    CARRY(c, &wait);
    if (c->reads && arrival < model->n_arrivals)
      waits[arrival] = wait;
  }
}

void overlap_carry(struct analysis *a, u32 rank, struct carrier *c) {
  struct window *windows = NULL;
  struct step_parts *parts = NULL;
  u32 n = 0;
  float *compute_ms = a->compute_ms + (size_t)rank * a->n_steps;
  if (c->reads) {
    carry_windows(c, &windows, &parts, &n);
    FOR_EACH(windows, n, window)
      c->bad |= window->step < a->first_step || window->step - a->first_step >= a->n_steps;
    n = c->bad ? 0 : n;
    series_add_rank(a, rank, windows, parts, n);
    for (u32 i = 0; i < n && a->ranks[rank].has_compute; i++)
      if (analysis_is_training(a, windows[i].step))
        compute_ms[windows[i].step - a->first_step] = (float)ns_to_ms(parts[i].compute);
  }
  carry_waits(a, rank, c);
}

void overlap_rank(struct analysis *a, const struct timeline *timeline) {
  struct rank_summary *sum = &a->ranks[timeline->rank];
  struct sweep s = {.a = a, .timeline = timeline, .sum = sum, .compute = timeline->compute};
  const struct rank *rank = &a->model->ranks[timeline->rank];
  struct intervals data, phases;
  sum->on_gpu = timeline->on_gpu;
  sum->has_compute = timeline->has_compute;
  sum->has_comm = timeline->has_comm || rank->collective_calls == 0;
  sum->has_memcpy = timeline->has_memcpy;
  sum->has_cpu_times = timeline->has_cpu_times;
  list_spans_by_kind(&s);
  find_windows(&s);
  input_union(&s, &data);
  phase_union(&s, false, &phases);
  /* On a CPU job the model's compute is phases not blocked; waiting for input is not compute. */
  if (!timeline->on_gpu)
    intervals_subtract(&s.scratch, &timeline->compute, &data, &s.compute);
  sweep_collectives(&s);
  sum_windows(&s, &data, &phases);
  sum->has_phases = phases.n > 0;
  sum->has_input = (data.n > 0 || input_is_known(a, timeline->rank));
  series_add_rank(a, timeline->rank, s.windows, s.parts, s.n_windows);
  if (analysis_keeps(a, timeline->rank))
    carry_windows(analysis_keeps(a, timeline->rank), &s.windows, &s.parts, &s.n_windows);
  arena_release(&s.scratch);
  FREE_EACH(&s, collectives, phases);
}
