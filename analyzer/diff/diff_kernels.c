/* SPDX-License-Identifier: MIT
 *
 * Kernels of both sides, by name. The duration of a kernel needs no steps: it is compared however
 * short the recordings are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorting.h"
#include "diff/diff.h"

ORDER_BY(by_name, struct diff_kernel, BY_TEXT(name))

/* Rows that only one side has have no change in time; rows without any time come last. */
static double weight(const struct diff_kernel *k) {
  double before = isnan(k->before_ms) ? 0 : k->before_ms;
  double after = isnan(k->after_ms) ? 0 : k->after_ms;
  return fabs(after - before);
}

ORDER_BY(by_weight, struct diff_kernel, DOWN_OF(weight) THEN(by_name(a, b)))

/* What a kernel of one run adds to its side's mean over so many runs: for one rank, per step. */
static struct diff_kernel row_of(const struct results *r, const struct kernel_result *k, u32 side,
                                 bool per_step, u32 runs) {
  double times = kernels_are_of(r, per_step) * runs;
  struct diff_kernel row = {SAME(k, name, shortened, category)};
  if (side == BEFORE) {
    row.before_count = k->count / times;
    row.before_ms = k->sum_ms / times;
  } else {
    row.after_count = k->count / times;
    row.after_ms = k->sum_ms / times;
  }
  return row;
}

/* A report lists only so many kernels: what is not listed is unknown if some were left out. */
static bool lists_all(const struct diff_side *side) {
  return ALL(side->runs, side->n, one,
             (*one)->n_kernels == 0 || (*one)->kernel_names <= (*one)->n_kernels);
}

static void finish_row(struct diff_kernel *k, bool all_before, bool all_after) {
  k->before_mean_ms = k->before_count > 0 ? k->before_ms / k->before_count : NAN;
  k->after_mean_ms = k->after_count > 0 ? k->after_ms / k->after_count : NAN;
  k->speedup = k->before_mean_ms / k->after_mean_ms;
  if (!isfinite(k->speedup))
    k->speedup = NAN;
  if (k->before_count == 0 && !all_before)
    k->before_count = k->before_ms = NAN;
  if (k->after_count == 0 && !all_after)
    k->after_count = k->after_ms = NAN;
}

void diff_kernels(struct diffing *d) {
  struct diff_result *out = d->out;
  size_t most = 0;
  u32 known[2] = {0, 0}; /* runs; in the others no kernel was seen */
  EACH_RUN(d, side, i) {
    most += d->sides[side]->runs[i]->n_kernels;
    known[side] += d->sides[side]->runs[i]->n_kernels > 0;
  }
  if (!known[BEFORE] || !known[AFTER])
    return;
  struct diff_kernel *rows = arena_array(d->arena, most, sizeof(*rows));
  bool per_step = out->kernels_per == KERNELS_PER_STEP;
  u32 n = 0;
  EACH_RUN(d, side, i) {
    const struct results *r = d->sides[side]->runs[i];
    FOR_EACH(r->kernels, r->n_kernels, each)
      rows[n++] = row_of(r, each, side, per_step, known[side]);
  }
  out->n_kernels =
      SORT_AND_JOIN(rows, n, by_name, sum, row,
                    ADD_EACH(sum, row, before_count, after_count, before_ms, after_ms));
  bool all_before = lists_all(d->sides[BEFORE]), all_after = lists_all(d->sides[AFTER]);
  FOR_EACH_CHANGED(rows, out->n_kernels, one) {
    finish_row(one, all_before, all_after);
    one->name = arena_text(d->arena, one->name);
    one->shortened = arena_text(d->arena, one->shortened);
    one->category = arena_text(d->arena, one->category);
  }
  SORT(rows, out->n_kernels, by_weight);
  out->kernels = rows;
}
