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

struct candidates {
  struct diffing *d;
  double change_ms; /* of the step */
};

/* Names it, if it changed enough in the step's direction; whether it did. */
static bool add(struct candidates *c, const char *name, double before_ms, double after_ms) {
  struct diff_result *out = c->d->out;
  double by = after_ms - before_ms;
  if (!name || !(by * c->change_ms > 0) || fabs(by) < EXPLAIN_SHARE * fabs(c->change_ms))
    return false;
  out->explained_by[out->n_explained_by++] =
      arena_printf(c->d->arena, "%s %s%s", name, by > 0 ? "+" : "-", duration_ms(fabs(by)).text);
  return true;
}

static void add_lines(struct candidates *c) {
  struct diff_result *out = c->d->out;
  for (u32 i = 0, named = 0; i < out->n_lines && named < MOST_NAMED; i++) {
    const struct diff_line *line = &out->lines[i];
    if (line->p_value >= DIFF_SIGNIFICANCE)
      continue;
    char *place = isnan(line->line) ? arena_printf(c->d->arena, "%s %s()", line->place,
                                                   line->function ? line->function : "?")
                                    : NULL;
    named += add(c, place ? place : line->place, line->before_ms, line->after_ms);
  }
}

static void add_kernels(struct candidates *c) {
  struct diff_result *out = c->d->out;
  for (u32 i = 0, named = 0; i < out->n_kernels && named < MOST_NAMED; i++) {
    const struct diff_kernel *kernel = &out->kernels[i];
    if (out->kernels_per == KERNELS_PER_STEP)
      named += add(c, kernel->shortened ? kernel->shortened : kernel->name,
                   isnan(kernel->before_ms) ? 0 : kernel->before_ms,
                   isnan(kernel->after_ms) ? 0 : kernel->after_ms);
  }
}

static void add_collectives(struct candidates *c) {
  struct diff_result *out = c->d->out;
  for (u32 i = 0, named = 0; i < out->n_collectives && named < MOST_NAMED; i++) {
    const struct diff_collective *one = &out->collectives[i];
    char *name = arena_printf(c->d->arena, "%s of %s", one->op, memory_size(one->bytes).text);
    named +=
        add(c, name, one->before_per_step * one->before_ms, one->after_per_step * one->after_ms);
  }
}

void diff_explain(struct diffing *d) {
  struct diff_result *out = d->out;
  struct candidates c = {d, out->step_after_ms - out->step_before_ms};
  out->explained_by = arena_array(d->arena, (size_t)3 * MOST_NAMED, sizeof(*out->explained_by));
  if (!(out->step_p_value < DIFF_SIGNIFICANCE) || fabs(out->step_change) < DIFF_LEAST_CHANGE)
    return;
  add_lines(&c);
  add_kernels(&c);
  add_collectives(&c);
}
