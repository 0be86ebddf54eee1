/* SPDX-License-Identifier: MIT
 *
 * Collectives of both runs, by operation, size and number of ranks.
 */
#include <math.h>
#include <string.h>

#include "diff/diff.h"

static u32 ranks_of(const struct results *r, const struct collective_result *c) {
  return c->comm_index < r->model->n_comms ? r->model->comms[c->comm_index].size : 0;
}

static double steps_of(const struct results *r) {
  return r->training_steps > 0 ? r->training_steps : 1;
}

static struct diff_collective *row_for(struct diff_result *out, const char *op, double ranks,
                                       double bytes) {
  FOR_EACH_CHANGED(out->collectives, out->n_collectives, row)
    if (!strcmp(row->op, op) && row->ranks == ranks &&
        (row->bytes == bytes || (isnan(row->bytes) && isnan(bytes))))
      return row;
  struct diff_collective *row = &out->collectives[out->n_collectives++];
  *row = (struct diff_collective){op, ranks, bytes, 0, 0, NAN, NAN, NAN};
  return row;
}

/* Several communicators may have the same collectives: instances are added, times are weighted
 * means over instances. */
static void add_run(struct diff_result *out, const struct results *r, bool later) {
  FOR_EACH(r->collectives, r->n_collectives, c) {
    struct diff_collective *row =
        row_for(out, c->op, ranks_of(r, c), c->sizes > 1 ? (double)NAN : c->bytes);
    double *per_step = later ? &row->after_per_step : &row->before_per_step;
    double *ms = later ? &row->after_ms : &row->before_ms;
    double more = c->count / steps_of(r);
    if (!isnan(c->transfer_ms))
      *ms = isnan(*ms) ? c->transfer_ms
                       : (*ms * *per_step + c->transfer_ms * more) / (*per_step + more);
    *per_step += more;
  }
}

void diff_collectives(struct diffing *d) {
  struct diff_result *out = d->out;
  size_t most = (size_t)d->before->n_collectives + d->after->n_collectives + 1;
  out->collectives = arena_array(d->arena, most, sizeof(*out->collectives));
  add_run(out, d->after, true);
  add_run(out, d->before, false);
  for (u32 i = 0; i < out->n_collectives; i++)
    out->collectives[i].change = out->collectives[i].after_ms / out->collectives[i].before_ms - 1;
}
