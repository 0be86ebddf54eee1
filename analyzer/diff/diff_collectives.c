/* SPDX-License-Identifier: MIT
 *
 * Collectives of both sides, by operation, size and number of ranks.
 */
#include <math.h>

#include "base/sorting.h"
#include "diff/diff.h"

#define SEVERAL_SIZES -1. /* as the bytes of those that differ from step to step */

/* Times are weighted means: of `timed_` instances per step the sum is `sum_`. */
struct kind {
  struct diff_collective row;
  double timed_before, sum_before, timed_after, sum_after;
};

ORDER_BY(by_kind, struct kind, BY_TEXT(row.op) UP(row.ranks) UP(row.bytes))

static double known_or_0(double ms) {
  return isnan(ms) ? 0 : ms;
}

static double difference(const struct diff_collective *row) {
  return fabs(row->after_per_step * known_or_0(row->after_ms) -
              row->before_per_step * known_or_0(row->before_ms));
}

ORDER_BY(by_difference, struct diff_collective, DOWN_OF(difference) BY_TEXT(op) UP(ranks) UP(bytes))

static u32 ranks_of(const struct results *r, const struct collective_result *c) {
  return c->comm_index < r->model->n_comms ? r->model->comms[c->comm_index].size : 0;
}

/* What a run's collectives add to its side's mean over so many runs. */
static struct kind kind_of(const struct results *r, const struct collective_result *c, u32 side,
                           u32 runs) {
  double per_step = c->count / (r->training_steps > 0 ? r->training_steps : 1) / runs;
  double timed = isnan(c->transfer_ms) ? 0 : per_step;
  double sum = timed * known_or_0(c->transfer_ms);
  bool several = c->sizes > 1 || isnan(c->bytes);
  struct kind kind = {
      .row = {c->op, ranks_of(r, c), several ? SEVERAL_SIZES : c->bytes, 0, 0, NAN, NAN, NAN}};
  if (side == BEFORE) {
    kind.row.before_per_step = per_step;
    kind.timed_before = timed;
    kind.sum_before = sum;
  } else {
    kind.row.after_per_step = per_step;
    kind.timed_after = timed;
    kind.sum_after = sum;
  }
  return kind;
}

static struct diff_collective finished(const struct kind *kind) {
  struct diff_collective row = kind->row;
  row.bytes = row.bytes == SEVERAL_SIZES ? (double)NAN : row.bytes;
  row.before_ms = kind->timed_before > 0 ? kind->sum_before / kind->timed_before : (double)NAN;
  row.after_ms = kind->timed_after > 0 ? kind->sum_after / kind->timed_after : (double)NAN;
  row.change = row.after_ms / row.before_ms - 1;
  return row;
}

void diff_collectives(struct diffing *d) {
  struct diff_result *out = d->out;
  size_t most = 0;
  u32 known[2] = {0, 0}, n = 0; /* runs; in the others no collective was seen */
  EACH_RUN(d, side, i) {
    most += d->sides[side]->runs[i]->n_collectives;
    known[side] += d->sides[side]->runs[i]->n_collectives > 0;
  }
  struct kind *kinds = arena_array(&d->scratch, most, sizeof(*kinds));
  EACH_RUN(d, side, i) {
    const struct results *r = d->sides[side]->runs[i];
    FOR_EACH(r->collectives, r->n_collectives, one)
      kinds[n++] = kind_of(r, one, side, known[side]);
  }
  n = SORT_AND_JOIN(kinds, n, by_kind, sum, more,
                    ADD_EACH(sum, more, row.before_per_step, row.after_per_step, timed_before,
                             sum_before, timed_after, sum_after));
  out->collectives = arena_array(d->arena, n, sizeof(*out->collectives));
  FOR_EACH(kinds, n, kind)
    out->collectives[out->n_collectives++] = finished(kind);
  SORT(out->collectives, n, by_difference);
}
