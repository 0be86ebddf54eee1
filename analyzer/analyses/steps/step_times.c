/* SPDX-License-Identifier: MIT
 *
 * How many steps, how long they are, and how much they vary. A step's wall time is the mean over
 * ranks of their own.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/queries.h"
#include "base/statistics.h"

static double step_wall_ms(const struct analysis *a, u32 step) {
  i64 sum = 0;
  u32 n = 0;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    i64 length = analysis_step_length(a, rank, step);
    sum += length == NS_UNKNOWN ? 0 : length;
    n += length != NS_UNKNOWN;
  }
  return n ? ns_to_ms(sum) / n : NAN;
}

static void whole_run(struct analysis *a) {
  struct results *r = a->results;
  a->whole_run = r->whole_run = true;
  a->first_step = 0;
  a->n_steps = 1;
  r->step_count = a->model->n_ranks ? 0 : NAN;
}

static void choose_analysed_steps(struct analysis *a, u32 warmup) {
  u32 n = a->model->steps.n;
  a->first_step = warmup < n ? warmup : 0;
  a->n_steps = n - a->first_step;
  a->results->step_count = n;
  a->results->warmup_excluded = a->first_step;
}

void steps_prepare(struct analysis *a) {
  const struct steps *steps = &a->model->steps;
  size_t cells = (size_t)steps->n * a->model->n_ranks;
  if (steps->n == 0) {
    whole_run(a);
    return;
  }
  choose_analysed_steps(a, steps->warmup);
  a->begin = arena_array(a->arena, cells, sizeof(*a->begin));
  a->end = arena_array(a->arena, cells, sizeof(*a->end));
  a->ends_known = arena_array(a->arena, cells, sizeof(*a->ends_known));
  memcpy(a->begin, steps->begin, cells * sizeof(*a->begin));
  memcpy(a->end, steps->end, cells * sizeof(*a->end));
  if (steps->ends_known)
    memcpy(a->ends_known, steps->ends_known, cells * sizeof(*a->ends_known));
}

static bool any_end_is_known(const struct analysis *a) {
  size_t cells = (size_t)a->model->steps.n * a->model->n_ranks;
  return ANY(a->ends_known, cells, one, *one);
}

/* Of the first rank. */
static void count_by_lengths(struct analysis *a, double *lengths) {
  u32 n = a->model->steps.n;
  for (u32 step = 0; step < n; step++) {
    i64 length = analysis_step_length(a, 0, step);
    lengths[step] = length == NS_UNKNOWN ? NAN : (double)length;
  }
  choose_analysed_steps(a, model_count_warmup(lengths, n, !any_end_is_known(a)));
}

/* If the first rank was reduced: also beside other ranks, its own steps took as long. */
static bool found_steps_of_rank0(struct analysis *a) {
  SCOPED_ARENA struct arena arena = {0};
  struct carrier found;
  bool good = model_found(a->model, 0, false, &arena, &found);
  if (good) {
    CARRY_PART(&found, found.at = found.end);             /* the rank's own sums */
    CARRY_PART(&found, steps_on_gpu_carry(a, 0, &found)); /* the first of analyses.def */
    good = !found.bad;
    carrier_free(&found);
  }
  return good;
}

/* If no collective shows when steps ended on the GPUs, as on a single GPU, a host that runs ahead
 * does not show slow first steps: the kernels of the first rank do. Its timeline is kept until it
 * is that rank's turn. */
void steps_count_warmup(struct analysis *a) {
  const struct model *model = a->model;
  u32 n = model->steps.n;
  if (a->whole_run || !model->steps.warmup_by_lengths || !model->ranks[0].gpu_kernels ||
      any_end_is_known(a))
    return;
  double *lengths = arena_array(a->arena, n, sizeof(double));
  if (found_steps_of_rank0(a)) {
    count_by_lengths(a, lengths);
    return;
  }
  a->timeline_of_rank0 = arena_alloc(a->arena, sizeof(*a->timeline_of_rank0));
  if (a->source.load(model, 0, a->timeline_of_rank0) != 0) {
    a->timeline_of_rank0 = NULL;
    return;
  }
  steps_on_gpu_rank(a, a->timeline_of_rank0);
  count_by_lengths(a, lengths);
}

/* How far the host was ahead at the end of a step, mean over ranks; NAN if it is known of none.
 * Adds to the largest. `ended` is the last step that each rank's host had ended by the end of the
 * one before. */
static double host_ahead_ms(const struct analysis *a, u32 step, u32 *ended) {
  struct results *r = a->results;
  double sum = 0;
  u32 known = 0;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    u32 *later = &ended[rank];
    i64 ahead = analysis_host_ahead(a, rank, step, step);
    if (ahead == NS_UNKNOWN)
      continue;
    *later = MAX(*later, step);
    while (*later + 1 < a->model->steps.n && analysis_host_ahead(a, rank, step, *later + 1) > 0)
      ++*later;
    known++;
    sum += ns_to_ms(ahead);
    r->host_ahead_max_ms = fmax(r->host_ahead_max_ms, ns_to_ms(ahead)); /* NAN gives way */
    r->host_ahead_max_steps = fmax(r->host_ahead_max_steps, *later - step);
  }
  return known ? sum / known : NAN;
}

/* An engine's iterations take as long as their batches need: each kind has its own times. */
static void list_kinds(struct analysis *a) {
  static const char *const names[] = {
#define X(NAME, text) text,
      STEP_KINDS(X)
#undef X
  };
  const u8 *kind = a->model->steps.kind;
  struct results *r = a->results;
  if (!kind)
    return;
  r->step_kinds = arena_array(a->arena, STEP_KINDS_COUNT, sizeof(*r->step_kinds));
  double *ms = arena_array(a->arena, a->n_steps, sizeof(double));
  for (u8 k = STEP_PREFILL; k < STEP_KINDS_COUNT; k++) {
    u32 n = NUMBER_OF(kind + a->first_step, a->n_steps, one, *one == k);
    u32 known = LIST_KNOWN(ms, a->first_step, a->first_step + a->n_steps, step,
                           kind[step] == k ? r->step_ms[step] : NAN);
    if (n)
      r->step_kinds[r->n_step_kinds++] = (struct step_kind_result){
          names[k], n, median_of(ms, known), quantile_of(ms, known, 0.95)};
  }
}

void steps_analyse(struct analysis *a) {
  const struct steps *steps = &a->model->steps;
  struct results *r = a->results;
  u32 n = 0, ahead = 0;
  double other_ms = 0;
  r->step_mean_ms = NAN;
  if (a->whole_run) /* then budget.c takes the run's wall time as what was analysed */
    return;
  r->step_ms = arena_array(a->arena, steps->n, sizeof(double));
  double *looked_at = arena_array(a->arena, a->n_steps, sizeof(double));
  double *aheads = arena_array(a->arena, a->n_steps, sizeof(double));
  u32 *ended = arena_array(a->arena, a->model->n_ranks, sizeof(u32));
  r->n_step_ms = steps->n;
  for (u32 step = 0; step < steps->n; step++) {
    r->step_ms[step] = step_wall_ms(a, step);
    if (step < a->first_step)
      continue;
    if (!analysis_is_training(a, step)) {
      other_ms += isnan(r->step_ms[step]) ? 0 : r->step_ms[step];
      continue;
    }
    if (!isnan(r->step_ms[step]))
      looked_at[n++] = r->step_ms[step];
    aheads[ahead] = host_ahead_ms(a, step, ended);
    ahead += !isnan(aheads[ahead]);
  }
  list_kinds(a);
  r->training_steps = a->n_training;
  r->step_mean_ms = mean_of(looked_at, n);
  r->analysed_s = (r->step_mean_ms * a->n_training + other_ms) / 1e3;
  r->step_cv = variation_of(looked_at, n);
  r->step_median_ms = median_of(looked_at, n);
  r->step_p95_ms = quantile_of(looked_at, n, 0.95);
  r->host_ahead_ms = median_of(aheads, ahead);
}
