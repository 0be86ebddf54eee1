/* SPDX-License-Identifier: MIT
 *
 * Steps that differ from the others: training steps that take longer than the typical one, and what
 * they take longer for. Those that contain something other than training are of find_other_work.c.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/rules/other_steps.h"
#include "analyses/queries.h"
#include "analyses/steps/other_work.h"
#include "analyses/steps/step_kernels.h"
#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/statistics.h"

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

/* What most of the time is that long steps take longer, as far as the record tells. */
struct excess {
  struct step_line at;         /* what they run that the others do not */
  double computes, gets_input; /* shares of it in which all devices compute, all wait for input */
  struct more_kernels kernels; /* of all devices */
  struct longer_compute of_ranks;
  u32 *ranks, n_ranks; /* that compute longer, or the one that is at the line */
  u32 skipped;         /* so many hold the backward passes of several steps */
  bool of_work, of_input;
};

/* The steps that stand out, their period if they have one, the longest, and whether they differ in
 * something else. */
static const char *describe_long_steps(struct findings *f, const struct long_steps *longer,
                                       u32 worst, const struct excess *excess,
                                       struct arena *scratch) {
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
  bool shown = excess->at.line || excess->n_ranks || excess->of_input ||
               (excess->of_work && excess->kernels.more);
  const char *how = excess->skipped
                        ? say(f,
                              " %u of them hold the backward passes of several steps: the "
                              "optimizer did not run between these.",
                              excess->skipped)
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

static bool *mark_long_steps(const struct findings *f, const struct long_steps *longer,
                             struct arena *scratch) {
  bool *is_long = arena_array(scratch, f->a->model->steps.n, sizeof(*is_long));
  FOR_EACH(longer->at, longer->n, one)
    is_long[one->step] = true;
  return is_long;
}

/* What these steps run that the others do not. */
static void line_of_long_steps(struct findings *f, const struct long_steps *longer,
                               struct arena *scratch, struct step_line *at) {
  double *excess = arena_array(scratch, longer->n, sizeof(*excess));
  u32 n = LIST_KNOWN(excess, 0, longer->n, i, longer->at[i].excess_ms);
  step_line_of_long_steps(f->a, mark_long_steps(f, longer, scratch), median_of(excess, n), at);
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

static void find_excess(struct findings *f, const struct long_steps *longer, struct arena *scratch,
                        struct excess *out) {
  const struct analysis *a = f->a;
  double ms = MEAN_KNOWN(0, longer->n, i, longer->at[i].excess_ms);
  const bool *is_long = mark_long_steps(f, longer, scratch);
  *out = (struct excess){.computes = share_in_which_all(a, device_computes_ms, longer, scratch),
                         .gets_input = share_in_which_all(a, host_gets_input_ms, longer, scratch),
                         .kernels = find_more_kernels(a, is_long, ms, INDEX_NONE),
                         .ranks = arena_array(scratch, a->model->n_ranks, sizeof(u32)),
                         .skipped = count_skipped(a, longer, scratch)};
  line_of_long_steps(f, longer, scratch, &out->at);
  out->of_work = !out->skipped && out->computes >= REASON_SHARE;
  bool open = !out->skipped && !out->of_work && !out->at.line;
  out->of_input = open && out->gets_input >= REASON_SHARE;
  if (open && !out->of_input)
    out->n_ranks = ranks_that_compute_longer(a, is_long, ms, out->ranks, &out->of_ranks);
  if (2 * out->n_ranks > a->model->n_ranks) { /* the steps do, and not some ranks */
    out->of_work = true;
    out->n_ranks = 0;
  }
  if (out->at.line && out->at.rank != INDEX_NONE)
    out->ranks[out->n_ranks++] = a->model->ranks[out->at.rank].rank;
}

/* " The device of rank 2 computes 12.3 ms in such a step or in the one before, in others 7.90 ms:
 * the others wait for that. It runs 25 kernels then, in others 13." */
static const char *describe_of_ranks(struct findings *f, const struct excess *excess) {
  const struct longer_compute *of = &excess->of_ranks;
  bool one = excess->n_ranks == 1;
  return say(f,
             " %s of %s %s %s in such a step or in the one before, in others %s: the others "
             "wait for that.%s",
             one ? "The device" : "The devices",
             ranks_in(f->a->arena, excess->ranks, excess->n_ranks), one ? "computes" : "compute",
             duration_ms(of->in_them_ms).text, duration_ms(of->usual_ms).text,
             !of->kernels.more
                 ? ""
                 : say(f, " %s %.0f kernels then, in others %.0f.", one ? "It runs" : "They run",
                       of->kernels.in_them, of->kernels.usual));
}

static const char *describe_excess(struct findings *f, const struct excess *excess) {
  const struct more_kernels *kernels = &excess->kernels;
  if (excess->skipped)
    return "";
  if (excess->of_work && kernels->more)
    return say(
        f,
        " In %s of that time the devices of all ranks compute: they run %.0f kernels in such "
        "a step, in others %.0f. These steps hold more work.",
        percent(excess->computes).text, kernels->in_them, kernels->usual);
  if (excess->of_work)
    return say(f,
               " In %s of that time the devices of all ranks compute: these steps hold more work, "
               "or all devices are slower then.%s",
               percent(excess->computes).text,
               isnan(kernels->usual) ? ""
               : kernels->in_them > kernels->usual
                   ? say(f,
                         " They run %.0f kernels, in others %.0f, which explains less than half.",
                         kernels->in_them, kernels->usual)
                   : say(f, " They run no more kernels (%.0f, in others %.0f).", kernels->in_them,
                         kernels->usual));
  if (excess->of_input)
    return say(f, " In %s of that time they wait for their input.",
               percent(excess->gets_input).text);
  if (excess->n_ranks && !excess->at.line)
    return describe_of_ranks(f, excess);
  return describe_step_line(f, &excess->at);
}

static const char *name_excess(struct findings *f, const struct excess *excess) {
  return excess->skipped                           ? ": in most the optimizer was left out"
         : excess->of_work && excess->kernels.more ? ": they hold more work"
         : excess->n_ranks && !excess->at.line
             ? say(f, ": %s %s%s then", ranks_in(f->a->arena, excess->ranks, excess->n_ranks),
                   excess->of_ranks.kernels.more ? excess->n_ranks == 1 ? "has" : "have"
                   : excess->n_ranks == 1        ? "computes longer"
                                                 : "compute longer",
                   excess->of_ranks.kernels.more ? " more work" : "")
             : name_step_line(f, &excess->at);
}

static const char *excess_action(struct findings *f, const struct excess *excess) {
  const struct sampled_line *line = excess->at.line;
  if (excess->of_work && excess->kernels.more)
    return "See what they are given to compute: more micro-batches, passes or tokens, samples or "
           "sequences of other lengths (bucket them by length, or pack them), prompts between "
           "tokens.";
  if (excess->of_work)
    return "See what they are given to compute: samples or sequences of other lengths (bucket "
           "them by length, or pack them), prompts between tokens. If that is as usual, "
           "compare the clocks of the devices then.";
  if (excess->of_input)
    return "Look at what makes these batches slow to prepare: larger or damaged samples, the "
           "storage, workers that begin anew with each epoch (persistent_workers). Batches that "
           "are prepared further ahead (num_workers, prefetch_factor) bridge some of it.";
  if (excess->skipped)
    return "A gradient scaler leaves the optimizer out where gradients overflow: if that is why, "
           "print its scale, and train in bf16 or with a smaller scale. If the program adds up "
           "gradients of more batches there, such steps are as they should be.";
  if (excess->n_ranks && !line)
    return say(f,
               "%s If that is evaluation for all: let each rank do its part, or do it less often.",
               compare_work(f, excess->n_ranks));
  return say(f,
             "Look at %swhat happens only in those steps: checkpoints, evaluation, logging, "
             "garbage collection (gc.freeze, or collect at fixed steps), input of very unequal "
             "length, other jobs on the machine or network.%s%s",
             look_first(f, line), about_compiling(f, line), about_gil(line));
}

static void add_long_steps_finding(struct findings *f, const struct deviations *of,
                                   struct arena *scratch) {
  const struct long_steps *longer = &of->longer;
  const struct results *r = f->r;
  struct excess excess;
  find_excess(f, longer, scratch, &excess);
  bool of_work = excess.of_work;
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
          name_excess(f, &excess)),
      say(f, "Median %s, 95th percentile %s, coefficient of variation %s. %s%s%s%s",
          duration_ms(of->median_ms).text, duration_ms(of->p95_ms).text,
          percent(of->variation).text,
          r->n_turns ? "What some steps hold in turn is taken away from them here. " : "",
          of->straggler ? "What some take longer for a rank that is late in them is not counted. "
                        : "",
          describe_long_steps(f, longer, of->worst, &excess, scratch), describe_excess(f, &excess)),
      excess_action(f, &excess), excess.ranks, excess.n_ranks);
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
  add_other_work_findings(f);
  SCOPED_ARENA struct arena scratch = {0};
  struct deviations of;
  if (find_jitter(f, &scratch, &of))
    add_long_steps_finding(f, &of, &scratch);
}
