/* SPDX-License-Identifier: MIT
 *
 * What changed between runs.
 */
#include <math.h>

#include "diff/diff_result.h"
#include "report/facts/facts.h"

static void put_medians(struct facts *to, const struct diff_result *diff,
                        enum diff_side_name side) {
  fact_label(to, diff_side_name_words[side]);
  FOR_EACH(diff->runs, diff->n_runs, run)
    if (run->side == side)
      fact_item(to, TONE_PLAIN, "%s", duration_ms(run->step_ms).text);
  fact_item(to, TONE_DIM, "each run's median");
}

static void put_cause(struct facts *to, const struct diff_cause *cause) {
  fact_line(to, "cause", TONE_STRONG, "%s", cause->text);
  if (!cause->n_ranks)
    return;
  fact_item(to, TONE_PLAIN, "%s a step, %s before", duration_ms(cause->after_ms).text,
            duration_ms(cause->before_ms).text);
  if (!isnan(cause->wait_after_ms))
    fact_item(to, TONE_PLAIN, "the others wait %s, %s before",
              duration_ms(cause->wait_after_ms).text, duration_ms(cause->wait_before_ms).text);
}

/* How small a change so many runs can show. */
static void put_detectable(struct facts *to, const struct diff_result *diff) {
  fact_label(to, "can show");
  if (isnan(diff->step_detectable))
    fact_item(to, TONE_PLAIN,
              "no change: %d runs on each side show how much runs of the same kind differ",
              DIFF_LEAST_RUNS);
  else
    fact_item(to, TONE_PLAIN, "changes of %s and more, with %.0f and %.0f runs of this noise",
              percent(diff->step_detectable).text, diff->runs_before, diff->runs_after);
}

static void put_told(struct facts *to, const char *label, const char *const *told, u32 n) {
  for (u32 i = 0; i < n; i++)
    fact_line(to, i ? "" : label, TONE_PLAIN, "%s", told[i]);
}

void facts_of_diff_steps(struct facts *to, const struct results *results) {
  const struct diff_result *diff = results->diff;
  fact_chosen_steps(to, "steps", "before: ", &diff->earlier->model->steps);
  fact_chosen_steps(to, to->n ? "" : "steps", "after: ", &results->model->steps);
  fact_line(to, "median step", TONE_PLAIN, "%s before", duration_ms(diff->step_before_ms).text);
  fact_item(to, TONE_PLAIN, "%s after", duration_ms(diff->step_after_ms).text);
  fact_if_known(to, TONE_STRONG, "%s", signed_percent(diff->step_change));
  if (diff->n_runs > 2) {
    put_medians(to, diff, SIDE_BEFORE);
    put_medians(to, diff, SIDE_AFTER);
  }
  fact_line(to, "verdict", TONE_STRONG, "%s",
            diff->verdict ? step_verdict_words[diff->verdict] : "cannot tell");
  if (diff->reason)
    fact_item(to, TONE_PLAIN, "%s", diff->reason);
  if (!isnan(diff->step_p_value) && diff->verdict != STEPS_UNDECIDED) {
    fact_item(to, TONE_PLAIN, "noise %s explains ±%s", diff_noise_words[diff->noise],
              duration_ms(diff->step_noise_ms).text);
    if (diff->verdict)
      fact_item(to, TONE_PLAIN, "%s", p_value(diff->step_p_value).text);
  }
  put_detectable(to, diff);
  if (diff->cause.text)
    put_cause(to, &diff->cause);
  if (diff->n_explained_by)
    fact_label(to, "most of all");
  FOR_EACH(diff->explained_by, diff->n_explained_by, one)
    fact_item(to, TONE_PLAIN, "%s", *one);
  put_told(to, "gone", diff->gone, diff->n_gone);
  put_told(to, "new", diff->came, diff->n_came);
}
