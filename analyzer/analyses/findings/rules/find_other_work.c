/* SPDX-License-Identifier: MIT
 *
 * Steps that contain something other than training, each kind by itself.
 */
#include "analyses/findings/rules/other_steps.h"

#include <math.h>

#include "analyses/steps/other_work.h"
#include "base/quantity.h"

const char *compare_work(struct findings *f, u32 n_ranks) {
  bool one = n_ranks == 1;
  return say(f,
             "Compare what %s given to compute in these steps with what %s peers are: samples, "
             "their lengths, a branch that only %s.",
             one ? "that rank is" : "these ranks are", one ? "its" : "their",
             one ? "it takes" : "they take");
}

/* NULL: nothing tells. */
static const char *what_work_may_be(struct findings *f, const struct other_work *work) {
  if (!isnan(work->kernels) && work->rank != INDEX_NONE)
    return compare_work(f, 1);
  if (!isnan(work->kernels))
    return "See what the program computes only in these steps: if it is validation, do it less "
           "often, on fewer batches, or in a separate job that reads checkpoints.";
  bool checkpoint = work->meets & MEETING_COPY_OUT && !(work->meets & MEETING_COPY_IN) &&
                    work->copied_bytes >= CHECKPOINT_BYTES;
  if (work->rank != INDEX_NONE || work->host || checkpoint)
    return "If this is a checkpoint: write it in the background (async_save of "
           "torch.distributed.checkpoint), let every rank write its part, so that the others do "
           "not wait, or do it less often.";
  if (work->meets == MEETING_WAIT || work->meets == (MEETING_WAIT | MEETING_COPY_OUT))
    return "If this reads a value, such as a loss that is logged: copy it without waiting "
           "(non_blocking=True) and read it some steps later, or read it less often.";
  if (work->forward_only || work->meets)
    return "If this is validation: do it less often, on fewer batches, or in a separate job that "
           "reads checkpoints.";
  return NULL;
}

static const char *other_work_action(struct findings *f, const struct other_work *work,
                                     const struct step_line *at) {
  const char *may_be = what_work_may_be(f, work);
  if (at->line && at->line->beside)
    return say(f, "Look at what another thread does at %s: training waits for it at %s.%s",
               at->line->beside, at->line->place, about_gil(at->line));
  if (at->line)
    return say(f, "Look at %s first. %s%s", at->line->place,
               may_be ? may_be : "Do that less often, or in parallel with training.",
               about_compiling(f, at->line));
  return may_be ? may_be
                : "Look at what the program does only in these steps: checkpoints, evaluation, "
                  "logging, garbage collection. Do it less often, or in parallel with training.";
}

/* Why no line is named. */
static const char *describe_no_line(struct findings *f, double more_steps) {
  if (isnan(more_steps))
    return "";
  return more_steps > 0
             ? say(f,
                   " The samples are too few to show a line that only these steps run: "
                   "about %.2g more steps would.",
                   more_steps)
             : " No one line explains half of that; there are enough samples to show one.";
}

/* Where most of that is which no line explains alone. */
static const char *describe_inside(struct findings *f, const struct step_line *at) {
  const struct sampled_line *line = at->inside;
  if (!line)
    return "";
  return say(f, ", of it %s at %s of rank %u", duration_ms(line->ms).text,
             line_in_function(f, line), f->a->model->ranks[at->inside_rank].rank);
}

const char *describe_step_line(struct findings *f, const struct step_line *at) {
  const struct sampled_line *line = at->line;
  if (!line)
    return describe_no_line(f, at->more_steps);
  const char *who = at->rank == INDEX_NONE
                        ? "Ranks are then"
                        : say(f, "Rank %u is then", f->a->model->ranks[at->rank].rank);
  const char *waits =
      at->waits ? say(f, "; the others wait at %s", line_in_function(f, at->waits)) : "";
  bool in_some = at->at_line < at->steps;
  const char *some = in_some ? say(f, "in %u of these %u steps, ", at->at_line, at->steps) : "";
  double ms = in_some ? line->ms * at->steps / at->at_line : line->ms;
  return say(f, " %s at %s%s%s: %s%s in samples, in other steps %s%s%s%s.", who,
             line_in_function(f, line), at->calls ? ", with all that it calls" : "",
             called_at(f, line), some, duration_ms(ms).text, duration_ms(line->peers_ms).text,
             at->calls ? "" : busy_with(f, line), describe_inside(f, at), waits);
}

const char *name_step_line(struct findings *f, const struct step_line *at) {
  if (!at->line || at->at_line < STRETCH_INSIDE * at->steps)
    return "";
  bool of_one = at->rank != INDEX_NONE && f->a->model->n_ranks > 1;
  return of_one ? say(f, ", at %s of rank %u", at->line->place, f->a->model->ranks[at->rank].rank)
                : say(f, ", at %s", at->line->place);
}

/* Who takes longer than the others with what all do in these steps. */
static const char *describe_slowest(struct findings *f, const struct other_work *work) {
  if (work->slowest == INDEX_NONE)
    return "";
  return say(f,
             " Rank %u takes longest: in %u of %u of these steps it comes last, and the others "
             "wait %s for it (median).",
             work->slowest, work->slowest_steps, work->slowest_of,
             duration_ms(work->slowest_ms).text);
}

/* The same for a title, where it is a part of the work that is worth a look. */
static const char *name_slowest(struct findings *f, const struct other_work *work) {
  if (work->slowest == INDEX_NONE || work->slowest_ms < OTHER_WORK_OF_CONTENT * work->ms)
    return "";
  return say(f, "; %s of it for rank %u, the slowest", duration_ms(work->slowest_ms).text,
             work->slowest);
}

static const char *describe_kernels(struct findings *f, const struct other_work *work) {
  if (isnan(work->kernels))
    return "";
  const char *who = work->rank != INDEX_NONE ? say(f, "The device of rank %u runs", work->rank)
                                             : "The devices of all ranks run";
  return say(f, " %s %.0f kernels in such a step, in others %.0f.", who, work->kernels,
             work->usual_kernels);
}

static void add_finding(struct findings *f, u32 kind) {
  const struct other_work *work = &f->r->other_work[kind];
  struct step_line at;
  step_line_of_work(f->a, kind, &at);
  const char *where = describe_step_line(f, &at);
  const char *calls =
      work->collective
          ? say(f, " They contain a call of %s that hardly any other step has.", work->collective)
          : "";
  double share = work->sum_s / f->r->analysed_s;
  f->spent_at = at.line && at.at_line >= STRETCH_INSIDE * at.steps ? at.line : NULL;
  finding_add(
      f, share >= WORTH_MENTIONING ? SEVERITY_WARNING : SEVERITY_INFO, work->sum_s,
      say(f, "%c%s%s%s", work->name[0] - 32, work->name + 1, name_step_line(f, &at),
          name_slowest(f, work)),
      say(f,
          "A step of training takes %s (median), these %s longer; together %s, %s of the time "
          "looked at.%s%s%s%s They do not count as training steps: medians, waits, stragglers and "
          "all "
          "other findings leave them out. The saving is their extra time.",
          duration_ms(f->r->step_median_ms).text, duration_ms(work->ms).text,
          duration_s(work->sum_s).text, percent(share).text, calls, describe_kernels(f, work),
          where, describe_slowest(f, work)),
      other_work_action(f, work, &at), work->host ? work->of_host : &work->rank,
      work->host ? work->n_of_host : work->rank != INDEX_NONE);
}

void add_other_work_findings(struct findings *f) {
  for (u32 i = 0; i < f->r->n_other_work; i++)
    add_finding(f, i);
}
