/* SPDX-License-Identifier: MIT
 *
 * The host's time in a step, by training phase: mean over ranks and analysed steps. Time blocked on
 * communication is part of the phase that blocked; comm_ms says how much communication was not
 * hidden, and must not be added to the others.
 */
#include <math.h>
#include <stddef.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"

static double mean_phase_ms(const struct analysis *a, size_t member) {
  const struct model *model = a->model;
  double sum = 0;
  u32 n = 0;
  for (u32 step = a->first_step; step < model->steps.n; step++)
    for (u32 rank = 0; rank < model->n_ranks && analysis_is_training(a, step); rank++) {
      const struct phase_times *times = &model->phases[(size_t)step * model->n_ranks + rank];
      i64 time = *(const i64 *)((const char *)times + member);
      if (time == NS_UNKNOWN)
        continue;
      sum += ns_to_ms(time);
      n++;
    }
  return n ? sum / n : NAN;
}

void phases_analyse(struct analysis *a) {
  struct results *r = a->results;
  r->data_ms = r->forward_ms = r->backward_ms = r->optimizer_ms = r->other_ms = NAN;
  r->comm_ms = r->ov_exposed_ms;
  if (!a->model->phases || a->whole_run)
    return;
  r->data_ms = mean_phase_ms(a, offsetof(struct phase_times, data));
  r->forward_ms = mean_phase_ms(a, offsetof(struct phase_times, forward));
  r->backward_ms = mean_phase_ms(a, offsetof(struct phase_times, backward));
  r->optimizer_ms = mean_phase_ms(a, offsetof(struct phase_times, optimizer));
  r->other_ms = mean_phase_ms(a, offsetof(struct phase_times, other));
}
