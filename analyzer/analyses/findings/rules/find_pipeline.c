/* SPDX-License-Identifier: MIT
 *
 * Pipelines whose stages are idle longer than filling and draining explains.
 */
#include <math.h>

#include "analyses/findings/findings.h"

/* The stage that computes longest, if it is out of line with the mean; NULL if none is. */
static const struct pipeline_stage *slowest_stage(const struct results *r, double *ratio) {
  double sum = 0;
  const struct pipeline_stage *most = &r->pipeline_stage[0];
  for (u32 i = 0; i < r->n_pipeline_stage; i++) {
    sum += r->pipeline_stage[i].compute_ms;
    if (r->pipeline_stage[i].compute_ms > most->compute_ms)
      most = &r->pipeline_stage[i];
  }
  *ratio = most->compute_ms * r->n_pipeline_stage / sum - 1;
  return *ratio >= WORTH_MENTIONING ? most : NULL;
}

int rule_pipeline_bubble(struct findings *f) {
  const struct results *r = f->r;
  struct arena *arena = f->a->arena;
  if (!(r->pipeline_excess_ms >= WORTH_MENTIONING * f->step_ms))
    return 0;
  double ratio;
  const struct pipeline_stage *heavy = slowest_stage(r, &ratio);
  char *cause = heavy ? arena_printf(arena,
                                     " Stage %u computes %.0f %% longer than the mean of the "
                                     "stages; all others wait for it.",
                                     heavy->stage, 100 * ratio)
                      : arena_text(arena, " The stages compute about equally long.");
  return finding_add(
      f, severity_of(f, r->pipeline_excess_ms), run_seconds(f, r->pipeline_excess_ms),
      arena_printf(arena, "The pipeline's bubble is %.0f %%; %.0f %% cannot be avoided",
                   100 * r->pipeline_bubble, 100 * r->pipeline_inherent),
      arena_printf(arena,
                   "%.0f stages and %.0f micro-batches a step leave each stage idle %.0f %% of the "
                   "time while the pipeline fills and drains. It is idle %.0f %%: %.3g ms more in "
                   "a step of %.3g ms.%s",
                   r->pipeline_stages, r->pipeline_micro_batches, 100 * r->pipeline_inherent,
                   100 * r->pipeline_bubble, r->pipeline_excess_ms, f->step_ms, cause ? cause : ""),
      heavy
          ? arena_printf(
                arena,
                "Move layers from stage %u to the others (the embedding and the loss also count).",
                heavy->stage)
          : arena_text(arena, "Look at the messages between stages: overlap them with compute, "
                              "send less, or place neighbouring stages on faster links."),
      heavy ? heavy->ranks : NULL, heavy ? heavy->n_ranks : 0);
}
