/* SPDX-License-Identifier: MIT */
#include "diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

const struct diff_result diff_none = {
    .step_before_ms = NAN,
    .step_after_ms = NAN,
    .step_change = NAN,
    .step_p_value = NAN,
    .step_noise_ms = NAN,
    .reason = "one run only: tscope-report diff BEFORE AFTER compares two"};

static const char *name_of(struct arena *arena, const struct results *results) {
  const char *run = results->model->run;
  return arena_text(arena, run ? run : "unnamed");
}

int diff_results(const struct results *before, struct results *after) {
  struct arena *arena = after->internal;
  struct diff_result *out = arena_alloc(arena, sizeof *out);
  if (!out)
    return -ENOMEM;
  *out = diff_none;
  struct diffing d = {.before = before, .after = after, .out = out, .arena = arena};
  d.out->earlier = before;
  d.out->before = name_of(d.arena, before);
  d.out->after = name_of(d.arena, after);
  int (*const parts[])(struct diffing *) = {diff_steps,      diff_figures, diff_collectives,
                                            diff_provenance, diff_scalars, diff_findings};
  int error = 0;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !error; i++)
    error = parts[i](&d);
  after->diff = out;
  return error;
}
