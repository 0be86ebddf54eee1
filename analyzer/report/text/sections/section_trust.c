/* SPDX-License-Identifier: MIT
 *
 * How far the report can be trusted: what was seen, what was not, and the cost of recording.
 */
#include <math.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/rank_list.h"
#include "base/trace_words.h"
#include "report/text/section.h"

/* Steps vary by a few percent by themselves; a cost above that is visible in what it measures. */
#define COST_NOTABLE 0.02

enum { ATTEMPTS_SHOWN = 4, DAMAGES_SHOWN = 3, RANK_LIST_CHARACTERS = 40 };

static void put_inputs(struct pen *pen, const struct model *model) {
  if (model->n_inputs == 0)
    return;
  section_label(pen, "read from");
  FOR_EACH(model->inputs, model->n_inputs, input)
    pen_item(pen, STYLE_PLAIN, "%s %s", count_of(input->files).text, input->what);
}

static void put_ranks(struct pen *pen, const struct results *results) {
  const struct model *model = results->model;
  section_label(pen, "ranks");
  if (model_lacks_ranks(model))
    pen_item(pen, STYLE_WARNING, "%s of %s found", count_of(model->n_ranks).text,
             count_of(model->world_size).text);
  else if (model->world_size)
    pen_item(pen, STYLE_PLAIN, "all %s found", count_of(model->n_ranks).text);
  else
    pen_item(pen, STYLE_PLAIN, "%u found, the number of ranks is unknown", model->n_ranks);
  u32 hosts = model->n_hosts;
  if (hosts)
    pen_item(pen, STYLE_PLAIN, "on %s", plural(hosts, "host").text);
  SCOPED char *list =
      rank_list(results->partial_ranks, results->n_partial_ranks, RANK_LIST_CHARACTERS);
  if (results->n_partial_ranks)
    pen_item(pen, STYLE_WARNING, "partial or missing: %s", list);
  else
    pen_item(pen, STYLE_PLAIN, "all complete");
}

/* The other starts of the job, and that its number of ranks changed. */
static void put_attempts(struct pen *pen, const struct results *results) {
  u32 own = results->model->attempt, n = results->n_attempts;
  if (!n)
    return;
  section_value(pen, "attempts", STYLE_WARNING, "this is %s%u of %u", own == n ? "the last, " : "",
                own, n);
  pen_item(pen, STYLE_PLAIN, "--attempt shows another");
  for (u32 i = n > ATTEMPTS_SHOWN ? n - ATTEMPTS_SHOWN : 0; i < n; i++) {
    const struct attempt_result *one = &results->attempts[i];
    const char *how = one->summary                     ? one->summary
                      : one->how == RUN_ENDED_IN_ORDER ? "It ended in order."
                                                       : "How it ended is not known.";
    if (one->attempt == own)
      continue;
    section_value(pen, "", STYLE_PLAIN, "%.0f: %s on %s. %s", one->attempt,
                  plural((u64)one->ranks, "rank").text, plural((u64)one->hosts, "host").text, how);
  }
}

/* What is wrong with files, in the reader's words. */
static void put_damage(struct pen *pen, const struct model *model) {
  u32 damaged = 0, unclosed = 0, running = 0;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    unclosed += !rank->damage && !rank->closed && !rank->running;
    running += !rank->damage && rank->running;
    if (!rank->damage || damaged++ >= DAMAGES_SHOWN)
      continue;
    section_value(pen, damaged == 1 ? "damage" : "", STYLE_WARNING, "rank %u: %s", rank->rank,
                  rank->damage);
  }
  if (damaged > DAMAGES_SHOWN)
    pen_item(pen, STYLE_WARNING, "and %u more ranks", damaged - DAMAGES_SHOWN);
  if (running)
    section_value(pen, "runs still", STYLE_PLAIN, "%s: this is the run until now",
                  plural(running, "rank").text);
  if (unclosed)
    section_value(pen, damaged ? "" : "damage", STYLE_PLAIN,
                  "%s did not end normally (killed, or still running)",
                  plural(unclosed, "rank").text);
}

/* What else was found: files that are no traces, processes of another run. */
static void put_notes(struct pen *pen, const struct model *model) {
  for (u32 i = 0; i < model->n_notes && i < DAMAGES_SHOWN; i++)
    section_value(pen, i ? "" : "input", STYLE_WARNING, "%s", model->notes[i]);
  if (model->n_notes > DAMAGES_SHOWN)
    pen_item(pen, STYLE_WARNING, "and %u more", model->n_notes - DAMAGES_SHOWN);
}

static void put_events(struct pen *pen, const struct results *results) {
  const struct model *model = results->model;
  bool behind = ANY(model->ranks, model->n_ranks, one, one->last_moments_missing);
  section_value(pen, "events", STYLE_PLAIN, "%s recorded", count_of(results->events).text);
  if (behind)
    pen_item(pen, STYLE_WARNING, "the last moments may be missing");
  if (results->lost == 0) {
    pen_item(pen, STYLE_PLAIN, "none lost");
    return;
  }
  pen_item(pen, STYLE_WARNING, "%s lost (%s)", count_of(results->lost).text,
           percent(results->lost / (results->events + results->lost)).text);
  for (u32 reason = 0; reason < TSCOPE_LOSS_REASONS; reason++) {
    double lost = TOTAL(double, model->ranks, model->n_ranks, one, (double)one->lost[reason]);
    if (lost > 0)
      pen_item(pen, STYLE_PLAIN, "%s: %s", loss_word(reason), count_of(lost).text);
  }
}

static void put_clocks(struct pen *pen, const struct results *results) {
  const struct model *model = results->model;
  section_label(pen, "clocks");
  pen_item(pen, model_all_aligned(model) ? STYLE_PLAIN : STYLE_WARNING,
           model->clock_aligned ? "aligned by %s" : "not aligned, %s",
           model->clock_method ? model->clock_method : quantity_unknown);
  pen_item(pen, STYLE_PLAIN, "%s", say_clock_error(results, &pen->scratch));
}

static void put_gap(struct pen *pen, const struct coverage *one) {
  if (pen->column > VALUE_INDENT)
    section_label(pen, "");
  pen_format(pen, STYLE_WARNING, "%s %s", one->name, percent(one->share).text);
  if (one->note) {
    pen_put(pen, STYLE_PLAIN, ": ");
    pen_words(pen, STYLE_PLAIN, one->note);
  }
}

static void put_coverage(struct pen *pen, const struct results *results) {
  section_value(pen, "GPU time", STYLE_PLAIN, "%s",
                results->gpu_timing ? results->gpu_timing : quantity_unknown);
  section_label(pen, "coverage");
  if (results->n_coverage == 0)
    pen_item(pen, STYLE_PLAIN, "%s", quantity_unknown);
  const char *lead = "all ";
  FOR_EACH(results->coverage, results->n_coverage, one) {
    if (one->share < 1)
      continue;
    pen_item(pen, STYLE_PLAIN, "%s%s", lead, one->name);
    lead = "";
  }
  FOR_EACH(results->coverage, results->n_coverage, one)
    if (one->share < 1)
      put_gap(pen, one);
}

static void put_share_of_run(struct pen *pen, const struct results *results) {
  const double share = results->overhead_fraction, cupti = results->overhead_cupti_fraction;
  bool more = cupti >= COST_NOTABLE / 10;
  pen_item(pen, fmax(share, more ? cupti : 0) < COST_NOTABLE ? STYLE_PLAIN : STYLE_WARNING,
           share < 0.0005 ? "%s of the run%s%s%s" : "about %s of the run%s%s%s",
           percent(share).text, more ? ", and up to " : "", more ? percent(cupti).text : "",
           more ? " in launches under CUPTI" : "");
}

static void put_cost(struct pen *pen, const struct results *results) {
  section_label(pen, "own cost");
  if (isnan(results->overhead_fraction))
    pen_item(pen, STYLE_PLAIN, "unknown: the trace does not say");
  else
    put_share_of_run(pen, results);
  if (!isnan(results->overhead_ns_per_event))
    pen_item(pen, STYLE_PLAIN, "%s to wake up, %s an event",
             duration_ms(results->overhead_startup_ms).text,
             duration_s(results->overhead_ns_per_event * 1e-9).text);
  item_if_known(pen, STYLE_PLAIN, "%s of helper CPU", duration_s(results->overhead_helper_cpu_s));
  item_if_known(pen, STYLE_PLAIN, "%s a rank in CUPTI, by its own account",
                duration_ms(results->overhead_gpu_clock_ms));
  pen_item(pen, STYLE_PLAIN, "%s of traces", byte_size(results->trace_bytes).text);
  if (results->overhead_basis)
    section_value(pen, "", STYLE_DIM, "%s", results->overhead_basis);
}

void body_trust(struct pen *pen, const struct results *results) {
  put_inputs(pen, results->model);
  if (!results->model->n_ranks) {
    put_notes(pen, results->model);
    return;
  }
  put_ranks(pen, results);
  put_attempts(pen, results);
  put_damage(pen, results->model);
  put_notes(pen, results->model);
  put_events(pen, results);
  if (results->model->n_ranks > 1)
    put_clocks(pen, results);
  put_coverage(pen, results);
  put_cost(pen, results);
}
