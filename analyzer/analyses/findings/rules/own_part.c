/* SPDX-License-Identifier: MIT */
#include "analyses/findings/rules/own_part.h"

#include "base/checked_memory.h"
#include "base/statistics.h"
#include "model/building.h"

#define LARGER 2.0           /* times that of the others */
#define LEAST_BYTES 100000.0 /* in a step: less is not worth dividing in another way */

/* Bytes that each member broadcast in the analysed steps. */
static void sum_by_root(const struct model *model, const struct rank_events *events, u32 comm,
                        double *sums) {
  FOR_EACH(events->calls.at, events->calls.n, call)
    if (call->comm == comm && call->op == TSCOPE_OP_BROADCAST && !call->failed &&
        (u32)call->peer < events->comms[comm].size && call->arrival < model->n_arrivals &&
        model->arrivals[call->arrival].step >= 0)
      sums[call->peer] += (double)call->bytes;
}

/* Where one member broadcasts all, as the buffers of a model, nothing is divided. */
static struct own_part part_in(const struct model *model, const struct rank_events *events,
                               u32 comm) {
  u32 size = events->comms[comm].size, own = events->comms[comm].rank, n = 0;
  SCOPED double *sums = memory_zeroed(size_sum(size, 1), sizeof(*sums));
  sum_by_root(model, events, comm, sums);
  double bytes = own < size ? sums[own] / model->steps.n : 0;
  for (u32 member = 0; member < size; member++) {
    if (!(sums[member] > 0))
      return (struct own_part){0};
    if (member != own)
      sums[n++] = sums[member] / model->steps.n;
  }
  double others = median_of(sums, n);
  return bytes >= LEAST_BYTES && bytes >= LARGER * others ? (struct own_part){bytes, others}
                                                          : (struct own_part){0};
}

struct own_part find_own_part(const struct findings *f, u32 rank) {
  const struct model *model = f->a->model;
  struct own_part most = {0};
  if (!model->timelines) /* made by hand */
    return most;
  const struct rank_events *events = model_events(model, rank);
  for (u32 comm = 0; comm < events->n_comms && model->steps.n; comm++) {
    struct own_part part = part_in(model, events, comm);
    most = part.bytes > most.bytes ? part : most;
  }
  return most;
}
