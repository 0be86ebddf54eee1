/* SPDX-License-Identifier: MIT
 *
 * Lines of the program on both sides. Lines move when a program is edited: where a function has
 * lines that only one side knows, on both sides, the function is compared as a whole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorting.h"
#include "base/texts.h"
#include "diff/diff.h"

enum { MOST_ROWS = 100, NO_NUMBER = -1 };

/* Of one run; the values of all runs of a row follow each other after sorting. */
struct part {
  const struct line_result *line;
  const char *file, *function;
  double cost_ms;
  double number; /* of the line; NAN: the function as a whole */
  u32 run;       /* of both sides, those before first */
};

/* What a line costs: samples of the main thread where all runs have them, else the waits that were
 * recorded. */
static double cost_ms(const struct line_result *line, bool sampled) {
  if (sampled && !isnan(line->host_ms))
    return line->host_ms;
  return isnan(line->wait_ms)    ? line->input_ms
         : isnan(line->input_ms) ? line->wait_ms
                                 : line->wait_ms + line->input_ms;
}

ORDER_BY(by_function, struct part, BY_TEXT(file) BY_TEXT(function))

static int by_place(const void *left, const void *right) {
  const struct part *a = left, *b = right;
  int function = by_function(left, right);
  if (function || isnan(a->number) || isnan(b->number) || a->number == b->number)
    return function;
  return a->number < b->number ? -1 : 1;
}

/* How many of `parts`, from the first on, are of one place or function. */
#define COUNT_SAME(parts, n, compare) ROW_OF_EQUALS(parts, n, a, b, compare(a, b) == 0)

/* Lines of a function, sorted: it is one row if each side has lines that the other has not. */
static void join_moved_lines(struct part *parts, u32 n, u32 n_before) {
  bool alone[2] = {false, false};
  for (u32 i = 0, same; i < n; i += same) {
    bool seen[2] = {false, false};
    same = COUNT_SAME(parts + i, n - i, by_place);
    for (u32 k = 0; k < same; k++)
      seen[parts[i + k].run >= n_before] = true;
    alone[BEFORE] |= !seen[AFTER];
    alone[AFTER] |= !seen[BEFORE];
  }
  for (u32 i = 0; i < n && alone[BEFORE] && alone[AFTER]; i++)
    parts[i].number = NAN;
}

static struct diff_line row_of(struct diffing *d, const struct part *parts, u32 n,
                               const double *none, double *values) {
  memcpy(values, none, d->out->n_runs * sizeof(*values));
  FOR_EACH(parts, n, part)
    values[part->run] += part->cost_ms;
  bool whole = isnan(parts[0].number);
  const char *place = parts[0].line->place;
  const struct diff_compared is = diff_compare(d, values);
  struct diff_line row = {.function = parts[0].function,
                          .file = parts[0].file,
                          .line = parts[0].number >= 0 ? parts[0].number : NAN,
                          .before_ms = is.before,
                          .after_ms = is.after,
                          .p_value = is.p_value};
  row.place = whole && place ? say(d, "%.*s", (int)strcspn(place, ":"), place)
              : place        ? arena_text(d->arena, place)
                             : NULL;
  row.file = arena_text(d->arena, row.file);
  row.function = arena_text(d->arena, row.function);
  return row;
}

static double difference(const struct diff_line *line) {
  return fabs(line->after_ms - line->before_ms);
}

ORDER_BY(by_difference, struct diff_line,
         DOWN_OF(difference) BY_TEXT(file) THEN((a->line > b->line) - (a->line < b->line)))

static bool all_are_sampled(const struct diffing *d) {
  bool all = true;
  EACH_RUN(d, side, i) {
    const struct lines_result *lines = &d->sides[side]->runs[i]->lines;
    all &= !lines->n_at || ANY(lines->at, lines->n_at, one, !isnan(one->host_ms));
  }
  return all;
}

/* `none` is set to what a line costs that a run does not list: 0, or NAN where it lists none. */
static u32 gather_parts(const struct diffing *d, struct part *parts, double *none, bool known[2]) {
  u32 n = 0, run = 0;
  bool sampled = all_are_sampled(d);
  EACH_RUN(d, side, i) {
    const struct lines_result *lines = &d->sides[side]->runs[i]->lines;
    none[run] = NAN;
    FOR_EACH(lines->at, lines->n_at, line) {
      double ms = cost_ms(line, sampled);
      if (isnan(ms))
        continue;
      parts[n++] = (struct part){
          line, line->file, line->function, ms, isnan(line->line) ? NO_NUMBER : line->line, run};
      none[run] = 0;
      known[side] = true;
    }
    run++;
  }
  return n;
}

void diff_lines(struct diffing *d) {
  struct diff_result *out = d->out;
  size_t most = 0;
  EACH_RUN(d, side, i)
    most += d->sides[side]->runs[i]->lines.n_at;
  struct part *parts = arena_array(&d->scratch, most, sizeof(*parts));
  double *values = arena_array(&d->scratch, out->n_runs, sizeof(*values));
  double *none = arena_array(&d->scratch, out->n_runs, sizeof(*none));
  bool known[2] = {false, false};
  u32 n = gather_parts(d, parts, none, known);
  if (known[BEFORE] && known[AFTER]) {
    out->lines = arena_array(d->arena, n, sizeof(*out->lines));
    SORT(parts, n, by_place);
    for (u32 i = 0, same; i < n; i += same) {
      same = COUNT_SAME(parts + i, n - i, by_function);
      join_moved_lines(parts + i, same, d->sides[BEFORE]->n);
    }
    for (u32 i = 0, same; i < n; i += same) {
      same = COUNT_SAME(parts + i, n - i, by_place);
      struct diff_line row = row_of(d, parts + i, same, none, values);
      if (row.before_ms != 0 || row.after_ms != 0) /* else only workers are there */
        out->lines[out->n_lines++] = row;
    }
    SORT(out->lines, out->n_lines, by_difference);
    out->n_lines = MIN(out->n_lines, MOST_ROWS);
  }
}
