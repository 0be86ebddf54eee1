/* SPDX-License-Identifier: MIT */
#include "report/text/meter.h"

#include <math.h>

void meter_bar(struct pen *pen, enum style style, double fraction, unsigned columns) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  unsigned end = pen->column + columns;
  if (!isnan(fraction)) {
    double filled = fmin(fmax(fraction, 0), 1) * columns;
    unsigned steps = (unsigned)lround(filled * 8);
    if (!pen->utf8)
      steps = (unsigned)lround(filled) * 8;
    if (steps == 0 && fraction > 0)
      steps = 1;
    pen_repeat(pen, style, "█", steps / 8);
    pen_put(pen, style, eighths[steps % 8]);
    if (pen->column < end)
      pen_repeat(pen, STYLE_DIM, pen->utf8 ? "·" : ".", end - pen->column);
  }
  pen_to(pen, end);
}

void meter_stack(struct pen *pen, const struct meter_part *parts, unsigned n, double whole,
                 unsigned columns) {
  double sum = 0;
  unsigned drawn = 0;
  FOR_EACH(parts, n, part) {
    double share = part->value / whole;
    if (isnan(share) || share <= 0)
      continue;
    sum += share;
    unsigned until = (unsigned)lround(fmin(sum, 1) * columns);
    if (until > drawn)
      pen_repeat(pen, part->style, pen->utf8 ? part->glyph : part->ascii, until - drawn);
    drawn = MAX(until, drawn);
  }
}

struct value_range range_of(const double *values, unsigned from, unsigned until) {
  struct value_range range = {NAN, NAN};
  for (unsigned i = from; i < until; i++)
    range = (struct value_range){fmin(range.least, values[i]), fmax(range.most, values[i])};
  return range;
}

void meter_height(struct pen *pen, enum style style, double value, double low, double high) {
  static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (isnan(value)) {
    pen_blank(pen, 1);
    return;
  }
  double place = fmin(fmax((value - low) / (high - low), 0), 1);
  pen_put(pen, style, heights[(unsigned)fmin(place * 8, 7)]);
}

unsigned meter_sparkline(struct pen *pen, enum style style, const double *values, unsigned n,
                         unsigned warmup, unsigned columns) {
  if (warmup >= n)
    warmup = 0;
  double low = range_of(values, warmup, n).least, high = range_of(values, warmup, n).most;
  if (columns < 8 || isnan(low))
    return 0;
  high = fmax(high, low * 1.2);
  if (high <= low)
    high = low + 1;
  unsigned room = columns - (warmup ? 1 : 0);
  unsigned bucket = 1;
  while ((warmup + bucket - 1) / bucket + (n - warmup + bucket - 1) / bucket > room)
    bucket++;
  for (unsigned i = 0; i < n; i += bucket) {
    unsigned until = MIN(i + bucket, i < warmup ? warmup : n);
    meter_height(pen, i < warmup ? STYLE_DIM : style, range_of(values, i, until).most, low, high);
    if (until == warmup) {
      pen_put(pen, STYLE_DIM, "│");
      i = warmup - bucket; /* the next bucket starts where warm-up ends */
    }
  }
  return bucket;
}
