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

/* Stages that the others wait for. */
struct limit {
  const u32 *stages, *ranks;
  u32 n, n_ranks;
  double saving_s; /* of the run, if they are as fast as the others */
};

/* Two that are equally slow hide each other: together they save so many times what one does. */
#define MORE_TOGETHER 1.25

static bool has_any(const struct results *r, const bool *of_cure, const u32 *ranks, u32 n) {
  return ANY(r->ranks, r->n_ranks, one, of_cure[one - r->ranks] && ranks_have(ranks, n, one->rank));
}

/* The stages and ranks that a cure makes faster. */
static struct limit limit_of(struct findings *f, const struct cure *cure, double saving_s) {
  const struct results *r = f->r;
  const bool *in = cure->changes[0].ranks;
  u32 *stages = arena_array(f->arena, r->n_pipeline_stage, sizeof(*stages)),
      *ranks = arena_array(f->arena, r->n_ranks, sizeof(*ranks)), n = 0;
  FOR_EACH(r->pipeline_stage, r->n_pipeline_stage, one)
    if (has_any(r, in, one->ranks, one->n_ranks))
      stages[n++] = one->stage;
  u32 n_ranks = LIST_WHERE(ranks, 0, r->n_ranks, i, in[i], r->ranks[i].rank);
  return (struct limit){stages, ranks, n, n_ranks, saving_s};
}

/* The stage that the others wait for, or several: none if that is not worth mentioning. */
static struct limit limiting_stages(struct findings *f) {
  const struct results *r = f->r;
  const struct what_if *best = NULL,
                       *together = FIND(r->what_if, r->n_what_if, row, row->kind == WHAT_IF_STAGES);
  double most = WORTH_MENTIONING * run_seconds(f, f->step_ms);
  FOR_EACH(r->what_if, r->n_what_if, row) {
    double saving = row->kind == WHAT_IF_STAGE ? saving_of(f, &row->cure, NAN) : NAN;
    if (saving >= most) {
      best = row;
      most = saving;
    }
  }
  double saving = together ? saving_of(f, &together->cure, NAN) : NAN;
  if (saving >= (best ? MORE_TOGETHER : 1) * most) {
    best = together;
    most = saving;
  }
  /* Only the cure of the stages that are named belongs to the finding. */
  saving_of(f, best ? &best->cure : NULL, NAN);
  return best ? limit_of(f, &best->cure, most) : (struct limit){.n = 0};
}

static u32 ranks_among(const struct results *r, const struct straggler_group *group,
                       const u32 *ranks, u32 n) {
  return NUMBER_OF(r->ranks, r->n_ranks, one,
                   group->ranks[one - r->ranks] && ranks_have(ranks, n, one->rank));
}

/* Whether all ranks of each stage that has any of the group are in it. */
static bool has_whole_stages(const struct results *r, const struct straggler_group *group) {
  FOR_EACH(r->pipeline_stage, r->n_pipeline_stage, stage) {
    u32 common = ranks_among(r, group, stage->ranks, stage->n_ranks);
    if (common && common < stage->n_ranks)
      return false;
  }
  return true;
}

/* Whether ranks are late for what the model has them do, as a stage with many layers is. */
static bool is_late_by_work(const struct results *r, const struct straggler_group *group) {
  enum straggler_reason reason = r->ranks[group->worst].reason;
  return reason != STRAGGLER_SLOW_INPUT && reason != STRAGGLER_NO_CORE;
}

/* Whether the late ranks are the stages, or one of them, for their work: then these are told. */
static bool is_the_stage(const struct results *r, const struct straggler_group *group,
                         const struct limit *limit) {
  return is_late_by_work(r, group) && has_whole_stages(r, group) &&
         ranks_among(r, group, limit->ranks, limit->n_ranks) == group->n;
}

bool is_slow_stage(struct findings *f, const struct straggler_group *group) {
  struct limit limit = limiting_stages(f);
  f->cure = (struct cure){0};
  return limit.n && is_the_stage(f->r, group, &limit);
}

/* Whether a few ranks of a stage, more ranks than it, or something else than its work make it slow:
 * they are told as stragglers. */
static bool is_told_of_ranks(struct findings *f, const struct limit *limit) {
  FOR_EACH(f->r->straggler_groups, f->r->n_straggler_groups, group) {
    u32 common = ranks_among(f->r, group, limit->ranks, limit->n_ranks);
    if ((common == group->n || common == limit->n_ranks) && group->cure.n &&
        run_seconds(f, group->saving.ms) >= CAUSE_WITHIN * limit->saving_s)
      return !is_the_stage(f->r, group, limit);
  }
  return false;
}

/* The line at which ranks of a stage spend time that others do not; NULL if it is not known. */
static const struct sampled_line *line_of_stage(const struct results *r,
                                                const struct limit *limit) {
  const struct rank_result *best =
      LARGEST(r->ranks, r->n_ranks, one,
              one->slow_line && ranks_have(limit->ranks, limit->n_ranks, one->rank),
              one->slow_line->ms - one->slow_line->peers_ms);
  return best ? best->slow_line : NULL;
}

static void add_slow_stages(struct findings *f, const struct limit *limit) {
  bool one = limit->n == 1;
  const struct sampled_line *line = line_of_stage(f->r, limit);
  const char *where = line ? say(f, " %s ranks spend %s a step at %s, the others %s, in samples.",
                                 one ? "Its" : "Their", duration_ms(line->ms).text,
                                 words_of_line(f, line), duration_ms(line->peers_ms).text)
                           : "";
  const char *bubble =
      isnan(f->r->pipeline_bubble)
          ? ""
          : say(f, " The pipeline's bubble is %s; %s cannot be avoided.",
                percent(f->r->pipeline_bubble).text, percent(f->r->pipeline_inherent).text);
  const char *stages =
      say(f, "stage%s %s", one ? "" : "s", rank_list_in(f->arena, limit->stages, limit->n));
  double step_saving = per_step_of(f, limit->saving_s);
  finding_add(
      f, severity_of(f, step_saving), limit->saving_s,
      say(f, "S%s of the pipeline %s slow: the others wait for %s%s", stages + 1,
          one ? "is" : "are", one ? "it" : "them", at_line(f, ",", line)),
      say(f,
          "If %s did %s work as fast as the other stages, a step of %s would take %s less "
          "(replay of the steps).%s%s",
          stages, one ? "its" : "their", duration_ms(f->step_ms).text,
          duration_ms(step_saving).text, where, bubble),
      line ? say(f,
                 "Look at %s first; if that is the %s layers, move layers from %s to the others "
                 "(the embedding and the loss also count).",
                 words_of_line(f, line), one ? "stage's" : "stages'", stages)
           : say(f,
                 "Move layers from %s to the others (the embedding and the loss also count), if "
                 "%s devices are as fast as theirs.",
                 stages, one ? "its" : "their"),
      limit->ranks, limit->n_ranks);
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
  struct limit limit = limiting_stages(f);
  if (limit.n && is_told_of_ranks(f, &limit))
    f->cure = (struct cure){0};
  else if (limit.n)
    add_slow_stages(f, &limit);
  if (limit.n)
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
