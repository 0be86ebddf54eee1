/* SPDX-License-Identifier: MIT
 *
 * Step time, and whether its change is more than noise: noise between runs of a kind if each side
 * has several; else noise within the two runs, which can only explain a change and never prove one.
 */
#include <math.h>

#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "diff/diff.h"

const bool *diff_training_steps(struct arena *arena, const struct results *r) {
  u32 n = r->model->steps.n;
  bool *trains = arena_array(arena, n, sizeof(*trains));
  for (u32 step = first_analysed_step(r); step < n; step++)
    trains[step] = true;
  FOR_EACH(r->other_work, r->n_other_work, work)
    FOR_EACH(work->step, work->n_steps, step)
      trains[(u32)*step - r->model->steps.first] = false;
  return trains;
}

double *diff_step_times(struct arena *arena, const struct results *r, u32 *n) {
  const bool *trains = diff_training_steps(arena, r);
  double *values = arena_array(arena, r->n_step_ms, sizeof(*values));
  *n = LIST_KNOWN(values, 0, r->n_step_ms, i, trains[i] ? r->step_ms[i] : NAN);
  return values;
}

static void noise_within(struct diffing *d) {
  struct diff_result *out = d->out;
  u32 n_before, n_after;
  double *before = diff_step_times(&d->scratch, d->before, &n_before);
  double *after = diff_step_times(&d->scratch, d->after, &n_after);
  out->step_p_value = diff_noise(before, n_before, after, n_after, &out->step_noise_ms);
  if (isnan(out->step_p_value))
    out->reason = say(d,
                      "%u and %u steps: with one run on each side, each needs at least %d steps to "
                      "know even its own noise",
                      n_before, n_after, (int)DIFF_LEAST_STEPS);
}

/* Too much to be called the same, and too little to be shown: more runs would tell. */
static bool is_doubtful(struct diffing *d) {
  struct diff_result *out = d->out;
  double change = fabs(out->step_change);
  if (!d->several || change < DIFF_LEAST_CHANGE ||
      (out->step_p_value >= DIFF_DOUBT && change < WORTH_MENTIONING))
    return false;
  u32 runs = MIN(d->sides[BEFORE]->n, d->sides[AFTER]->n);
  double times = out->step_noise_ms / fabs(out->step_after_ms - out->step_before_ms);
  double wanted = ceil(runs * times * times);
  const char *about = wanted > DIFF_MOST_ADVISED ? "more than" : "about";
  out->reason =
      say(d,
          "noise alone makes a change of %s in %.0f of 100 such comparisons; %s %.0f runs on "
          "each side would decide",
          percent(change).text, 100 * out->step_p_value, about, fmin(wanted, DIFF_MOST_ADVISED));
  return true;
}

static enum step_verdict judge_steps(struct diffing *d) {
  struct diff_result *out = d->out;
  if (isnan(out->step_p_value))
    return STEPS_UNJUDGED;
  if (out->step_p_value >= DIFF_SIGNIFICANCE || fabs(out->step_change) < DIFF_LEAST_CHANGE)
    return is_doubtful(d) ? STEPS_UNDECIDED : STEPS_SAME;
  if (!d->several) {
    out->reason =
        say(d, "%u and %u runs: %d on each side show how much runs of the same kind differ",
            d->sides[BEFORE]->n, d->sides[AFTER]->n, (int)DIFF_LEAST_RUNS);
    return STEPS_UNJUDGED;
  }
  return out->step_change > 0 ? STEPS_SLOWER : STEPS_FASTER;
}

void diff_steps(struct diffing *d) {
  struct diff_result *out = d->out;
  u32 n_before = d->sides[BEFORE]->n, n_after = d->sides[AFTER]->n, n = 0;
  double *before = arena_array(&d->scratch, out->n_runs, sizeof(*before)),
         *after = before + n_before;
  FOR_EACH(out->runs, out->n_runs, run) /* those before come first */
    before[n++] = run->step_ms;
  out->reason = NULL;
  out->step_before_ms = diff_mean(before, n_before);
  out->step_after_ms = diff_mean(after, n_after);
  out->step_change = out->step_after_ms / out->step_before_ms - 1;
  if (isnan(out->step_change)) {
    out->reason = "step times are not known on both sides";
  } else if (d->several) {
    out->step_p_value = diff_noise_between(before, n_before, after, n_after, &out->step_noise_ms);
    if (isnan(out->step_p_value))
      out->reason =
          say(d, "fewer than %d runs on one side have known step times", (int)DIFF_LEAST_RUNS);
  } else {
    noise_within(d);
  }
  if (!isnan(out->step_p_value) || d->several)
    out->noise = d->several ? NOISE_BETWEEN_RUNS : NOISE_WITHIN_RUNS;
  if (d->several)
    out->step_detectable = out->step_noise_ms / out->step_before_ms;
  out->verdict = judge_steps(d);
}
