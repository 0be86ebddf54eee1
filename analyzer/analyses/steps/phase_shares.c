/* SPDX-License-Identifier: MIT
 *
 * The host's time in a step, by training phase: mean over ranks and analysed steps. Time blocked on
 * communication is part of the phase that blocked; comm_ms says how much communication was not
 * hidden, and must not be added to the others.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "base/robust.h"

/* Of the ranks [from, end); NAN where none has it. */
static double mean_phase_ms(const struct analysis *a, u32 kind, u32 from, u32 end) {
  double sum = 0;
  u32 n = 0;
  FOR_EACH_STEP(a, step)
    for (u32 rank = from; rank < end && analysis_is_training(a, step); rank++) {
      double ms = phase_ms(a->model, rank, step, kind);
      sum += isnan(ms) ? 0 : ms;
      n += !isnan(ms);
    }
  return n ? sum / n : NAN;
}

double phase_of_middle_rank_ms(const struct analysis *a, u32 kind) {
  SCOPED_ARENA struct arena scratch = {0};
  double *of_ranks = arena_array(&scratch, a->model->n_ranks, sizeof(double));
  u32 n = LIST_KNOWN(of_ranks, 0, a->model->phases ? a->model->n_ranks : 0, rank,
                     mean_phase_ms(a, kind, rank, rank + 1));
  return n ? lower_median(of_ranks, n) : NAN;
}

void phases_analyse(struct analysis *a) {
  struct results *r = a->results;
  u32 n = a->model->n_ranks;
  r->comm_ms = r->ov_exposed_ms;
  if (!a->model->phases || a->whole_run)
    return;
  r->data_ms = mean_phase_ms(a, TSCOPE_PHASE_DATA, 0, n);
  r->forward_ms = mean_phase_ms(a, TSCOPE_PHASE_FORWARD, 0, n);
  r->backward_ms = mean_phase_ms(a, TSCOPE_PHASE_BACKWARD, 0, n);
  r->optimizer_ms = mean_phase_ms(a, TSCOPE_PHASE_OPTIMIZER, 0, n);
  r->other_ms = mean_phase_ms(a, PHASE_OTHER, 0, n);
}

i64 phase_begin(const struct timeline *t, u32 span) {
  const struct span *phase = &t->spans[span];
  i64 begin = phase->start;
  if (phase->kind != SPAN_PHASE || phase->category != TSCOPE_PHASE_OPTIMIZER)
    return begin;
  for (u32 i = span + 1; i < t->n_spans && t->spans[i].start < phase->end; i++) {
    const struct span *inner = &t->spans[i];
    bool backward = (inner->kind == SPAN_PHASE || inner->kind == SPAN_OP) &&
                    inner->category == TSCOPE_PHASE_BACKWARD;
    if (backward && inner->end <= phase->end && inner->end > begin)
      begin = inner->end;
  }
  return begin;
}
