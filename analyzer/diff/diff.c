/* SPDX-License-Identifier: MIT */
#include "diff/diff.h"

#include <math.h>

const struct diff_result diff_none = {
    .runs_before = NAN,
    .runs_after = NAN,
    .facts_known = NAN,
    .step_before_ms = NAN,
    .step_after_ms = NAN,
    .step_change = NAN,
    .step_p_value = NAN,
    .step_noise_ms = NAN,
    .step_detectable = NAN,
    .cause = {.before_ms = NAN,
              .after_ms = NAN,
              .peers_ms = NAN,
              .p_value = NAN,
              .wait_before_ms = NAN,
              .wait_after_ms = NAN},
    .reason = "one run only: tscope-report diff BEFORE AFTER compares two"};

static const char *name_of(struct arena *arena, const struct results *results) {
  const char *run = results->model->run;
  return arena_text(arena, run ? run : "unnamed");
}

/* The run whose median step is in the middle of its side's; the first where none is known. */
static u32 middle_run(const struct diff_side *side) {
  u32 middle = 0, least_off = UINT32_MAX;
  for (u32 i = 0; i < side->n; i++) {
    u32 below = 0, above = 0;
    double own = side->runs[i]->step_median_ms;
    for (u32 k = 0; k < side->n && !isnan(own); k++) {
      below += side->runs[k]->step_median_ms < own;
      above += side->runs[k]->step_median_ms > own;
    }
    u32 off = below > above ? below - above : above - below;
    if (!isnan(own) && off < least_off) {
      middle = i;
      least_off = off;
    }
  }
  return middle;
}

static void list_runs(struct diffing *d, const u32 *shown) {
  struct diff_result *out = d->out;
  out->runs =
      arena_array(d->arena, size_sum(d->sides[BEFORE]->n, d->sides[AFTER]->n), sizeof(*out->runs));
  EACH_RUN(d, which, i) {
    const struct diff_side *side = d->sides[which];
    u32 n;
    diff_step_times(&d->scratch, side->runs[i], &n);
    out->runs[out->n_runs++] =
        (struct diff_run){.path = side->paths ? arena_text(d->arena, side->paths[i]) : NULL,
                          .name = name_of(d->arena, side->runs[i]),
                          .side = (enum diff_side_name)which,
                          .steps = n,
                          .step_ms = side->runs[i]->step_median_ms,
                          .shown = i == shown[which]};
  }
}

void diff_sides(const struct diff_side *before, const struct diff_side *after,
                struct results **shown) {
  u32 middle[2] = {middle_run(before), middle_run(after)};
  *shown = after->runs[middle[AFTER]];
  struct diffing d = {.sides = {before, after},
                      .before = before->runs[middle[BEFORE]],
                      .after = *shown,
                      .arena = (*shown)->internal,
                      .several = before->n >= DIFF_LEAST_RUNS && after->n >= DIFF_LEAST_RUNS};
  struct diff_result *out = d.out = arena_alloc(d.arena, sizeof(*out));
  *out = diff_none;
  out->earlier = d.before;
  out->earlier_all = (const struct results *const *)before->runs;
  out->later_all = (const struct results *const *)after->runs;
  out->before = name_of(d.arena, d.before);
  out->after = name_of(d.arena, d.after);
  out->runs_before = before->n;
  out->runs_after = after->n;
  list_runs(&d, middle);
#define P(part) diff_##part(&d);
  DIFF_PARTS(P)
#undef P
  arena_release(&d.scratch);
  (*shown)->diff = out;
}

double diff_mean(const double *values, u32 n) {
  return MEAN_KNOWN(0, n, i, values[i]);
}
