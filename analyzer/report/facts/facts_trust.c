/* SPDX-License-Identifier: MIT
 *
 * How far the report can be trusted: what was seen, what was not, and the cost of recording.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/rank_list.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "report/facts/facts.h"

/* Steps vary by a few percent by themselves; a cost above that is visible in what it measures. */
#define COST_NOTABLE 0.02

enum { ATTEMPTS_SHOWN = 4, DAMAGES_SHOWN = 3, RANK_LIST_CHARACTERS = 40 };

static void put_inputs(struct facts *to, const struct model *model) {
  if (model->n_inputs == 0)
    return;
  fact_label(to, "read from");
  FOR_EACH(model->inputs, model->n_inputs, input)
    fact_item(to, TONE_PLAIN, "%s %s", count_of(input->files).text, input->what);
}

static void put_ranks(struct facts *to, const struct results *results) {
  const struct model *model = results->model;
  fact_label(to, "ranks");
  if (model_lacks_ranks(model))
    fact_item(to, TONE_WARNING, "%s of %s found", count_of(model->n_ranks).text,
              count_of(model->world_size).text);
  else if (model->world_size)
    fact_item(to, TONE_PLAIN, "all %s found", count_of(model->n_ranks).text);
  else
    fact_item(to, TONE_PLAIN, "%u found, the number of ranks is unknown", model->n_ranks);
  u32 hosts = model->n_hosts;
  if (hosts)
    fact_item(to, TONE_PLAIN, "on %s", plural(hosts, "host").text);
  SCOPED char *list =
      rank_list(results->partial_ranks, results->n_partial_ranks, RANK_LIST_CHARACTERS);
  if (results->n_partial_ranks)
    fact_item(to, TONE_WARNING, "partial or missing: %s", list);
  else
    fact_item(to, TONE_PLAIN, "all complete");
}

/* The other starts of the job, and that its number of ranks changed. */
static void put_attempts(struct facts *to, const struct results *results) {
  u32 own = results->model->attempt, n = results->n_attempts;
  if (!n)
    return;
  fact_line(to, "attempts", TONE_WARNING, "this is %s%u of %u", own == n ? "the last, " : "", own,
            n);
  fact_item(to, TONE_PLAIN, "--attempt shows another");
  for (u32 i = n > ATTEMPTS_SHOWN ? n - ATTEMPTS_SHOWN : 0; i < n; i++) {
    const struct attempt_result *one = &results->attempts[i];
    const char *how = one->summary                     ? one->summary
                      : one->how == RUN_ENDED_IN_ORDER ? "It ended in order."
                                                       : "How it ended is not known.";
    if (one->attempt == own)
      continue;
    fact_line(to, "", TONE_PLAIN, "%.0f: %s on %s. %s", one->attempt,
              plural(one->ranks, "rank").text, plural(one->hosts, "host").text, how);
  }
}

/* What is wrong with files, in the reader's words. */
static void put_damage(struct facts *to, const struct model *model) {
  u32 damaged = 0, unclosed = 0, running = 0, may_run = 0;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    unclosed += !rank->damage && !rank->closed && !rank->running && !rank->may_run;
    running += !rank->damage && rank->running;
    may_run += !rank->damage && rank->may_run;
    if (!rank->damage || damaged++ >= DAMAGES_SHOWN)
      continue;
    fact_line(to, damaged == 1 ? "damage" : "", TONE_WARNING, "rank %u: %s", rank->rank,
              rank->damage);
  }
  if (damaged > DAMAGES_SHOWN)
    fact_item(to, TONE_WARNING, "and %s", plural(damaged - DAMAGES_SHOWN, "more rank").text);
  if (running)
    fact_line(to, "runs still", TONE_PLAIN, "%s: this is the run until now",
              plural(running, "rank").text);
  if (may_run)
    fact_line(to, running ? "" : "may run", TONE_PLAIN,
              "%s on other hosts: alive lately, and not seen to end", plural(may_run, "rank").text);
  if (unclosed)
    fact_line(to, damaged ? "" : "damage", TONE_PLAIN,
              "%s did not end normally (killed, or still running)", plural(unclosed, "rank").text);
}

/* What else was found: files that are no traces, processes of another run. */
static void put_notes(struct facts *to, const struct model *model) {
  for (u32 i = 0; i < model->n_notes && i < DAMAGES_SHOWN; i++)
    fact_line(to, i ? "" : "input", TONE_WARNING, "%s", model->notes[i]);
  if (model->n_notes > DAMAGES_SHOWN)
    fact_item(to, TONE_WARNING, "and %u more", model->n_notes - DAMAGES_SHOWN);
}

static void put_events(struct facts *to, const struct results *results) {
  const struct model *model = results->model;
  bool behind = ANY(model->ranks, model->n_ranks, one, one->last_moments_missing);
  fact_line(to, "events", TONE_PLAIN, "%s recorded", count_of(results->events).text);
  if (behind)
    fact_item(to, TONE_WARNING, "the last moments may be missing");
  if (results->lost == 0) {
    fact_item(to, TONE_PLAIN, "none lost");
    return;
  }
  fact_item(to, TONE_WARNING, "%s lost (%s)", count_of(results->lost).text,
            percent(results->lost / (results->events + results->lost)).text);
  for (u32 reason = 0; reason < TSCOPE_LOSS_REASONS; reason++) {
    double lost = TOTAL(double, model->ranks, model->n_ranks, one, (double)one->lost[reason]);
    if (lost > 0)
      fact_item(to, TONE_PLAIN, "%s: %s", loss_word(reason), count_of(lost).text);
  }
}

/* How far times of different ranks can be compared. */
static void put_clock_error(struct facts *to, const struct model *model) {
  const double within_s = model->clock_residual_us * 1e-6,
               between_s = model->clock_between_us * 1e-6;
  if (!model->clock_aligned)
    fact_item(to, TONE_PLAIN, "times of different ranks are not compared");
  else if (isnan(between_s))
    fact_item(to, TONE_PLAIN, "residual %s", duration_s(within_s).text);
  else if (ANY(model->ranks, model->n_ranks, one, !one->host))
    fact_item(to, TONE_PLAIN, "known to %s between ranks; hosts are not known",
              duration_s(between_s).text);
  else
    fact_item(to, TONE_PLAIN, "known to %s between hosts, %s within a host",
              duration_s(between_s).text, duration_s(within_s).text);
}

static void put_clocks(struct facts *to, const struct results *results) {
  const struct model *model = results->model;
  fact_label(to, "clocks");
  fact_item(to, model_all_aligned(model) ? TONE_PLAIN : TONE_WARNING,
            model->clock_aligned ? "aligned by %s" : "not aligned, %s",
            model->clock_method ? model->clock_method : quantity_unknown);
  put_clock_error(to, model);
}

static void put_gap(struct facts *to, const struct coverage *one) {
  if (!to->label)
    fact_label(to, "");
  fact_item(to, TONE_WARNING, "%s %s%s%s", one->name, percent(one->share).text,
            one->note ? ": " : "", text_or_empty(one->note));
}

static void put_coverage(struct facts *to, const struct results *results) {
  fact_line(to, "GPU time", TONE_PLAIN, "%s",
            results->gpu_timing ? results->gpu_timing : quantity_unknown);
  fact_label(to, "coverage");
  if (results->n_coverage == 0)
    fact_item(to, TONE_PLAIN, "%s", quantity_unknown);
  const char *lead = "all ";
  FOR_EACH(results->coverage, results->n_coverage, one) {
    if (one->share < 1)
      continue;
    fact_item(to, TONE_DIM, "%s%s", lead, one->name);
    lead = "";
  }
  FOR_EACH(results->coverage, results->n_coverage, one)
    if (one->share < 1)
      put_gap(to, one);
}

static void put_share_of_run(struct facts *to, const struct results *results) {
  const double share = results->overhead_fraction, cupti = results->overhead_cupti_fraction;
  bool more = cupti >= COST_NOTABLE / 10;
  fact_item(to, fmax(share, more ? cupti : 0) < COST_NOTABLE ? TONE_PLAIN : TONE_WARNING,
            share < 0.0005 ? "%s of the run%s%s%s" : "about %s of the run%s%s%s",
            percent(share).text, more ? ", and up to " : "", more ? percent(cupti).text : "",
            more ? " in launches under CUPTI" : "");
}

static void put_cost(struct facts *to, const struct results *results) {
  fact_label(to, "own cost");
  if (isnan(results->overhead_fraction))
    fact_item(to, TONE_PLAIN, "unknown: the trace does not say");
  else
    put_share_of_run(to, results);
  if (!isnan(results->overhead_ns_per_event))
    fact_item(to, TONE_DIM, "%s to wake up, %s an event",
              duration_ms(results->overhead_startup_ms).text,
              duration_s(results->overhead_ns_per_event * 1e-9).text);
  fact_if_known(to, TONE_DIM, "%s of helper CPU", duration_s(results->overhead_helper_cpu_s));
  fact_if_known(to, TONE_DIM, "%s a rank in CUPTI, by its own account",
                duration_ms(results->overhead_gpu_clock_ms));
  fact_item(to, TONE_DIM, "%s of traces", byte_size(results->trace_bytes).text);
  if (results->overhead_basis)
    fact_line(to, "", TONE_DIM, "%s", results->overhead_basis);
}

void facts_of_trust(struct facts *to, const struct results *results) {
  put_inputs(to, results->model);
  if (!results->model->n_ranks) {
    put_notes(to, results->model);
    return;
  }
  put_ranks(to, results);
  fact_chosen_steps(to, "steps", "", &results->model->steps);
  put_attempts(to, results);
  put_damage(to, results->model);
  put_notes(to, results->model);
  put_events(to, results);
  if (results->model->n_ranks > 1)
    put_clocks(to, results);
  put_coverage(to, results);
  put_cost(to, results);
}
