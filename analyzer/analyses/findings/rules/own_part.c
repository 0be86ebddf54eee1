/* SPDX-License-Identifier: MIT */
#include "analyses/findings/rules/own_part.h"

#include "base/checked_memory.h"
#include "base/statistics.h"

#define LARGER 2.0           /* times that of the others */
#define LEAST_BYTES 100000.0 /* in a step: less is not worth dividing in another way */

/* Where one member broadcasts all, as the buffers of a model, nothing is divided. */
static struct own_part part_in(const struct model *model, u32 comm, u32 own) {
  u32 size = model->comms[comm].size, n = 0;
  SCOPED double *sums = memory_zeroed(size_sum(size, 1), sizeof(*sums));
  FOR_EACH(model->collectives, model->n_collectives, one)
    if (one->comm == comm && one->op == TSCOPE_OP_BROADCAST && one->step >= 0 &&
        (u32)one->root < size)
      sums[one->root] += (double)one->bytes / model->steps.n;
  double bytes = sums[own];
  for (u32 member = 0; member < size; member++) {
    if (!(sums[member] > 0))
      return (struct own_part){0};
    if (member != own)
      sums[n++] = sums[member];
  }
  double others = median_of(sums, n);
  return bytes >= LEAST_BYTES && bytes >= LARGER * others ? (struct own_part){bytes, others}
                                                          : (struct own_part){0};
}

struct own_part find_own_part(const struct findings *f, u32 rank) {
  const struct model *model = f->a->model;
  struct own_part most = {0};
  for (u32 comm = 0; comm < model->n_comms; comm++)
    for (u32 member = 0; member < model->comms[comm].size; member++)
      if (model->comms[comm].members && model->comms[comm].members[member] == rank) {
        struct own_part part = part_in(model, comm, member);
        most = part.bytes > most.bytes ? part : most;
      }
  return most;
}
