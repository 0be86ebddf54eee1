/* SPDX-License-Identifier: MIT
 *
 * Steps and their phases.
 */
#include <math.h>

#include "report/text/meter.h"
#include "report/text/section.h"
#include "report/text/table.h"

static void put_sparkline(struct pen *pen, const struct results *results) {
  u32 warmup = results->warmup_excluded > 0 ? (u32)results->warmup_excluded : 0;
  if (results->n_step_ms < 2)
    return;
  struct value_range range =
      range_of(results->step_ms, warmup < results->n_step_ms ? warmup : 0, results->n_step_ms);
  section_label(pen, "over time");
  unsigned each = meter_sparkline(pen, STYLE_NOTE, results->step_ms, results->n_step_ms, warmup,
                                  pen->width - VALUE_INDENT);
  section_value(pen, "", STYLE_DIM, "from %s to %s", duration_ms(range.least).text,
                duration_ms(range.most).text);
  if (each > 1)
    pen_item(pen, STYLE_DIM, "a column is the slowest of %u steps", each);
  if (warmup)
    pen_item(pen, STYLE_DIM, "left of the bar: warm-up");
}

/* Less than this is the time of the optimizer's last kernels after its call returned. */
#define AHEAD_NOTABLE 0.05

/* A host that never waits for its GPU: its steps end when the GPU has finished them. */
static void put_host_ahead(struct pen *pen, const struct results *results) {
  bool whole_steps = results->host_ahead_max_steps >= 1;
  if (!whole_steps && !(results->host_ahead_ms >= AHEAD_NOTABLE * results->step_median_ms &&
                        !results->model->steps.by_collectives))
    return;
  section_value(pen, "host ahead", STYLE_PLAIN, "median %s",
                duration_ms(results->host_ahead_ms).text);
  pen_item(pen, STYLE_PLAIN, "at most %s", duration_ms(results->host_ahead_max_ms).text);
  if (whole_steps)
    pen_item(pen, STYLE_PLAIN, "%s", plural(results->host_ahead_max_steps, "step").text);
  pen_item(pen, STYLE_DIM, "a step ends when the GPU has finished it");
}

/* Steps that contain something else are named, because no other figure includes them. */
static void put_other_work(struct pen *pen, const struct results *results) {
  for (u32 i = 0; i < results->n_other_work; i++) {
    const struct other_work *work = &results->other_work[i];
    section_value(pen, i ? "" : "besides", STYLE_PLAIN, "%s", work->name);
    pen_item(pen, STYLE_DIM, "%s in all", duration_s(work->sum_s).text);
  }
}

/* What every n-th step of training holds besides. */
static void put_turns(struct pen *pen, const struct results *results) {
  for (u32 i = 0; i < results->n_turns; i++) {
    const struct step_turn *turn = &results->turns[i];
    section_value(pen, i ? "" : "in turn", STYLE_PLAIN, "%s", turn->name);
    if (turn->at)
      pen_item(pen, STYLE_PLAIN, "at %s", turn->at);
    pen_item(pen, STYLE_DIM, "%s in all · part of training", duration_s(turn->sum_s).text);
  }
}

static void put_kinds(struct pen *pen, const struct results *results) {
  for (u32 i = 0; i < results->n_step_kinds; i++) {
    const struct step_kind_result *kind = &results->step_kinds[i];
    section_value(pen, i ? "" : "of a server", STYLE_PLAIN, "%s %s", count_of(kind->count).text,
                  kind->kind);
    pen_item(pen, STYLE_PLAIN, "median %s", duration_ms(kind->median_ms).text);
    pen_item(pen, STYLE_PLAIN, "p95 %s", duration_ms(kind->p95_ms).text);
  }
}

void body_steps(struct pen *pen, const struct results *results) {
  const struct steps *steps = &results->model->steps;
  section_label(pen, "steps");
  double warmup = results->warmup_excluded > 0 ? results->warmup_excluded : 0;
  pen_item(pen, STYLE_PLAIN, "%s analysed", count_of(results->step_count - warmup).text);
  if (pen->view->steps_requested && results->step_count > 0)
    pen_item(pen, STYLE_PLAIN, "%u to %.0f, the first of the run is 0", steps->first,
             steps->first + results->step_count - 1);
  if (warmup > 0)
    pen_item(pen, STYLE_PLAIN, "the first %s left out as warm-up", count_of(warmup).text);
  pen_item(pen, STYLE_PLAIN, "found by %s", steps->method ? steps->method : quantity_unknown);
  if (!isnan(steps->confidence))
    pen_item(pen, steps->confidence < 0.95 ? STYLE_WARNING : STYLE_PLAIN, "agreement %s",
             percent(steps->confidence).text);
  if (results->n_other_work)
    pen_item(pen, STYLE_PLAIN, "%s of them only training", count_of(results->training_steps).text);
  section_value(pen, "step time", STYLE_BOLD, "median %s",
                duration_ms(results->step_median_ms).text);
  pen_item(pen, STYLE_PLAIN, "p95 %s", duration_ms(results->step_p95_ms).text);
  pen_item(pen, STYLE_PLAIN, "mean %s", duration_ms(results->step_mean_ms).text);
  pen_item(pen, STYLE_PLAIN, "CV %s", percent(results->step_cv).text);
  put_kinds(pen, results);
  put_turns(pen, results);
  put_other_work(pen, results);
  put_host_ahead(pen, results);
  section_label(pen, "throughput");
  double per_second = results->step_mean_ms > 0 ? 1e3 / results->step_mean_ms : NAN;
  pen_item(pen, STYLE_PLAIN, "%s", rate(per_second, "steps").text);
  if (!isnan(pen->view->tokens_per_step))
    pen_item(pen, STYLE_PLAIN, "%s", rate(per_second * pen->view->tokens_per_step, "tokens").text);
  put_sparkline(pen, results);
}

struct phase_row {
  const char *name;
  double ms, share;
  enum style style;
};

void body_phases(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"phase", COLUMN_TEXT, offsetof(struct phase_row, name), 0, 0},
      {"mean", COLUMN_MS, offsetof(struct phase_row, ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct phase_row, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct phase_row, share), 0, 10},
  };
  struct phase_row rows[] = {
      {.name = "data", .ms = results->data_ms, .style = STYLE_MEMCPY},
      {.name = "forward", .ms = results->forward_ms, .style = STYLE_COMPUTE},
      {.name = "backward", .ms = results->backward_ms, .style = STYLE_COMPUTE},
      {.name = "optimizer", .ms = results->optimizer_ms, .style = STYLE_COMPUTE},
      {.name = "other", .ms = results->other_ms, .style = STYLE_PLAIN},
  };
  double sum = 0; /* the host's step, which may be longer or shorter than that of its device */
  for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    sum += isnan(rows[i].ms) ? 0 : rows[i].ms;
  const char *missing[sizeof(rows) / sizeof(rows[0])];
  unsigned n = 0, n_missing = 0;
  for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (isnan(rows[i].ms)) {
      missing[n_missing++] = rows[i].name;
      continue;
    }
    rows[i].share = rows[i].ms / sum;
    rows[n++] = rows[i];
  }
  table_print(pen,
              &TABLE(struct phase_row, columns, .style_offset = offsetof(struct phase_row, style),
                     .plain_text = true),
              rows, n);
  for (unsigned i = 0; i < n_missing; i++)
    pen_item(pen, STYLE_PLAIN, "%s unknown", missing[i]);
  section_line(pen, STYLE_DIM, "host time per step, mean over ranks");
  if (results->model->phase_method)
    pen_item(pen, STYLE_DIM, "%s", results->model->phase_method);
  pen_item(pen, STYLE_DIM, "of it exposed communication: %s", duration_ms(results->comm_ms).text);
}
