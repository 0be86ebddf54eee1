/* SPDX-License-Identifier: MIT
 *
 * Bars and sparklines.
 */
#pragma once

#include "report/text/pen.h"

/* A bar that fills `fraction` (0..1, clamped) of so many columns. Anything above 0 is visible. NAN
 * fills the space with blanks. */
void meter_bar(struct pen *pen, enum style style, double fraction, unsigned columns);

struct meter_part {
  const char *name;
  double value; /* NAN or 0 takes no space */
  enum style style;
  const char *glyph; /* one column in UTF-8 */
  const char *ascii;
};

/* One bar made of parts, whose columns add up to `columns` when the values add up to `whole`. */
void meter_stack(struct pen *pen, const struct meter_part *parts, unsigned n, double whole,
                 unsigned columns);

/* The least and the largest known of values[from .. until); NAN if none is known. */
struct value_range {
  double least, most;
};
struct value_range range_of(const double *values, unsigned from, unsigned until);

/* A value as the height of one column, between these two; a blank for NAN. */
void meter_height(struct pen *pen, enum style style, double value, double low, double high);

/* Values as heights, the largest of each bucket if there are more values than columns. The first
 * `warmup` are separated by a bar and do not set the scale. The scale covers at least a fifth of
 * the smallest value, so that noise looks like noise. Returns how many values a column represents,
 * 0 if nothing was drawn. */
unsigned meter_sparkline(struct pen *pen, enum style style, const double *values, unsigned n,
                         unsigned warmup, unsigned columns);
