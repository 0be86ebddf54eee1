/* SPDX-License-Identifier: MIT
 *
 * Steps that take much longer than the typical one or contain more, and where their time went: by
 * the phases of the rank that waited least for others.
 */
#include <math.h>
#include <string.h>

#include "analyses/queries.h"
#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/statistics.h"

enum {
  USUAL_STEPS = 64,   /* that waits of long steps are held against */
  TYPICAL_AROUND = 64 /* usual steps around a step, of which the typical one is as long as it */
};

struct listing {
  struct analysis *a;
  const struct step_extras *extras;
  struct arena *arena;
  struct long_steps *out;
  double *typical; /* [rank * PHASE_KINDS + phase] ms, median; NAN */
  double *waited;  /* [long step * n_ranks + rank] ms, the longest in one collective, less what that
                      is in a usual step */
  double *alone;   /* the same of its step without its time in collectives; NAN */
  u32 *long_at;    /* [steps.n] index into out->at, INDEX_NONE */
};

static double length_of_rank_ms(const struct analysis *a, u32 rank, u32 step) {
  const struct rank *of = &a->model->ranks[rank];
  u8 known = a->ends_known[cell_of_step(a->model, step, rank)];
  bool on_gpu = of->launches || of->gpu_kernels;
  return on_gpu && known != (STEP_BEGIN_KNOWN | STEP_END_KNOWN)
             ? NAN
             : ms_if_known(analysis_step_length(a, rank, step));
}

/* Median lengths: of the steps that contain no more than others, if there are any, and around each
 * step of those that are nearest, because a machine may be faster or slower later. */
static void find_typical_lengths(const struct listing *l, const double *lengths) {
  const struct analysis *a = l->a;
  struct long_steps *out = l->out;
  double *usual = arena_array(l->arena, a->n_steps, sizeof(double));
  double *near = arena_array(l->arena, TYPICAL_AROUND, sizeof(double));
  u32 n = LIST_WHERE(usual, 0, a->n_steps, i,
                     !isnan(lengths[i]) && !l->extras->of_step[a->first_step + i], lengths[i]);
  u32 wide = MIN(n, TYPICAL_AROUND), before = 0;
  out->around_ms = arena_array(l->arena, a->n_steps, sizeof(double));
  for (u32 i = 0; i < a->n_steps; i++) {
    u32 from = MIN(before > wide / 2 ? before - wide / 2 : 0, n - wide);
    memcpy(near, usual + from, wide * sizeof(*near));
    out->around_ms[i] = median_of(near, wide);
    before += !isnan(lengths[i]) && !l->extras->of_step[a->first_step + i];
  }
  out->typical_ms = median_of(usual, n);
}

static void list_long_steps(struct listing *l) {
  struct analysis *a = l->a;
  struct long_steps *out = l->out;
  double *lengths = arena_array(l->arena, a->n_steps, sizeof(double));
  l->long_at = arena_array(l->arena, a->model->steps.n, sizeof(u32));
  out->at = arena_array(l->arena, a->n_steps, sizeof(*out->at));
  for (u32 i = 0; i < a->n_steps; i++)
    lengths[i] =
        MEAN_KNOWN(0, a->model->n_ranks, rank, length_of_rank_ms(a, rank, a->first_step + i));
  find_typical_lengths(l, lengths);
  out->excess_ms = lengths;
  FILL(l->long_at, a->model->steps.n, INDEX_NONE);
  for (u32 i = 0; i < a->n_steps; i++) {
    u32 step = a->first_step + i;
    double excess = lengths[i] -= out->around_ms[i];
    bool is_long = excess >= OTHER_WORK_OF_STEP * out->around_ms[i];
    if (isnan(excess) || (!is_long && !l->extras->of_step[step]))
      continue;
    l->long_at[step] = out->n;
    out->at[out->n++] = (struct long_step){.step = step,
                                           .rank = INDEX_NONE,
                                           .last = INDEX_NONE,
                                           .times = analysis_times_of(a, (i32)step),
                                           .excess_ms = excess,
                                           .is_long = is_long};
  }
}

static void find_typical_phases(struct listing *l) {
  const struct analysis *a = l->a;
  double *values = arena_array(l->arena, a->n_steps, sizeof(double));
  l->typical = arena_array(l->arena, size_product(a->model->n_ranks, PHASE_KINDS), sizeof(double));
  for (u32 rank = 0; rank < a->model->n_ranks; rank++)
    for (u32 phase = 0; phase < PHASE_KINDS; phase++) {
      u32 n = LIST_KNOWN(values, 0, a->model->phases ? a->n_steps : 0, i,
                         phase_ms(a->model, rank, a->first_step + i, phase));
      l->typical[(size_t)rank * PHASE_KINDS + phase] = median_of(values, n);
    }
}

static bool is_usual(const struct listing *l, u32 step) {
  return l->long_at[step] == INDEX_NONE && analysis_times_of(l->a, (i32)step) == TIMES_KEPT;
}

/* Rows of l->waited for each step: the long ones first, then some of the others, evenly. Returns
 * how many others. */
static u32 number_rows(const struct listing *l, u32 *row_of) {
  const struct analysis *a = l->a;
  u32 others = 0, seen = 0, usual = 0;
  FOR_EACH_STEP(a, step)
    others += is_usual(l, step);
  u32 each = others / USUAL_STEPS + 1;
  for (u32 step = 0; step < a->model->steps.n; step++) {
    bool analysed = step >= a->first_step && step - a->first_step < a->n_steps;
    row_of[step] = analysed ? l->long_at[step] : INDEX_NONE;
    if (analysed && is_usual(l, step) && seen++ % each == 0)
      row_of[step] = l->out->n + usual++;
  }
  return usual;
}

static void add_collective(struct listing *l, const struct collective *collective, u32 row) {
  const struct model *model = l->a->model;
  bool waits = model->clock_aligned && collective->last_start != NS_UNKNOWN &&
               op_is_barrier_like(collective->op);
  FOR_EACH_MEMBER(model, collective, arrival) {
    size_t at = (size_t)row * model->n_ranks + arrival->rank;
    if (waits)
      l->waited[at] = fmax(l->waited[at], ns_to_ms(collective->last_start - arrival->start));
    if (arrival_has_run(arrival))
      l->alone[at] -= ns_to_ms(arrival->end - arrival->start);
  }
}

static void find_times(struct listing *l, const u32 *row_of) {
  const struct model *model = l->a->model;
  FOR_EACH(model->collectives, model->n_collectives, collective) {
    i32 step = collective->step;
    if (step >= 0 && row_of[step] != INDEX_NONE)
      add_collective(l, collective, row_of[step]);
  }
  for (u32 step = 0; step < model->steps.n; step++)
    for (u32 rank = 0; rank < model->n_ranks && row_of[step] != INDEX_NONE; rank++) {
      size_t at = (size_t)row_of[step] * model->n_ranks + rank;
      l->alone[at] += length_of_rank_ms(l->a, rank, step);
    }
}

/* Takes from the values of long steps what is usual for the rank. */
static void hold_against_usual(double *rows, u32 n_ranks, u32 n_long, u32 usual, double *values) {
  for (u32 rank = 0; rank < n_ranks && usual; rank++) {
    u32 n = LIST_KNOWN(values, n_long, n_long + usual, i, rows[(size_t)i * n_ranks + rank]);
    double typical = median_of(values, n);
    for (u32 i = 0; i < n_long; i++)
      rows[(size_t)i * n_ranks + rank] -= typical;
  }
}

/* A rank may wait as long in every step, for a slow one: what it waits more in a long step tells
 * that it had nothing else to do there. */
static void find_waits(struct listing *l) {
  const struct model *model = l->a->model;
  u32 n = model->n_ranks, n_long = l->out->n;
  u32 *row_of = arena_array(l->arena, model->steps.n, sizeof(*row_of));
  u32 usual = number_rows(l, row_of);
  double *values = arena_array(l->arena, usual, sizeof(double));
  size_t cells = size_sum(size_product(size_sum(n_long, usual), n), 1);
  l->waited = arena_array(l->arena, cells, sizeof(double));
  l->alone = arena_array(l->arena, cells, sizeof(double));
  find_times(l, row_of);
  hold_against_usual(l->waited, n, n_long, usual, values);
  hold_against_usual(l->alone, n, n_long, usual, values);
}

/* How much more than typical the rank has in a phase; 0 if nothing is known. */
static double excess_in_phase(const struct listing *l, u32 rank, u32 step, u32 phase) {
  double more =
      phase_ms(l->a->model, rank, step, phase) - l->typical[(size_t)rank * PHASE_KINDS + phase];
  return MAX(more, 0);
}

/* The rank that waited least for the others: what it did took the time. */
static u32 busiest_rank(const struct listing *l, u32 at) {
  const struct model *model = l->a->model;
  bool by_phase = !model->clock_aligned && model->phases; /* waits lie in backward mostly */
  return NUMBER_OF_LARGEST(
      0, model->n_ranks, rank,
      by_phase ? -excess_in_phase(l, rank, l->out->at[at].step, TSCOPE_PHASE_BACKWARD)
               : -l->waited[(size_t)at * model->n_ranks + rank]);
}

/* Where ranks meet in some steps only, they wait there for one that was slow in those before. */
static bool works_longer(const struct listing *l, u32 at, u32 rank) {
  double more = l->alone[(size_t)at * l->a->model->n_ranks + rank];
  return !(more < REASON_SHARE * l->out->at[at].excess_ms);
}

/* What the ranks wait for the one, more than usual, median. */
static double wait_for_rank(const struct listing *l, u32 at, u32 rank, double *values) {
  u32 n = l->a->model->n_ranks;
  return median_of(values, LIST_WHERE(values, 0, n, i, i != rank, l->waited[(size_t)at * n + i]));
}

/* Names the last rank of each long step, where clocks tell who waits. */
static void find_last(struct listing *l) {
  double *values = arena_array(l->arena, l->a->model->n_ranks, sizeof(*values));
  for (u32 i = 0; i < l->out->n && l->a->model->clock_aligned; i++) {
    if (l->out->at[i].times == TIMES_LEFT_OUT)
      continue;
    u32 rank = busiest_rank(l, i);
    double ms = wait_for_rank(l, i, rank, values);
    if (ms > 0 && works_longer(l, i, rank)) {
      l->out->at[i].last = rank;
      l->out->at[i].wait_ms = ms;
    }
  }
}

/* All but the rank, or the ranks of its host. */
static bool all_others_wait(const struct listing *l, u32 at, u32 rank, bool of_host) {
  const struct model *model = l->a->model;
  u32 others = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    if (i == rank || (of_host && model_same_host(model, rank, i)))
      continue;
    if (!(l->waited[(size_t)at * model->n_ranks + i] >= REASON_SHARE * l->out->at[at].excess_ms))
      return false;
    others++;
  }
  return others > 0;
}

/* Who works alone, or CONTENT_OUTSIDE; sets the rank. */
static u8 content_of_waits(const struct listing *l, u32 at, u32 rank) {
  if (!works_longer(l, at, rank))
    return CONTENT_TRAINING;
  u8 content = all_others_wait(l, at, rank, false)  ? CONTENT_ONE_RANK
               : all_others_wait(l, at, rank, true) ? CONTENT_ONE_HOST
                                                    : CONTENT_OUTSIDE;
  l->out->at[at].rank = content == CONTENT_OUTSIDE ? INDEX_NONE : rank;
  return content;
}

/* Without phases only that others wait shows what the time was for. */
static void classify(struct listing *l, u32 at) {
  struct long_step *step = &l->out->at[at];
  if (step->times == TIMES_LEFT_OUT) {
    step->content = CONTENT_UNKNOWN;
    return;
  }
  u32 rank = busiest_rank(l, at);
  if (!l->a->model->phases || isnan(phase_ms(l->a->model, rank, step->step, PHASE_OTHER))) {
    u8 content = content_of_waits(l, at, rank);
    bool of_some = content == CONTENT_ONE_RANK || content == CONTENT_ONE_HOST;
    step->content = of_some ? content : CONTENT_UNKNOWN;
    return;
  }
  double half = REASON_SHARE * step->excess_ms,
         data = excess_in_phase(l, rank, step->step, TSCOPE_PHASE_DATA);
  double forward = excess_in_phase(l, rank, step->step, TSCOPE_PHASE_FORWARD);
  double backward = excess_in_phase(l, rank, step->step, TSCOPE_PHASE_BACKWARD);
  bool only_forward = forward >= half / 2 && backward <= forward / 4;
  if (backward + excess_in_phase(l, rank, step->step, TSCOPE_PHASE_OPTIMIZER) >= half ||
      (data >= half && !only_forward))
    step->content = CONTENT_TRAINING;
  else if (only_forward)
    step->content = CONTENT_FORWARD;
  else if (excess_in_phase(l, rank, step->step, PHASE_OTHER) < half / 2)
    step->content = CONTENT_TRAINING;
  else
    step->content = content_of_waits(l, at, rank);
}

void other_content_list(struct analysis *a, const struct step_extras *extras, struct arena *arena,
                        struct long_steps *out) {
  struct listing l = {.a = a, .extras = extras, .arena = arena, .out = out};
  *out = (struct long_steps){.first = a->first_step, .end = a->first_step + a->n_steps};
  list_long_steps(&l);
  if (out->n == 0)
    return;
  find_typical_phases(&l);
  find_waits(&l);
  for (u32 i = 0; i < out->n; i++)
    classify(&l, i);
  find_last(&l);
}
