/* SPDX-License-Identifier: MIT
 *
 * The job's own values: their trend, and where they leave it.
 */
#include "analyses/convergence/convergence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "base/statistics.h"

const char *const scalar_role_words[] = {
#define R(name, text) text,
    TSCOPE_SCALAR_ROLES(R)
#undef R
        NULL};

struct convergence_result convergence_result_unknown(void) {
  struct convergence_result result = unknown_convergence_result;
  result.reason = "no input has values of training: give a log (JSON lines, CSV, "
                  "trainer_state.json), call tscope_scalar(), or print lines such as "
                  "\"step 10 loss 2.31\" from Python without TSCOPE_SCALARS=off";
  result.whole_change = NAN;
  return result;
}

/* Values of one name on one rank, in the order in which the job reported them. */
struct point {
  const struct scalar *scalar;
  enum scalar_role role;
  u32 order;
};

ORDER_BY(by_series, struct point, BY_TEXT(scalar->name) UP(scalar->rank) UP(order))

/* The reported steps, if all values have one; else values are counted. If a step has several
 * values, the last one counts. A job that goes back to its first step counts from the beginning in
 * each epoch, so its steps continue from where they were. A job that goes back to a later step
 * continued from a checkpoint, and its earlier values after that step are void. */
static void fill_series(struct arena *arena, const struct point *points, u32 n,
                        struct series *out) {
  out->name = points->scalar->name;
  out->role = points->role;
  out->steps = arena_array(arena, n, sizeof(double));
  out->values = arena_array(arena, n, sizeof(double));
  bool known = out->has_steps = ALL(points, n, one, one->scalar->step != INDEX_NONE);
  double offset = 0, last = -1;
  for (u32 i = 0; i < n; i++) {
    double step = known ? points[i].scalar->step + offset : i;
    if (known && step < last && points[i].scalar->step <= points[0].scalar->step) {
      offset = last + 1 - points[i].scalar->step;
      step = last + 1;
    }
    while (out->n && out->steps[out->n - 1] >= step)
      out->n--;
    out->steps[out->n] = step;
    out->values[out->n++] = points[i].scalar->value;
    last = step;
  }
}

/* NAN where one of the counts is not known. */
static double shift_at(const struct model *model, const struct scalar *scalar) {
  i32 step = scalar->time != NS_UNKNOWN && scalar->step != INDEX_NONE &&
                     scalar->rank < model->n_ranks && model->steps.n
                 ? model_step_at(model, scalar->rank, scalar->time)
                 : -1;
  return step < 0 ? NAN : (double)scalar->step - (double)model->steps.first - step;
}

/* By how much the job's count of steps is ahead of the report's: it may have begun at a checkpoint,
 * and prints a step's values when the next one runs. */
static double step_shift_of(const struct model *model, const struct point *points, u32 n) {
  SCOPED double *shifts = memory_array(size_sum(n, 1), sizeof(*shifts));
  return median_of(shifts, LIST_KNOWN(shifts, 0, n, i, shift_at(model, points[i].scalar)));
}

static double median_of_part(const double *values, u32 from, u32 to) {
  SCOPED double *copy = memory_array(size_sum(to - from, 1), sizeof(*copy));
  return median_of(copy, LIST_WHERE(copy, from, to, i, isfinite(values[i]), values[i]));
}

/* The trend of the values from this index on; 0 if chance explains it. */
static double slope_from(const struct series *series, u32 from) {
  u32 n = 0, all = series->n - from;
  SCOPED double *x = memory_array(size_product(3, size_sum(all, 1)), sizeof(*x));
  double *y = x + all + 1, *scratch = y + all + 1;
  for (u32 i = from; i < series->n; i++)
    if (isfinite(series->values[i])) {
      x[n] = series->steps[i];
      y[n++] = series->values[i];
    }
  return n > 1 ? fit_line(x, y, n, INFINITY, scratch).slope : NAN;
}

static struct convergence_series summarise_series(const struct series *series) {
  u32 n = series->n, tenth = n / 10 ? n / 10 : 1;
  struct convergence_series row = {.name = series->name,
                                   .role = series->role,
                                   .counts = series->has_steps ? COUNTS_STEPS : COUNTS_VALUES,
                                   .values = n,
                                   .first_step = series->steps[0],
                                   .last_step = series->steps[n - 1],
                                   .first = median_of_part(series->values, 0, tenth),
                                   .last = median_of_part(series->values, n - tenth, n),
                                   .best = NAN,
                                   .change_per_step = slope_from(series, series->n / 2),
                                   .first_not_finite = NAN};
  for (u32 i = 0; i < n; i++) {
    if (isfinite(series->values[i])) {
      row.best = fmin(row.best, series->values[i]);
      continue;
    }
    row.not_finite++;
    if (isnan(row.first_not_finite))
      row.first_not_finite = series->steps[i];
  }
  return row;
}

/* The values for a picture: of each group of neighbours, the value farthest from their median, or
 * one that is not finite. */
static void choose_points(struct arena *arena, const struct series *series,
                          struct convergence_series *row) {
  u32 each = series->n / CONVERGENCE_POINTS + 1;
  row->at_step = arena_array(arena, series->n / each, sizeof(double));
  row->value = arena_array(arena, series->n / each, sizeof(double));
  for (u32 from = 0; from < series->n; from += each) {
    u32 to = MIN(from + each, series->n);
    double middle = median_of_part(series->values, from, to);
    u32 chosen = NUMBER_OF_LARGEST(from, to, i,
                                   isfinite(series->values[i]) ? fabs(series->values[i] - middle)
                                                               : (double)INFINITY);
    row->at_step[row->n_points] = series->steps[chosen];
    row->value[row->n_points++] = series->values[chosen];
  }
}

static void check_divergence(const struct series *loss, const struct convergence_series *row,
                             struct convergence_result *result) {
  u32 n = loss->n, tenth = n / 10 ? n / 10 : 1;
  if (row->not_finite > 0) {
    result->diverged_by = DIVERGED_NOT_FINITE;
    result->diverged_step = row->first_not_finite;
    return;
  }
  if (n < DIVERGED_LEAST_VALUES)
    return;
  double best = NAN;
  for (u32 i = 0; i + tenth <= n; i += tenth)
    best = fmin(best, median_of_part(loss->values, i, i + tenth));
  double limit = best + DIVERGED_SHARE * fabs(best);
  if (!(row->last > limit) || !(row->last > row->first))
    return;
  u32 from = n; /* the last stretch above the limit */
  while (from > 0 && loss->values[from - 1] > limit)
    from--;
  result->diverged_by = DIVERGED_BY_GROWTH;
  result->diverged_step = loss->steps[from < n ? from : n - 1];
}

static void check_plateau(const struct series *loss, const struct convergence_series *row,
                          struct convergence_result *result) {
  u32 n = loss->n, half = n / 2, eighth = n / 8;
  if (half < PLATEAU_LEAST_VALUES || result->diverged_by)
    return;
  double begin = median_of_part(loss->values, half, half + eighth);
  double end = median_of_part(loss->values, n - eighth, n);
  double fell = (row->first - begin) / fabs(row->first);
  result->plateau_steps = loss->steps[n - 1] - loss->steps[half];
  result->plateau_change = (begin - end) / fabs(begin);
  double by_slope = -row->change_per_step * result->plateau_steps / fabs(begin);
  result->plateau = fabs(result->plateau_change) < PLATEAU_SHARE &&
                    fabs(by_slope) < PLATEAU_SHARE && fell > 10 * PLATEAU_SHARE;
}

/* Training that does not work: the loss rises all the way, or never moves. A loss that rose at
 * first and now falls may be fine. */
static void check_not_falling(const struct series *loss, const struct convergence_series *row,
                              struct convergence_result *result) {
  double steps = loss->steps[loss->n - 1] - loss->steps[0], first = fabs(row->first);
  if (loss->n < DIVERGED_LEAST_VALUES || result->diverged_by || !(first > 0))
    return;
  double by_slope = slope_from(loss, 0) * steps / first;
  result->whole_change = (row->last - row->first) / first;
  if (result->whole_change > RISING_SHARE && by_slope > RISING_SHARE && row->change_per_step >= 0)
    result->not_falling = LOSS_RISES;
  else if (loss->n >= PLATEAU_LEAST_VALUES && fabs(result->whole_change) < PLATEAU_SHARE &&
           fabs(by_slope) < PLATEAU_SHARE && (row->first - row->best) / first < 10 * PLATEAU_SHARE)
    result->not_falling = LOSS_NEVER_MOVES;
}

static enum loss_trend trend_of(const struct convergence_result *result,
                                const struct convergence_series *loss) {
  if (result->diverged_by)
    return LOSS_DIVERGED;
  if (loss->values < DIVERGED_LEAST_VALUES || isnan(loss->change_per_step))
    return LOSS_TREND_UNKNOWN;
  double steps = (loss->last_step - loss->first_step) / 2;
  double change = loss->change_per_step * steps / fabs(loss->last);
  return change < -PLATEAU_SHARE ? LOSS_FALLING : change > PLATEAU_SHARE ? LOSS_RISING : LOSS_FLAT;
}

static void mark_spikes(struct analysis *a, const double *steps, const double *values, u32 n,
                        double share, struct signal_spikes *out) {
  bool *marks = arena_array(a->arena, n, sizeof(*marks));
  double *typical = arena_array(a->arena, n, sizeof(*typical));
  out->steps = arena_array(a->arena, n, sizeof(double));
  out->values = arena_array(a->arena, n, sizeof(double));
  out->typical = arena_array(a->arena, n, sizeof(double));
  find_spikes(values, n, share, marks, typical);
  for (u32 i = 0; i < n; i++)
    if (marks[i]) {
      out->steps[out->n] = steps[i];
      out->values[out->n] = values[i];
      out->typical[out->n++] = typical[i];
    }
  out->known = n > SPIKE_LEAST_BEFORE;
  if (n) {
    out->from = steps[0];
    out->to = steps[n - 1];
  }
}

/* For each role one with a usual name first, then, of d_loss and g_loss, one that ends in NaN, then
 * the one with most values; among equals, that of the lowest rank. */
static const struct series *choose_series(const struct series *all, u32 n, enum scalar_role role) {
  const struct series *best = NULL;
  u32 best_order = 0;
  FOR_EACH(all, n, item) {
    u32 order = scalar_name_is_usual(item->name) ? 2 : isfinite(item->values[item->n - 1]) ? 0 : 1;
    if (item->role != role ||
        (best && (order < best_order || (order == best_order && item->n <= best->n))))
      continue;
    best = item;
    best_order = order;
  }
  return best;
}

/* Step times and memory, by the job's count of steps. If times do not show how it corresponds to
 * the report's count, both are assumed to count all steps of the run. */
static void mark_own_signals(struct analysis *a, double shift,
                             struct signal_spikes signals[SIGNALS]) {
  const struct results *r = a->results;
  const double *own[] = {r->step_ms, r->memory.step_peak_bytes};
  const u32 counts[] = {r->n_step_ms, r->memory.n_step_peaks};
  const enum signal_kind which[] = {SIGNAL_STEP_TIME, SIGNAL_MEMORY};
  for (u32 s = 0; s < 2; s++) {
    double *steps = arena_array(a->arena, counts[s], sizeof(*steps));
    for (u32 i = 0; i < counts[s]; i++)
      steps[i] = a->model->steps.first + i + (isnan(shift) ? 0 : shift);
    mark_spikes(a, steps, own[s], own[s] ? counts[s] : 0, SPIKE_SHARE, &signals[which[s]]);
  }
}

/* Ranks that reported a loss or gradient norm that is not finite. */
static void list_diverged_ranks(struct analysis *a, const struct point *points, u32 n) {
  struct convergence_result *result = &a->results->convergence;
  bool *bad = arena_array(a->arena, a->model->n_ranks, sizeof(*bad));
  result->diverged_ranks = arena_array(a->arena, a->model->n_ranks, sizeof(u32));
  FOR_EACH(points, n, point)
    if (point->role == SCALAR_ROLE_LOSS && !isfinite(point->scalar->value) &&
        point->scalar->rank < a->model->n_ranks)
      bad[point->scalar->rank] = true;
  result->n_diverged_ranks =
      LIST_WHERE(result->diverged_ranks, 0, a->model->n_ranks, r, bad[r], a->model->ranks[r].rank);
}

/* The program's own numbers, by libtscope.scalar(): those of the first rank that has the name. */
static void add_own_numbers(struct analysis *a, const struct series *all, u32 n) {
  struct convergence_result *result = &a->results->convergence;
  u32 last = result->n_series + CONVERGENCE_OWN_NUMBERS;
  for (u32 i = 0; i < n && result->n_series < last; i++) {
    if (all[i].role != SCALAR_ROLE_NONE || (i && strcmp(all[i].name, all[i - 1].name) == 0))
      continue;
    struct convergence_series *row = &result->series[result->n_series++];
    *row = summarise_series(&all[i]);
    row->best = NAN; /* who knows whether small is good */
    choose_points(a->arena, &all[i], row);
  }
}

/* Whether its values become NaN or infinite and stay so. One that is so from the beginning holds
 * the place of a value that does not exist yet, unless the main loss is older. */
static bool becomes_not_finite(const struct series *series, const struct convergence_series *loss) {
  u32 from = series->n;
  while (from > 0 && !isfinite(series->values[from - 1]))
    from--;
  bool later = loss && series->has_steps && loss->counts == COUNTS_STEPS &&
               series->steps[0] > loss->first_step;
  return from < series->n && (from > 0 || later);
}

/* A loss beside the main one that broke: of a validation, or a part of the main one. */
static void find_broken_loss(struct analysis *a, const struct series *all, u32 n) {
  struct convergence_result *result = &a->results->convergence;
  for (u32 i = 0; i < n && !result->broken_loss; i++) {
    bool is_loss = all[i].role == SCALAR_ROLE_LOSS || all[i].role == SCALAR_ROLE_EVAL_LOSS;
    bool is_main = result->loss && strcmp(all[i].name, result->loss->name) == 0;
    if (!is_loss || is_main || !becomes_not_finite(&all[i], result->loss))
      continue;
    struct convergence_series *row =
        FIND(result->series, result->n_series, one, strcmp(one->name, all[i].name) == 0);
    if (!row) {
      row = &result->series[result->n_series++];
      *row = summarise_series(&all[i]);
      choose_points(a->arena, &all[i], row);
    }
    result->broken_loss = row;
  }
}

static void analyse_series(struct analysis *a, const struct series *all, u32 n) {
  struct convergence_result *result = &a->results->convergence;
  struct signal_spikes signals[SIGNALS] = {0};
  double shift = NAN;
  bool only_counts = false; /* values: how they lie beside the run's steps is not known */
  static const enum scalar_role roles[] = {SCALAR_ROLE_LOSS, SCALAR_ROLE_GRAD_NORM};
  static const double shares[] = {SPIKE_SHARE_LOSS, SPIKE_SHARE};
  const struct convergence_series **rows[] = {&result->loss, &result->grad_norm};
  result->series = arena_array(a->arena, n, sizeof(*result->series));
  /* One of each role: the one that comes first in the order of roles. */
  for (u32 role = SCALAR_ROLE_LOSS; role < SCALAR_ROLE_STEP; role++) {
    const struct series *series = choose_series(all, n, role);
    if (!series)
      continue;
    struct convergence_series *row = &result->series[result->n_series++];
    *row = summarise_series(series);
    choose_points(a->arena, series, row);
    shift = isnan(shift) ? series->shift : shift;
    for (u32 s = 0; s < 2; s++)
      if (roles[s] == role) {
        *rows[s] = row;
        mark_spikes(a, series->steps, series->values, series->n, shares[s], &signals[s]);
        row->spikes = signals[s].n;
        only_counts |= !series->has_steps;
      }
    if (role == SCALAR_ROLE_LOSS) {
      check_divergence(series, row, result);
      check_plateau(series, row, result);
      check_not_falling(series, row, result);
      result->verdict = trend_of(result, row);
    }
  }
  find_broken_loss(a, all, n);
  add_own_numbers(a, all, n);
  if (!only_counts)
    mark_own_signals(a, shift, signals);
  find_instability(a, signals);
}

void convergence_analyse(struct analysis *a) {
  const struct model *model = a->model;
  struct convergence_result *result = &a->results->convergence;
  *result = convergence_result_unknown();
  SCOPED struct point *points = memory_array(size_sum(model->n_scalars, 1), sizeof(*points));
  u32 n = 0, n_series = 0;
  for (u32 i = 0; i < model->n_scalars; i++) {
    const struct scalar *scalar = &model->scalars[i];
    enum scalar_role role = scalar->name ? scalar_role_of(scalar->name) : SCALAR_ROLE_STEP;
    if (role != SCALAR_ROLE_STEP)
      points[n++] = (struct point){scalar, role, i};
  }
  struct series *all = arena_array(a->arena, n, sizeof(*all));
  SORT(points, n, by_series);
  for (u32 i = 0, values; i < n; i += values) {
    values = ROW_OF_EQUALS(points + i, n - i, first, one,
                           one->scalar->rank == first->scalar->rank &&
                               strcmp(one->scalar->name, first->scalar->name) == 0);
    all[n_series].shift = step_shift_of(model, points + i, values);
    fill_series(a->arena, points + i, values, &all[n_series++]);
  }
  if (!n)
    return;
  list_diverged_ranks(a, points, n);
  result->reason = NULL;
  analyse_series(a, all, n_series);
}
