/* SPDX-License-Identifier: MIT */
#include "hosts/effects.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/by_key.h"
#include "base/sorting.h"
#include "base/statistics.h"

/* Rounds of fitting, and how many breaks in the runs of a unit are tried. */
enum { ROUNDS = 12, BREAKS_MOST = 200 };
/* A break must improve the fit by more than this, in units of the noise's variance: about twice the
 * logarithm of the number of places where it could be, so that a record is not cut by chance. */
#define BREAK_GAIN 12.0
#define OUTLIER 4.0            /* standard deviations; a value further out counts as that many */
#define LEAST_NOISE 1e-6       /* where all values are equal */
#define NORMAL_OF_TRIMMED 1.26 /* likewise, over that of what lies between its 5 % and 95 % */

/* One unit in one run: what run and position leave, median over the unit's observations. */
struct unit_run {
  u32 run;
  double value;
};

struct fit {
  const struct observations *from;
  bool *used;
  struct by_key by_group, by_position, by_unit;
  double *group, *position; /* their parts of a value */
  struct effect *parts;     /* of units; runs == 0: none */
  struct unit_run *unit_runs;
  u32 *unit_begin; /* of unit_runs, by unit */
  double noise, *scratch;
};

static u32 key_of(const struct observation *observation, size_t offset) {
  return *(const u32 *)((const char *)observation + offset);
}

static struct by_key sort_by(const struct fit *fit, size_t offset, u32 n_keys) {
  const struct observation *all = fit->from->all.at;
  return LISTED_BY_KEY(n_keys, 0, fit->from->all.n, i,
                       fit->used[i] && key_of(&all[i], offset) != INDEX_NONE,
                       key_of(&all[i], offset));
}

/* How many different units a key was seen on; counts up to `enough`. */
static u32 units_of(const struct fit *fit, const struct by_key *sorted, u32 key, u32 enough) {
  u32 seen[8], n = 0;
  for (u32 i = sorted->begin[key]; i < sorted->begin[key + 1] && n < enough; i++) {
    u32 unit = fit->from->all.at[sorted->at[i]].unit, j = 0;
    while (j < n && seen[j] != unit)
      j++;
    if (j == n)
      seen[n++] = unit;
  }
  return n;
}

/* Leaves out the observations of keys that were seen on too few units. Returns how many. */
static u32 leave_out(struct fit *fit, size_t offset, u32 n_keys, u32 least_units, u32 least_seen) {
  struct by_key sorted = sort_by(fit, offset, n_keys);
  u32 left_out = 0;
  for (u32 key = 0; key < n_keys; key++)
    if (sorted.begin[key + 1] - sorted.begin[key] >= least_seen &&
        units_of(fit, &sorted, key, least_units) < least_units)
      for (u32 i = sorted.begin[key]; i < sorted.begin[key + 1]; i++, left_out++)
        fit->used[sorted.at[i]] = false;
  FREE_EACH(&sorted, begin, at);
  return left_out;
}

static double part_of_unit(const struct fit *fit, u32 unit, u32 run) {
  const struct effect *part = &fit->parts[unit];
  return part->runs && run >= part->first && run <= part->last ? part->size : 0;
}

/* A position that was seen once has no part: it would take all of the value. */
static double part_of_position(const struct fit *fit, const struct observation *one) {
  return one->position == INDEX_NONE ? 0 : fit->position[one->position];
}

/* The parts of groups or of positions: the median of what the others leave of a key's observations;
 * 0 for a key that was seen less often than `least` times. */
static void fit_keys(struct fit *fit, const struct by_key *sorted, u32 n_keys, u32 least,
                     double *parts) {
  for (u32 key = 0; key < n_keys; key++) {
    u32 n = 0;
    for (u32 i = sorted->begin[key]; i < sorted->begin[key + 1]; i++) {
      const struct observation *one = &fit->from->all.at[sorted->at[i]];
      double other = parts == fit->group ? part_of_position(fit, one) : fit->group[one->group];
      fit->scratch[n++] = one->value - other - part_of_unit(fit, one->unit, one->run);
    }
    parts[key] = n >= least ? median_of(fit->scratch, n) : 0;
  }
}

static void fit_unit_runs(struct fit *fit) {
  const struct by_key *sorted = &fit->by_unit;
  u32 n = 0;
  for (u32 unit = 0; unit < fit->from->units; unit++) {
    fit->unit_begin[unit] = n;
    for (u32 i = sorted->begin[unit]; i < sorted->begin[unit + 1];) {
      u32 run = fit->from->all.at[sorted->at[i]].run, together = 0;
      for (; i < sorted->begin[unit + 1]; i++) {
        const struct observation *one = &fit->from->all.at[sorted->at[i]];
        if (one->run != run)
          break;
        fit->scratch[together++] = one->value - fit->group[one->group] - part_of_position(fit, one);
      }
      fit->unit_runs[n++] = (struct unit_run){run, median_of(fit->scratch, together)};
    }
  }
  fit->unit_begin[fit->from->units] = n;
}

/* By the median deviation, which the units that differ do not change; where most values are equal,
 * by the middle nine tenths. */
static double noise_of(struct fit *fit) {
  u32 n = 0;
  for (u32 unit = 0; unit < fit->from->units; unit++)
    for (u32 i = fit->unit_begin[unit]; i < fit->unit_begin[unit + 1]; i++)
      fit->scratch[n++] = fit->unit_runs[i].value - part_of_unit(fit, unit, fit->unit_runs[i].run);
  if (n == 0)
    return NAN;
  SORT(fit->scratch, n, by_double);
  u32 from = n / 20, to = n - n / 20;
  double trimmed = 0;
  for (u32 i = from; i < to; i++)
    trimmed += fit->scratch[i] * fit->scratch[i];
  trimmed = sqrt(trimmed / (to - from)) * NORMAL_OF_TRIMMED;
  FOR_EACH_CHANGED(fit->scratch, n, one)
    *one = fabs(*one);
  double spread = NORMAL_OF_MAD * median_of(fit->scratch, n);
  return fmax(fmax(spread, trimmed), LEAST_NOISE);
}

/* Mean and standard deviation of values[0 .. n), outliers drawn in to the median. */
static void measure(const struct fit *fit, const struct unit_run *values, u32 n, double *mean,
                    double *deviation) {
  for (u32 i = 0; i < n; i++)
    fit->scratch[i] = values[i].value;
  double centre = median_of(fit->scratch, n), most = OUTLIER * fit->noise, sum = 0, squares = 0;
  FOR_EACH(values, n, one)
    sum += CLAMP(one->value, centre - most, centre + most);
  *mean = sum / n;
  FOR_EACH(values, n, value) {
    double off = CLAMP(value->value, centre - most, centre + most) - *mean;
    squares += off * off;
  }
  *deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
}

/* The stretch [*from, *to) of a unit's runs that is furthest above zero. The score is the square of
 * its sum over the noise of that sum, less what its breaks must gain. */
static double find_stretch(const struct fit *fit, const struct unit_run *values, u32 n, u32 *from,
                           u32 *to) {
  double *plain = fit->scratch, *smooth = plain + n, *sums = smooth + n, best = 0;
  u32 step = n / BREAKS_MOST + 1;
  for (u32 i = 0; i < n; i++)
    plain[i] = values[i].value / fit->noise;
  smooth_outliers(plain, n, smooth);
  sums[0] = 0;
  for (u32 i = 0; i < n; i++)
    sums[i + 1] = sums[i] + smooth[i];
  for (u32 k = 0; k < n; k += step)
    for (u32 l = n; l >= k + EFFECT_LEAST_RUNS; l = l > step ? l - step : 0) {
      double sum = sums[l] - sums[k];
      double score = sum > 0 ? sum * sum / (l - k) - BREAK_GAIN * ((k > 0) + (l < n)) : 0;
      if (score > best) {
        best = score;
        *from = k;
        *to = l;
      }
    }
  return best;
}

static struct effect judge_unit(const struct fit *fit, u32 unit, u32 tests, double least) {
  const struct unit_run *values = fit->unit_runs + fit->unit_begin[unit];
  u32 n = fit->unit_begin[unit + 1] - fit->unit_begin[unit], from = 0, to = 0;
  struct effect none = {0};
  if (n < EFFECT_LEAST_RUNS || find_stretch(fit, values, n, &from, &to) <= 0)
    return none;
  u32 runs = to - from, freedom = fit->unit_begin[fit->from->units] - 1;
  double size, deviation;
  measure(fit, values + from, runs, &size, &deviation);
  double error = fmax(deviation, fit->noise) / sqrt(runs);
  double stretches = 0.5 * n * (n + 1);
  double chance = size > 0 ? student_tails(size / error, freedom) / 2 : 1;
  double half = student_quantile(0.95, freedom) * error;
  struct effect effect = {.unit = unit,
                          .runs = runs,
                          .first = values[from].run,
                          .last = values[to - 1].run,
                          .unit_runs = n,
                          .begins = from > 0,
                          .ends = to < n,
                          .size = size,
                          .low = size - half,
                          .high = size + half,
                          .probability = fmin(1, chance * stretches * fit->from->units * tests)};
  return effect.probability <= EFFECTS_PROBABILITY && size >= least ? effect : none;
}

/* What the search would just believe of a unit with the median number of runs, in all of them. */
static void describe_power(const struct fit *fit, u32 tests, struct effects *effects) {
  effects->could_show = NAN;
  const u32 *begin = fit->unit_begin;
  effects->units = LIST_WHERE(fit->scratch, 0, fit->from->units, unit,
                              begin[unit + 1] > begin[unit], begin[unit + 1] - begin[unit]);
  if (!effects->units)
    return;
  double runs = floor(median_of(fit->scratch, effects->units));
  effects->runs = (u32)runs;
  double chance = EFFECTS_PROBABILITY / (0.5 * runs * (runs + 1) * fit->from->units * tests);
  u32 freedom = fit->unit_begin[fit->from->units] - 1;
  if (runs >= EFFECT_LEAST_RUNS)
    effects->could_show = student_quantile(1 - 2 * chance, freedom) * fit->noise / sqrt(runs);
}

ORDER_BY(largest_first, struct effect, DOWN(size) UP(unit))

static void fit_free(struct fit *fit) {
  FREE_EACH(&fit->by_group, begin, at);
  FREE_EACH(&fit->by_position, begin, at);
  FREE_EACH(&fit->by_unit, begin, at);
  FREE_EACH(fit, used, group, position, parts, unit_runs, unit_begin, scratch);
}

struct effects find_effects(const struct observations *from, u32 tests, double least) {
  struct effects effects = {.noise = NAN};
  struct fit fit = {.from = from,
                    .used = memory_zeroed(from->all.n, sizeof(bool)),
                    .group = memory_zeroed(from->groups, sizeof(double)),
                    .position = memory_zeroed(from->positions, sizeof(double)),
                    .parts = memory_zeroed(from->units, sizeof(struct effect)),
                    .unit_runs = memory_array(from->all.n, sizeof(struct unit_run)),
                    .unit_begin = memory_zeroed(size_sum(from->units, 1), sizeof(u32)),
                    .scratch =
                        memory_array(size_sum(size_product(from->all.n, 3), 1), sizeof(double))};
  FILL(fit.used, from->all.n, true);
  effects.left_out = leave_out(&fit, offsetof(struct observation, position), from->positions,
                               POSITION_LEAST_UNITS, 2);
  leave_out(&fit, offsetof(struct observation, group), from->groups, 2, 1);
  fit.by_group = sort_by(&fit, offsetof(struct observation, group), from->groups);
  fit.by_position = sort_by(&fit, offsetof(struct observation, position), from->positions);
  fit.by_unit = sort_by(&fit, offsetof(struct observation, unit), from->units);
  for (u32 round = 0; round < ROUNDS; round++) {
    fit_keys(&fit, &fit.by_group, from->groups, 1, fit.group);
    fit_keys(&fit, &fit.by_position, from->positions, 2, fit.position);
    fit_keys(&fit, &fit.by_group, from->groups, 1, fit.group);
    fit_unit_runs(&fit);
    fit.noise = noise_of(&fit);
    for (u32 unit = 0; unit < from->units; unit++)
      fit.parts[unit] = judge_unit(&fit, unit, tests, least);
  }
  FOR_EACH(fit.parts, from->units, part)
    if (part->runs)
      VECTOR_PUSH(&effects.found, *part);
  SORT(effects.found.at, effects.found.n, largest_first);
  effects.noise = fit.noise;
  describe_power(&fit, tests, &effects);
  fit_free(&fit);
  return effects;
}
