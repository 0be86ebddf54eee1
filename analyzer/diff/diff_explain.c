/* SPDX-License-Identifier: MIT
 *
 * What explains the change of a step, in a few words: the lines of the program, the kernels and the
 * kinds of collectives that changed most in the same direction.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "diff/diff.h"

/* This share of the step's change must be in one of them for it to be named, and so many are. */
#define EXPLAIN_SHARE 0.1
enum { MOST_NAMED = 3 };

/* Names it, if it changed enough in the step's direction; whether it did. */
static bool add(struct diffing *d, const char *name, double before_ms, double after_ms) {
  struct diff_result *out = d->out;
  double by = after_ms - before_ms, change_ms = out->step_after_ms - out->step_before_ms;
  if (!name || !(by * change_ms > 0) || fabs(by) < EXPLAIN_SHARE * fabs(change_ms))
    return false;
  out->explained_by[out->n_explained_by++] =
      say(d, "%s %s%s", name, by > 0 ? "+" : "-", duration_ms(fabs(by)).text);
  return true;
}

static bool add_line(struct diffing *d, const struct diff_line *line) {
  const char *place = isnan(line->line)
                          ? say(d, "%s %s()", line->place, line->function ? line->function : "?")
                          : line->place;
  return !(line->p_value >= DIFF_SIGNIFICANCE) && add(d, place, line->before_ms, line->after_ms);
}

static bool add_kernel(struct diffing *d, const struct diff_kernel *kernel) {
  return d->out->kernels_per == KERNELS_PER_STEP &&
         add(d, kernel->shortened ? kernel->shortened : kernel->name,
             isnan(kernel->before_ms) ? 0 : kernel->before_ms,
             isnan(kernel->after_ms) ? 0 : kernel->after_ms);
}

static bool add_collective(struct diffing *d, const struct diff_collective *one) {
  return add(d, say(d, "%s of %s", one->op, byte_size(one->bytes).text),
             one->before_per_step * one->before_ms, one->after_per_step * one->after_ms);
}

/* The first of a list. */
#define ADD_SOME(d, at, n, add_one)                                                                \
  for (u32 i = 0, named = 0; i < (n) && named < MOST_NAMED; i++)                                   \
  named += add_one(d, &(at)[i])

void diff_explain(struct diffing *d) {
  struct diff_result *out = d->out;
  out->explained_by = arena_array(d->arena, (size_t)3 * MOST_NAMED, sizeof(*out->explained_by));
  if (!(out->step_p_value < DIFF_SIGNIFICANCE) || fabs(out->step_change) < DIFF_LEAST_CHANGE)
    return;
  ADD_SOME(d, out->lines, out->n_lines, add_line);
  ADD_SOME(d, out->kernels, out->n_kernels, add_kernel);
  ADD_SOME(d, out->collectives, out->n_collectives, add_collective);
}
