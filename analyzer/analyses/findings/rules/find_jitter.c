/* SPDX-License-Identifier: MIT
 *
 * Steps that differ from the others: steps that contain something other than training, each kind by
 * itself, and training steps that take longer than the typical one.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/steps/other_work.h"
#include "analyses/steps/step_kernels.h"
#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "base/statistics.h"

/* NULL: nothing tells. */
static const char *what_work_may_be(const struct other_work *work) {
  if (!isnan(work->kernels) && work->rank != INDEX_NONE)
    return "Compare what that rank is given to compute in these steps with what its peers are: "
           "samples, their lengths, a branch that only it takes.";
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
  const char *may_be = what_work_may_be(work);
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

/* " Rank 0 is then at save.py:12 (write), called at ...: 180 ms in samples, in other steps 0 ms
 * ..." */
static const char *describe_step_line(struct findings *f, const struct step_line *at) {
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

/* For a title: where, and on which rank if there are others; nothing where only some of the steps
 * are at that line. */
static const char *name_step_line(struct findings *f, const struct step_line *at) {
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

static void add_other_work_finding(struct findings *f, u32 kind) {
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

/* Lengths of training steps, less what they take longer for what they hold in turn, or for a
 * straggler that is late in them only: that is told by its own finding. */
struct deviations {
  double median_ms, p95_ms, variation;
  double lost_ms; /* above the median, in all */
  struct long_steps longer;
  u32 worst;      /* INDEX_NONE */
  bool straggler; /* took some */
};

/* The backward passes of a step, of the first rank that has any. */
static u32 backwards_in(const struct analysis *a, u32 step) {
  u32 n = 0;
  for (u32 rank = 0; a->model->phases && rank < a->model->n_ranks && !n; rank++)
    n = a->model->phases[cell_of_step(a->model, step, rank)].backwards;
  return n;
}

/* How many of the long steps hold the backward passes of two steps or more, as when the optimizer
 * did not run between these; 0 if most hold no more than others. */
static u32 count_skipped(const struct analysis *a, const struct long_steps *longer,
                         struct arena *scratch) {
  double *all = arena_array(scratch, a->n_steps, sizeof(*all));
  for (u32 i = 0; i < a->n_steps; i++)
    all[i] = backwards_in(a, a->first_step + i);
  u32 usual = (u32)median_of(all, a->n_steps);
  u32 skipped =
      NUMBER_OF(longer->at, longer->n, one, usual && backwards_in(a, one->step) >= 2 * usual);
  return skipped >= REASON_SHARE * longer->n ? skipped : 0;
}

/* Whether each of these steps holds more collectives than most steps. */
static bool have_more_calls(const struct analysis *a, const struct long_steps *longer,
                            const struct recurrence *of, struct arena *scratch) {
  const struct model *model = a->model;
  double *calls = arena_array(scratch, model->steps.n, sizeof(*calls));
  FOR_EACH(model->collectives, model->n_collectives, one)
    if (one->step >= 0)
      calls[one->step] += one->n_arrivals > 0;
  double *all = arena_array(scratch, a->n_steps, sizeof(*all));
  memcpy(all, calls + a->first_step, a->n_steps * sizeof(*all));
  double usual = median_of(all, a->n_steps);
  return ALL(longer->at, longer->n, one,
             !recurrence_has(of, one->step) || calls[one->step] > usual);
}

/* The steps that stand out, their period if they have one, the longest, and what `skipped` of them
 * are. `shown`: a line shows what they hold. */
static const char *describe_long_steps(struct findings *f, const struct long_steps *longer,
                                       u32 worst, u32 skipped, bool shown, struct arena *scratch) {
  struct arena *arena = f->a->arena;
  double *step = arena_array(scratch, longer->n, sizeof(double));
  struct recurrence r;
  u32 first = f->a->model->steps.first;
  for (u32 i = 0; i < longer->n; i++)
    step[i] = first + longer->at[i].step;
  const char *list = describe_steps(arena, step, longer->n);
  const struct recurrence_wanted wanted = {OTHER_WORK_PERIOD, UINT32_MAX, 0,
                                           OTHER_WORK_SIGNIFICANCE};
  bool recur = other_find_recurrence(longer, &wanted, &r);
  const char *how = skipped ? say(f,
                                  " %u of them hold the backward passes of several steps: the "
                                  "optimizer did not run between these.",
                                  skipped)
                    : recur ? say(f, " %u of them come every %u steps, from step %u on%s.", r.hits,
                                  r.period, first + r.first,
                                  shown ? ""
                                  : have_more_calls(f->a, longer, &r, scratch)
                                      ? "; they hold more collectives than most steps"
                                      : "; nothing recorded shows how they differ from the others")
                            : "";
  return say(f, "They are %s; the longest is step %u with %s.%s", list, first + worst,
             duration_ms(f->r->step_ms[worst]).text, how);
}

/* What to look at before all else. */
static const char *look_first(struct findings *f, const struct sampled_line *line) {
  if (line && line->beside)
    return say(f, "what another thread does at %s, and at ", line->beside);
  return line ? say(f, "%s first, and at ", line->place) : "";
}

/* What these steps run that the others do not. */
static void line_of_long_steps(struct findings *f, const struct long_steps *longer,
                               struct arena *scratch, struct step_line *at) {
  bool *is_long = arena_array(scratch, f->a->model->steps.n, sizeof(*is_long));
  double *excess = arena_array(scratch, longer->n, sizeof(*excess));
  for (u32 i = 0; i < longer->n; i++) {
    is_long[longer->at[i].step] = true;
    excess[i] = longer->at[i].excess_ms;
  }
  step_line_of_long_steps(f->a, is_long, median_of(excess, longer->n), at);
}

/* What a rank does for so long in a step; NAN where it is not known. */
typedef double work_in_step(const struct analysis *a, u32 rank, u32 step);

static double device_computes_ms(const struct analysis *a, u32 rank, u32 step) {
  return a->ranks[rank].on_gpu ? a->compute_ms[(size_t)rank * a->n_steps + step - a->first_step]
                               : (double)NAN;
}

static double host_gets_input_ms(const struct analysis *a, u32 rank, u32 step) {
  return a->model->phases ? phase_ms(a->model, rank, step, TSCOPE_PHASE_DATA) : (double)NAN;
}

/* How much longer than usual each rank does it in a step, at least; NAN if it is not known of all.
 */
static double longer_on_all_ms(const struct analysis *a, work_in_step *does, const double *usual,
                               u32 step) {
  double least = INFINITY;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    double ms = does(a, rank, step);
    if (isnan(ms))
      return NAN;
    least = fmin(least, ms - usual[rank]);
  }
  return least;
}

/* The share of what long steps take longer in which all ranks do it. 0 if that is not known. */
static double share_in_which_all(const struct analysis *a, work_in_step *does,
                                 const struct long_steps *longer, struct arena *scratch) {
  double *usual = arena_array(scratch, a->model->n_ranks, sizeof(*usual));
  double *ms = arena_array(scratch, a->n_steps, sizeof(*ms)), excess = 0, done = 0;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    u32 n = LIST_KNOWN(ms, a->first_step, a->first_step + a->n_steps, step, does(a, rank, step));
    usual[rank] = median_of(ms, n);
  }
  FOR_EACH(longer->at, longer->n, one) {
    excess += one->excess_ms;
    done += fmin(fmax(0, longer_on_all_ms(a, does, usual, one->step)), one->excess_ms);
  }
  return excess > 0 ? done / excess : 0;
}

/* What most of the time is that long steps take longer. */
static const char *describe_excess(struct findings *f, const struct step_line *at, double computes,
                                   const struct more_kernels *kernels, double gets_input) {
  if (computes >= REASON_SHARE && kernels->more)
    return say(
        f,
        " In %s of that time the devices of all ranks compute: they run %.0f kernels in such "
        "a step, in others %.0f. These steps hold more work.",
        percent(computes).text, kernels->in_them, kernels->usual);
  if (computes >= REASON_SHARE)
    return say(f,
               " In %s of that time the devices of all ranks compute: these steps hold more work, "
               "or all devices are slower then.%s",
               percent(computes).text,
               isnan(kernels->usual) ? ""
               : kernels->in_them > kernels->usual
                   ? say(f,
                         " They run %.0f kernels, in others %.0f, which explains less than half.",
                         kernels->in_them, kernels->usual)
                   : say(f, " They run no more kernels (%.0f, in others %.0f).", kernels->in_them,
                         kernels->usual));
  if (!at->line && gets_input >= REASON_SHARE)
    return say(f, " In %s of that time they wait for their input.", percent(gets_input).text);
  return describe_step_line(f, at);
}

static struct more_kernels kernels_of_long_steps(const struct findings *f,
                                                 const struct long_steps *longer,
                                                 struct arena *scratch) {
  bool *them = arena_array(scratch, f->a->model->steps.n, sizeof(*them));
  FOR_EACH(longer->at, longer->n, one)
    them[one->step] = true;
  double ms = MEAN_KNOWN(0, longer->n, i, longer->at[i].excess_ms);
  return find_more_kernels(f->a, them, ms, INDEX_NONE);
}

static void add_long_steps_finding(struct findings *f, const struct deviations *of,
                                   struct arena *scratch) {
  const struct long_steps *longer = &of->longer;
  const struct results *r = f->r;
  u32 skipped = count_skipped(f->a, longer, scratch);
  struct step_line at;
  line_of_long_steps(f, longer, scratch, &at);
  const char *which = describe_long_steps(f, longer, of->worst, skipped, at.line != NULL, scratch);
  double computes = share_in_which_all(f->a, device_computes_ms, longer, scratch);
  double gets_input = share_in_which_all(f->a, host_gets_input_ms, longer, scratch);
  bool of_work = !skipped && computes >= REASON_SHARE;
  bool of_input = !skipped && !of_work && !at.line && gets_input >= REASON_SHARE;
  struct more_kernels kernels = kernels_of_long_steps(f, longer, scratch);
  const char *where = skipped ? "" : describe_excess(f, &at, computes, &kernels, gets_input);
  u32 rank = at.rank != INDEX_NONE ? f->a->model->ranks[at.rank].rank : INDEX_NONE;
  /* The replay has some of the steps; what they lost is known of all. */
  static const struct cure_change long_steps = {.kind = CHANGE_LONG_STEPS};
  if (r->path_steps_used == f->a->n_training && !of_work)
    saving_of(f, &(struct cure){&long_steps, 1}, NAN);
  finding_add(
      f,
      !of_work && of->lost_ms >= SAVING_ALARM * r->analysed_s * 1e3 ? SEVERITY_CRITICAL
                                                                    : SEVERITY_WARNING,
      of_work ? (double)NAN : of->lost_ms / 1e3,
      say(f, "%u of %u steps%s take at least %s longer than the typical one%s", longer->n,
          f->a->n_training, r->n_other_work ? " of training" : "", percent(JITTER_TAIL).text,
          skipped                   ? ": in most the optimizer was left out"
          : of_work && kernels.more ? ": they hold more work"
                                    : name_step_line(f, &at)),
      say(f, "Median %s, 95th percentile %s, coefficient of variation %s. %s%s%s%s",
          duration_ms(of->median_ms).text, duration_ms(of->p95_ms).text,
          percent(of->variation).text,
          r->n_turns ? "What some steps hold in turn is taken away from them here. " : "",
          of->straggler ? "What some take longer for a rank that is late in them is not counted. "
                        : "",
          which, where),
      of_work && kernels.more
          ? "See what they are given to compute: more micro-batches, passes or tokens, samples or "
            "sequences of other lengths (bucket them by length, or pack them), prompts between "
            "tokens."
      : of_work
          ? "See what they are given to compute: samples or sequences of other lengths (bucket "
            "them by length, or pack them), prompts between tokens. If that is as usual, "
            "compare the clocks of the devices then."
      : of_input
          ? "Look at what makes these batches slow to prepare: larger or damaged samples, the "
            "storage, workers that begin anew with each epoch (persistent_workers). Batches that "
            "are prepared further ahead (num_workers, prefetch_factor) bridge some of it."
      : skipped
          ? "A gradient scaler leaves the optimizer out where gradients overflow: if that is why, "
            "print its scale, and train in bf16 or with a smaller scale. If the program adds up "
            "gradients of more batches there, such steps are as they should be."
          : say(f,
                "Look at %swhat happens only in those steps: checkpoints, evaluation, logging, "
                "garbage collection (gc.freeze, or collect at fixed steps), input of very unequal "
                "length, other jobs on the machine or network.%s%s",
                look_first(f, at.line), about_compiling(f, at.line), about_gil(at.line)),
      &rank, at.line && at.rank != INDEX_NONE);
}

/* The median of the training steps that hold the same in turn, for each of them. */
static double *usual_lengths(const struct findings *f, struct arena *scratch) {
  const struct analysis *a = f->a;
  double *usual = arena_array(scratch, f->r->n_turns, sizeof(*usual));
  double *ms = arena_array(scratch, a->n_steps, sizeof(*ms));
  for (u32 turn = 0; turn <= f->r->n_turns; turn++) {
    u32 n = LIST_WHERE(ms, a->first_step, a->first_step + a->n_steps, step,
                       analysis_is_training(a, step) && analysis_turn_of(a, step) == turn &&
                           !isnan(f->r->step_ms[step]),
                       f->r->step_ms[step]);
    usual[turn] = median_of(ms, n);
  }
  return usual;
}

/* The steps in which ranks meet. */
static bool *find_meetings(const struct findings *f, struct arena *scratch) {
  const struct model *model = f->a->model;
  bool *meets = arena_array(scratch, model->steps.n, sizeof(*meets));
  FOR_EACH(model->collectives, model->n_collectives, one)
    if (one->step >= 0 && one->n_arrivals > 1 && op_is_barrier_like(one->op))
      meets[one->step] = true;
  return meets;
}

/* By how much the latest straggler is late in each analysed step: of those that are late in some
 * steps only; and of those that meet others in some steps only, where these wait for what was lost
 * in all of the steps before. */
static double *late_in_steps(const struct findings *f, struct arena *scratch, bool *any) {
  const struct analysis *a = f->a;
  double *ms = arena_array(scratch, a->n_steps, sizeof(*ms));
  const bool *meets = find_meetings(f, scratch);
  FOR_EACH(f->r->ranks, f->r->n_ranks, rank) {
    bool meets_rarely = !rank->of_path && 2 * rank->met_steps < a->n_training;
    double late = rank->late_at_times ? rank->late_a_step_ms : rank->lateness_ms;
    for (u32 i = 0; i < a->n_steps && rank->straggler && (rank->late_at_times || meets_rarely);
         i++) {
      u32 step = a->first_step + i;
      if (straggler_is_late_in(rank, a->model->steps.first + step) &&
          (rank->late_at_times || meets[step])) {
        ms[i] = fmax(ms[i], late);
        *any = true;
      }
    }
  }
  return ms;
}

static void find_deviations(const struct findings *f, struct arena *scratch,
                            struct deviations *out) {
  const struct analysis *a = f->a;
  bool straggler = false;
  const double *late = late_in_steps(f, scratch, &straggler);
  const double *usual = usual_lengths(f, scratch);
  double *ms = arena_array(scratch, a->n_steps, sizeof(*ms)), most = 0;
  u32 n = 0;
  *out = (struct deviations){
      .median_ms = usual[0],
      .longer = {.first = a->first_step,
                 .end = a->first_step + a->n_steps,
                 .at = arena_array(scratch, a->n_steps, sizeof(struct long_step))},
      .worst = INDEX_NONE,
      .straggler = straggler};
  for (u32 step = out->longer.first; step < out->longer.end; step++) {
    u32 turn = analysis_turn_of(a, step);
    double more = f->r->step_ms[step] - usual[turn];
    more -= turn ? 0 : fmin(fmax(more, 0), late[step - a->first_step]);
    if (isnan(more) || !analysis_is_training(a, step))
      continue;
    ms[n++] = usual[0] + more;
    out->lost_ms += fmax(0, more);
    if (more >= JITTER_TAIL * usual[0])
      out->longer.at[out->longer.n++] =
          (struct long_step){.step = step, .excess_ms = more, .is_long = true};
    out->worst = out->worst == INDEX_NONE || more > most ? step : out->worst;
    most = fmax(most, more);
  }
  out->variation = variation_of(ms, n);
  out->p95_ms = quantile_of(ms, n, 0.95);
}

static bool find_jitter(const struct findings *f, struct arena *scratch, struct deviations *of) {
  if (f->a->whole_run || f->a->n_training < JITTER_MIN_STEPS)
    return false;
  find_deviations(f, scratch, of);
  return of->variation >= JITTER_VARIATION && of->p95_ms / of->median_ms - 1 >= JITTER_TAIL;
}

bool long_steps_are_of(struct findings *f, u32 rank, struct step_line *at, double *lost_s) {
  SCOPED_ARENA struct arena scratch = {0};
  struct deviations of;
  if (!find_jitter(f, &scratch, &of))
    return false;
  line_of_long_steps(f, &of.longer, &scratch, at);
  *lost_s = of.lost_ms / 1e3;
  return at->line && at->rank == rank;
}

void rule_jitter(struct findings *f) {
  for (u32 i = 0; i < f->r->n_other_work; i++)
    add_other_work_finding(f, i);
  SCOPED_ARENA struct arena scratch = {0};
  struct deviations of;
  if (find_jitter(f, &scratch, &of))
    add_long_steps_finding(f, &of, &scratch);
}
