/* SPDX-License-Identifier: MIT
 *
 * Pipelines whose stages are idle longer than filling and draining explains.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "base/quantity.h"
#include "base/rank_list.h"

/* The stage that works longest, if it is out of line with the mean; NULL if none is. */
static const struct pipeline_stage *slowest_stage(const struct results *r, double *ratio) {
  const struct pipeline_stage *most =
      LARGEST(r->pipeline_stage, r->n_pipeline_stage, one, true, one->work_ms);
  double sum = TOTAL(double, r->pipeline_stage, r->n_pipeline_stage, one, one->work_ms);
  *ratio = most->work_ms * r->n_pipeline_stage / sum - 1;
  return *ratio >= WORTH_MENTIONING ? most : NULL;
}

/* The stage that the others wait for: what the step saves if it is as fast as they are. NULL if
 * that is not worth mentioning. */
static const struct pipeline_stage *limiting_stage(struct findings *f, double *saving_s) {
  const struct pipeline_stage *best = NULL;
  *saving_s = WORTH_MENTIONING * run_seconds(f, f->step_ms);
  FOR_EACH(f->r->pipeline_stage, f->r->n_pipeline_stage, one) {
    const struct cure *cure = what_if_cure(f, WHAT_IF_STAGE, one->stage);
    double saving = cure ? saving_of(f, cure, NAN) : NAN;
    if (saving >= *saving_s) {
      best = one;
      *saving_s = saving;
    }
  }
  /* Only the cure of the stage that is named belongs to the finding. */
  saving_of(f, best ? what_if_cure(f, WHAT_IF_STAGE, best->stage) : NULL, NAN);
  return best;
}

static u32 ranks_in_stage(const struct results *r, const struct straggler_group *group,
                          const struct pipeline_stage *stage) {
  return NUMBER_OF(r->ranks, r->n_ranks, one,
                   group->ranks[one - r->ranks] &&
                       ranks_have(stage->ranks, stage->n_ranks, one->rank));
}

/* Whether ranks are late for what the model has them do, as a stage with many layers is. */
static bool is_late_by_work(const struct results *r, const struct straggler_group *group) {
  enum straggler_reason reason = r->ranks[group->worst].reason;
  return reason != STRAGGLER_SLOW_INPUT && reason != STRAGGLER_NO_CORE;
}

/* Whether the late ranks are the stage, for its work: then the stage is told, and not they. */
static bool is_the_stage(const struct results *r, const struct straggler_group *group,
                         const struct pipeline_stage *stage) {
  return is_late_by_work(r, group) && group->n == stage->n_ranks &&
         ranks_in_stage(r, group, stage) == stage->n_ranks;
}

bool is_slow_stage(struct findings *f, const struct straggler_group *group) {
  double saving_s;
  const struct pipeline_stage *limit = limiting_stage(f, &saving_s);
  f->cure = (struct cure){0};
  return limit && is_the_stage(f->r, group, limit);
}

/* Whether a few ranks of a stage, more ranks than it, or something else than its work make it slow:
 * they are told as stragglers. */
static bool is_told_of_ranks(struct findings *f, const struct pipeline_stage *stage,
                             double saving_s) {
  FOR_EACH(f->r->straggler_groups, f->r->n_straggler_groups, group) {
    u32 common = ranks_in_stage(f->r, group, stage);
    if ((common == group->n || common == stage->n_ranks) && group->cure.n &&
        run_seconds(f, group->saving.ms) >= CAUSE_WITHIN * saving_s)
      return !is_the_stage(f->r, group, stage);
  }
  return false;
}

/* The line at which ranks of a stage spend time that others do not; NULL if it is not known. */
static const struct sampled_line *line_of_stage(const struct results *r,
                                                const struct pipeline_stage *stage) {
  const struct rank_result *best =
      LARGEST(r->ranks, r->n_ranks, one,
              one->slow_line && ranks_have(stage->ranks, stage->n_ranks, one->rank),
              one->slow_line->ms - one->slow_line->peers_ms);
  return best ? best->slow_line : NULL;
}

static void add_slow_stage(struct findings *f, const struct pipeline_stage *stage,
                           double saving_s) {
  const struct sampled_line *line = line_of_stage(f->r, stage);
  const char *where = line ? say(f, " Its ranks spend %s a step at %s, the others %s, in samples.",
                                 duration_ms(line->ms).text, words_of_line(f, line),
                                 duration_ms(line->peers_ms).text)
                           : "";
  const char *bubble =
      isnan(f->r->pipeline_bubble)
          ? ""
          : say(f, " The pipeline's bubble is %s; %s cannot be avoided.",
                percent(f->r->pipeline_bubble).text, percent(f->r->pipeline_inherent).text);
  finding_add(f, severity_of(f, per_step_of(f, saving_s)), saving_s,
              say(f, "Stage %u of the pipeline is slow: the others wait for it%s", stage->stage,
                  at_line(f, ",", line)),
              say(f,
                  "If stage %u did its work as fast as the other stages, a step of %s would take "
                  "%s less (replay of the steps).%s%s",
                  stage->stage, duration_ms(f->step_ms).text,
                  duration_ms(per_step_of(f, saving_s)).text, where, bubble),
              line ? say(f,
                         "Look at %s first; if that is the stage's layers, move layers from stage "
                         "%u to the others (the embedding and the loss also count).",
                         words_of_line(f, line), stage->stage)
                   : say(f,
                         "Move layers from stage %u to the others (the embedding and the loss also "
                         "count), if its devices are as fast as theirs.",
                         stage->stage),
              stage->ranks, stage->n_ranks);
}

/* What a step saves if the excess goes: no more than if all ranks were equally fast and messages
 * took no time. */
static double saving_of_excess(struct findings *f) {
  static const struct cure_change balanced[] = {{.kind = CHANGE_EVERY_RANK},
                                                {.kind = CHANGE_COMMUNICATION}};
  double excess_ms = f->r->pipeline_excess_ms;
  return fmin(run_seconds(f, excess_ms), saving_of(f, &(struct cure){balanced, 2}, excess_ms));
}

void rule_pipeline_bubble(struct findings *f) {
  const struct results *r = f->r;
  double saving_s;
  const struct pipeline_stage *limit = limiting_stage(f, &saving_s);
  if (limit && is_told_of_ranks(f, limit, saving_s))
    f->cure = (struct cure){0};
  else if (limit)
    add_slow_stage(f, limit, saving_s);
  if (limit)
    return;
  if (!is_notable(f, r->pipeline_excess_ms))
    return;
  double ratio, saving = saving_of_excess(f);
  /* Where steps were replayed, no stage alone is worth it. */
  const struct pipeline_stage *heavy = f->cure.n ? NULL : slowest_stage(r, &ratio);
  const char *cause = heavy       ? say(f,
                                        " Stage %u works %s longer than the mean of the stages; all "
                                              "others wait for it.",
                                        heavy->stage, percent(ratio).text)
                      : f->cure.n ? " No stage alone holds up the others."
                                  : " The stages work about equally long.";
  finding_add(
      f, severity_of(f, per_step_of(f, saving)), saving,
      say(f, "The pipeline's bubble is %s; %s cannot be avoided", percent(r->pipeline_bubble).text,
          percent(r->pipeline_inherent).text),
      say(f,
          "%.0f stages and %.0f micro-batches a step leave each stage idle %s of the time "
          "while the pipeline fills and drains. It is idle %s: %s more in a step of %s.%s",
          r->pipeline_stages, r->pipeline_micro_batches, percent(r->pipeline_inherent).text,
          percent(r->pipeline_bubble).text, duration_ms(r->pipeline_excess_ms).text,
          duration_ms(f->step_ms).text, cause),
      heavy
          ? say(f,
                "Move layers from stage %u to the others (the embedding and the loss also count).",
                heavy->stage)
          : "Look at the messages between stages: overlap them with compute, send less, or place "
            "neighbouring stages on faster links.",
      heavy ? heavy->ranks : NULL, heavy ? heavy->n_ranks : 0);
}
