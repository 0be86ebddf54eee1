/* SPDX-License-Identifier: MIT
 *
 * The job's own values: loss, gradient norm, learning rate.
 */
#include <math.h>

#include "report/text/section.h"
#include "report/text/table.h"

static struct quantity value_of(const struct convergence_series *row, double number) {
  struct quantity text;
  if (isnan(number))
    snprintf(text.text, sizeof(text.text), "%s",
             row->not_finite > 0 ? "not a number" : quantity_unknown);
  else
    snprintf(text.text, sizeof(text.text), "%.4g", number);
  return text;
}

static void put_series(struct pen *pen, const struct convergence_series *row) {
  section_label(pen, row->role ? scalar_role_words[row->role] : "own number");
  if (!row->role)
    pen_item(pen, STYLE_PLAIN, "%s", row->name);
  pen_item(pen, STYLE_BOLD, "%s to %s", value_of(row, row->first).text,
           value_of(row, row->last).text);
  if (row->counts == COUNTS_STEPS)
    pen_item(pen, STYLE_PLAIN, "%s over steps %.0f to %.0f", plural(row->values, "value").text,
             row->first_step, row->last_step);
  else
    pen_item(pen, STYLE_PLAIN, "%s, without a step", plural(row->values, "value").text);
  if (row->role == SCALAR_ROLE_LOSS)
    pen_item(pen, STYLE_PLAIN, "best %s", value_of(row, row->best).text);
  if (row->not_finite > 0)
    pen_item(pen, STYLE_CRITICAL, "%.0f not finite, first at %s %.0f", row->not_finite,
             series_count_words[row->counts], row->first_not_finite);
  if (row->spikes > 0)
    pen_item(pen, STYLE_WARNING, "%s", plural(row->spikes, "spike").text);
}

void body_convergence(struct pen *pen, const struct results *results) {
  const struct convergence_result *c = &results->convergence;
  FOR_EACH(c->series, c->n_series, series)
    put_series(pen, series);
  section_label(pen, "verdict");
  pen_item(pen, c->verdict ? STYLE_BOLD : STYLE_PLAIN, "%s", say_loss(results, &pen->scratch));
  if (c->n_clusters) {
    section_label(pen, "together");
    for (u32 i = 0; i < c->n_clusters && i < 4; i++)
      pen_item(pen, STYLE_WARNING, "steps %.0f to %.0f: %s", c->clusters[i].first_step,
               c->clusters[i].last_step, c->clusters[i].signals);
  }
}
