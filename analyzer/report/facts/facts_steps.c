/* SPDX-License-Identifier: MIT
 *
 * Steps, and the values that the job reports of them.
 */
#include <math.h>
#include <stdio.h>

#include "analyses/thresholds.h"
#include "report/facts/facts.h"

enum { CLUSTERS_SHOWN = 4 };

/* Less than this is the time of the optimizer's last kernels after its call returned. */
#define AHEAD_NOTABLE 0.05

/* A host that never waits for its GPU: its steps end when the GPU has finished them. */
static void put_host_ahead(struct facts *to, const struct results *results) {
  bool whole_steps = results->host_ahead_max_steps >= 1;
  if (!whole_steps && !(results->host_ahead_ms >= AHEAD_NOTABLE * results->step_median_ms &&
                        !results->model->steps.by_collectives))
    return;
  fact_line(to, "host ahead", TONE_PLAIN, "median %s", duration_ms(results->host_ahead_ms).text);
  fact_item(to, TONE_PLAIN, "at most %s", duration_ms(results->host_ahead_max_ms).text);
  if (whole_steps)
    fact_item(to, TONE_PLAIN, "%s", plural(results->host_ahead_max_steps, "step").text);
  fact_item(to, TONE_DIM, "a step ends when the GPU has finished it");
}

/* Steps that contain something else are named, because no other figure includes them. */
static void put_other_work(struct facts *to, const struct results *results) {
  for (u32 i = 0; i < results->n_other_work; i++) {
    const struct other_work *work = &results->other_work[i];
    fact_line(to, i ? "" : "besides", TONE_PLAIN, "%s", work->name);
    fact_item(to, TONE_DIM, "%s in all", duration_s(work->sum_s).text);
  }
}

/* What every n-th step of training holds besides. */
static void put_turns(struct facts *to, const struct results *results) {
  for (u32 i = 0; i < results->n_turns; i++) {
    const struct step_turn *turn = &results->turns[i];
    fact_line(to, i ? "" : "in turn", TONE_PLAIN, "%s", turn->name);
    if (turn->at)
      fact_item(to, TONE_PLAIN, "at %s", turn->at);
    fact_item(to, TONE_DIM, "%s in all · part of training", duration_s(turn->sum_s).text);
  }
}

static void put_kinds(struct facts *to, const struct results *results) {
  for (u32 i = 0; i < results->n_step_kinds; i++) {
    const struct step_kind_result *kind = &results->step_kinds[i];
    fact_line(to, i ? "" : "of a server", TONE_PLAIN, "%s %s", count_of(kind->count).text,
              kind->kind);
    fact_item(to, TONE_PLAIN, "median %s", duration_ms(kind->median_ms).text);
    fact_item(to, TONE_PLAIN, "p95 %s", duration_ms(kind->p95_ms).text);
  }
}

/* Of steps of training; what is done besides takes time as well. */
static void put_throughput(struct facts *to, const struct results *results) {
  double per_second = results->step_mean_ms > 0 ? 1e3 / results->step_mean_ms : NAN;
  double in_all = results->training_steps / results->analysed_s;
  fact_line(to, "throughput", TONE_PLAIN, "%s", rate(per_second, "steps").text);
  if (results->tokens_per_step > 0)
    fact_item(to, TONE_PLAIN, "%s", rate(per_second * results->tokens_per_step, "tokens").text);
  if (results->n_other_work && in_all < (1 - WORTH_MENTIONING) * per_second)
    fact_item(to, TONE_PLAIN, "with what is besides %s", rate(in_all, "steps").text);
}

void facts_of_steps(struct facts *to, const struct results *results) {
  const struct steps *steps = &results->model->steps;
  fact_label(to, "steps");
  u32 warmup = first_analysed_step(results);
  fact_item(to, TONE_PLAIN, "%s analysed", count_of(results->step_count - warmup).text);
  if (warmup > 0)
    fact_item(to, TONE_PLAIN, "the first %s left out as warm-up", count_of(warmup).text);
  fact_item(to, TONE_PLAIN, "found by %s", steps->method ? steps->method : quantity_unknown);
  if (!isnan(steps->confidence))
    fact_item(to, steps->confidence < 0.95 ? TONE_WARNING : TONE_PLAIN, "agreement %s",
              percent(steps->confidence).text);
  if (results->n_other_work)
    fact_item(to, TONE_PLAIN, "%s of them only training", count_of(results->training_steps).text);
  fact_line(to, "step time", TONE_STRONG, "median %s", duration_ms(results->step_median_ms).text);
  fact_item(to, TONE_PLAIN, "p95 %s", duration_ms(results->step_p95_ms).text);
  fact_item(to, TONE_PLAIN, "mean %s", duration_ms(results->step_mean_ms).text);
  fact_item(to, TONE_PLAIN, "CV %s", percent(results->step_cv).text);
  if (results->changed_step)
    fact_line(to, "slower", TONE_PLAIN, "from step %u on, to the end",
              steps->first + results->changed_step);
  put_kinds(to, results);
  put_turns(to, results);
  put_other_work(to, results);
  put_host_ahead(to, results);
  put_throughput(to, results);
}

static struct quantity value_of(const struct convergence_series *row, double number) {
  struct quantity text;
  if (isnan(number))
    snprintf(text.text, sizeof(text.text), "%s",
             row->not_finite > 0 ? "not a number" : quantity_unknown);
  else
    snprintf(text.text, sizeof(text.text), "%.4g", number);
  return text;
}

static void put_series(struct facts *to, const struct convergence_series *row) {
  fact_label(to, row->role ? scalar_role_words[row->role] : "own number");
  if (!row->role)
    fact_item(to, TONE_PLAIN, "%s", row->name);
  fact_item(to, TONE_STRONG, "%s to %s", value_of(row, row->first).text,
            value_of(row, row->last).text);
  if (row->counts == COUNTS_STEPS)
    fact_item(to, TONE_PLAIN, "%s over steps %.0f to %.0f", plural(row->values, "value").text,
              row->first_step, row->last_step);
  else
    fact_item(to, TONE_PLAIN, "%s, without a step", plural(row->values, "value").text);
  if (row->role == SCALAR_ROLE_LOSS)
    fact_item(to, TONE_PLAIN, "best %s", value_of(row, row->best).text);
  if (row->not_finite > 0)
    fact_item(to, TONE_CRITICAL, "%.0f not finite, first at %s %.0f", row->not_finite,
              series_count_words[row->counts], row->first_not_finite);
  if (row->spikes > 0)
    fact_item(to, TONE_WARNING, "%s", plural(row->spikes, "spike").text);
}

static const char *words_of_loss(const struct convergence_result *c, struct arena *arena) {
  return !c->loss                      ? "cannot tell: no value is called a loss"
         : !c->verdict                 ? "cannot tell: too few values of the loss"
         : c->verdict == LOSS_DIVERGED ? "the loss diverged"
                                       : arena_printf(arena,
                                                      "the loss is %s in the last half of the "
                                                      "values",
                                                      loss_trend_words[c->verdict]);
}

void facts_of_convergence(struct facts *to, const struct results *results) {
  const struct convergence_result *c = &results->convergence;
  FOR_EACH(c->series, c->n_series, series)
    put_series(to, series);
  fact_label(to, "verdict");
  fact_item(to, c->verdict ? TONE_STRONG : TONE_PLAIN, "%s", words_of_loss(c, to->arena));
  if (c->plateau)
    fact_item(to, TONE_PLAIN, "it does not fall for %s",
              plural(c->plateau_steps, series_count_words[c->loss->counts]).text);
  if (c->n_clusters)
    fact_label(to, "together");
  for (u32 i = 0; i < c->n_clusters && i < CLUSTERS_SHOWN; i++)
    fact_item(to, TONE_WARNING, "steps %.0f to %.0f: %s", c->clusters[i].first_step,
              c->clusters[i].last_step, c->clusters[i].signals);
  if (c->n_clusters > CLUSTERS_SHOWN)
    fact_item(to, TONE_WARNING, "and %u more", c->n_clusters - CLUSTERS_SHOWN);
  if (c->n_clusters)
    fact_item(to, TONE_DIM, "%s", p_value(c->instability_p).text);
}
