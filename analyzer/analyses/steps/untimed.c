/* SPDX-License-Identifier: MIT
 *
 * Steps in which collectives were called on the GPU whose times are not known: replays of graphs
 * that are recorded as a whole, records that were dropped. The sum over the others is then too
 * small.
 */

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"

/* Of the steps: the last of a job that was killed or hangs never ran. */
#define MOST_UNTIMED 0.1

struct known_bytes {
  float timed, all;
};

static bool is_expected_to_run(const struct model *model, const struct collective *collective) {
  const struct comm *comm = &model->comms[collective->comm];
  return comm->backend == TSCOPE_BACKEND_NCCL && comm->size != 1 && collective->count != 0;
}

void untimed_prepare(struct analysis *a) {
  const struct model *model = a->model;
  size_t cells = (size_t)model->n_ranks * a->n_steps;
  SCOPED struct known_bytes *bytes = memory_zeroed(size_sum(cells, 1), sizeof(*bytes));
  a->untimed = arena_array(a->arena, cells, sizeof(bool));
  FOR_EACH(model->arrivals, model->n_arrivals, arrival) {
    i64 step = a->whole_run ? 0 : (i64)arrival->step - a->first_step;
    if (arrival->collective == INDEX_NONE || step < 0 || step >= a->n_steps)
      continue;
    const struct collective *collective = &model->collectives[arrival->collective];
    bool ran = arrival_has_run(arrival);
    if (!ran && !is_expected_to_run(model, collective))
      continue;
    struct known_bytes *cell = &bytes[(size_t)arrival->rank * a->n_steps + (size_t)step];
    float size = (float)collective->bytes + 1;
    cell->all += size;
    cell->timed += ran ? size : 0;
  }
  for (size_t i = 0; i < cells; i++)
    a->untimed[i] = bytes[i].timed < COVERAGE_ENOUGH * (double)bytes[i].all;
}

bool analysis_untimed(const struct analysis *a, u32 rank, u32 step) {
  return step >= a->first_step && a->untimed[(size_t)rank * a->n_steps + step - a->first_step];
}

bool rank_lacks_times(const struct rank_summary *rank) {
  u32 steps = rank->steps + rank->steps_untimed;
  return rank->steps_untimed > MOST_UNTIMED * steps;
}
