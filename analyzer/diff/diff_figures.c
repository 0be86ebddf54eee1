/* SPDX-License-Identifier: MIT
 *
 * The figures of both reports side by side: steps, phases, what steps are made of, kernels by
 * category, memory. A new figure is a line of a table here.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"

static const struct figure {
  const char *section, *name, *unit;
  size_t offset; /* of a double in struct results */
} figures[] = {
#define AT(member) offsetof(struct results, member)
    {"step time", "median", "ms", AT(step_median_ms)},
    {"step time", "95th percentile", "ms", AT(step_p95_ms)},
    {"step time", "coefficient of variation", "fraction", AT(step_cv)},
    {"phases", "data", "ms", AT(data_ms)},
    {"phases", "forward", "ms", AT(forward_ms)},
    {"phases", "backward", "ms", AT(backward_ms)},
    {"phases", "optimizer", "ms", AT(optimizer_ms)},
    {"phases", "other", "ms", AT(other_ms)},
    {"overlap", "communication", "ms", AT(ov_comm_ms)},
    {"a step", "compute", "ms", AT(ov_compute_ms)},
    {"a step", "exposed wait", "ms", AT(ov_exposed_wait_ms)},
    {"a step", "exposed transfer", "ms", AT(ov_exposed_transfer_ms)},
    {"a step", "exposed copies", "ms", AT(ov_exposed_copy_ms)},
    {"a step", "idle", "ms", AT(ov_idle_ms)},
    {"a step", "matrix products", "ms", AT(products.ms)},
    {"utilisation", "speed of matrix products", "TFLOP/s", AT(products.tflops)},
    {"utilisation", "MFU", "fraction", AT(mfu)},
    {"utilisation", "HFU", "fraction", AT(hfu)},
    {"memory", "peak allocated", "bytes", AT(memory.peak_allocated_bytes)},
    {"memory", "peak reserved", "bytes", AT(memory.peak_reserved_bytes)},
    {"memory", "inactive at the end", "bytes", AT(memory.inactive_bytes)},
    {"memory", "growth a step", "bytes", AT(memory.growth_bytes_per_step)},
#undef AT
};

/* Where a figure is known for each step, its noise is too. */
static const struct phase {
  const char *name;
  size_t offset; /* in struct phase_times */
} phases[] = {
    {"data", offsetof(struct phase_times, data)},
    {"forward", offsetof(struct phase_times, forward)},
    {"backward", offsetof(struct phase_times, backward)},
    {"optimizer", offsetof(struct phase_times, optimizer)},
    {"other", offsetof(struct phase_times, other)},
};

static struct diff_row *add_row(struct diffing *d, u32 *room) {
  struct diff_result *out = d->out;
  if (out->n_rows == *room) {
    u32 more = *room ? *room * 2 : 64;
    struct diff_row *grown = arena_array(d->arena, more, sizeof(*grown));
    if (!grown)
      return NULL;
    if (out->n_rows)
      memcpy(grown, out->rows, out->n_rows * sizeof(*grown));
    out->rows = grown;
    *room = more;
  }
  return &out->rows[out->n_rows++];
}

static bool add(struct diffing *d, u32 *room, const char *section, const char *name,
                const char *unit, double before, double after) {
  if (isnan(before) && isnan(after))
    return true;
  struct diff_row *row = add_row(d, room);
  if (row)
    *row = (struct diff_row){section, name, unit, before, after, after / before - 1, NAN, NULL};
  if (row && !isfinite(row->change))
    row->change = NAN;
  return row != NULL;
}

/* A phase's time in each step, mean over ranks. The caller frees. */
static double *phase_series(const struct results *r, size_t offset, u32 *n) {
  const struct model *model = r->model;
  double *values = malloc((model->steps.n + 1) * sizeof(*values));
  u32 first = r->warmup_excluded > 0 ? (u32)r->warmup_excluded : 0;
  *n = 0;
  for (u32 step = first; values && model->phases && step < model->steps.n; step++) {
    double sum = 0;
    u32 ranks = 0;
    for (u32 rank = 0; rank < model->n_ranks; rank++) {
      const struct phase_times *times = &model->phases[(size_t)step * model->n_ranks + rank];
      i64 ns = *(const i64 *)((const char *)times + offset);
      ranks += ns != NS_UNKNOWN;
      sum += ns == NS_UNKNOWN ? 0 : (double)ns / 1e6;
    }
    if (ranks)
      values[(*n)++] = sum / ranks;
  }
  return values;
}

static int judge_phase(struct diffing *d, struct diff_row *row) {
  for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
    if (strcmp(row->name, phases[i].name) != 0)
      continue;
    u32 n_before, n_after;
    double width;
    double *before = phase_series(d->before, phases[i].offset, &n_before);
    double *after = phase_series(d->after, phases[i].offset, &n_after);
    bool good = before && after;
    if (good)
      row->p_value = diff_noise(before, n_before, after, n_after, &width);
    free(before);
    free(after);
    return good ? 0 : -ENOMEM;
  }
  return 0;
}

static int judge(struct diffing *d) {
  for (u32 i = 0; i < d->out->n_rows; i++) {
    struct diff_row *row = &d->out->rows[i];
    if (!strcmp(row->section, "phases")) {
      int error = judge_phase(d, row);
      if (error)
        return error;
    } else if (!strcmp(row->section, "step time") && !strcmp(row->name, "median")) {
      row->p_value = d->out->step_p_value;
    }
    if (!isnan(row->p_value))
      row->verdict = row->p_value >= 0.01 ? "same" : row->after > row->before ? "more" : "less";
  }
  return 0;
}

/* Shares by name of both sides: those of the later run first, then what only the earlier has. */
struct named {
  const char *name;
  double value;
};

static bool add_named(struct diffing *d, u32 *room, const char *section, const char *unit,
                      const struct named *before, u32 n_before, const struct named *after,
                      u32 n_after) {
  bool good = true;
  for (u32 i = 0; good && i < n_after; i++) {
    double was = 0;
    for (u32 k = 0; k < n_before; k++)
      if (!strcmp(before[k].name, after[i].name))
        was += before[k].value;
    good = add(d, room, section, after[i].name, unit, was, after[i].value);
  }
  for (u32 k = 0; good && k < n_before; k++) {
    bool known = false;
    for (u32 i = 0; i < n_after; i++)
      known |= !strcmp(before[k].name, after[i].name);
    if (!known)
      good = add(d, room, section, arena_text(d->arena, before[k].name), unit, before[k].value, 0);
  }
  return good;
}

enum { MOST_NAMES = 64 };

/* Kernel time by category, of one rank in one step; per run where there are no steps. */
static u32 kernel_shares(const struct results *r, struct named named[MOST_NAMES]) {
  double steps = r->step_count > 0 ? r->step_count : 1, ranks = r->n_ranks ? r->n_ranks : 1;
  u32 n = 0;
  for (u32 i = 0; i < r->n_kernel_categories && n < MOST_NAMES; i++)
    named[n++] = (struct named){r->kernel_categories[i].category,
                                r->kernel_categories[i].sum_ms / steps / ranks};
  return n;
}

static u32 path_shares(const struct results *r, struct named named[MOST_NAMES]) {
  u32 n = 0;
  for (u32 i = 0; i < r->n_path_by_category && n < MOST_NAMES; i++)
    named[n++] = (struct named){r->path_by_category[i].name, r->path_by_category[i].ms};
  return n;
}

static u32 memory_shares(const struct results *r, struct named named[MOST_NAMES]) {
  u32 n = 0;
  for (u32 i = 0; i < r->memory.n_by_category && n < MOST_NAMES; i++)
    if (r->memory.by_category[i].category)
      named[n++] =
          (struct named){r->memory.by_category[i].category, r->memory.by_category[i].bytes};
  return n;
}

/* By where they are made, so that what scales with the batch stands apart from what does not. */
static u32 tensor_shares(const struct results *r, struct named named[MOST_NAMES]) {
  u32 n = 0;
  for (u32 i = 0; i < r->memory.n_live_at_peak && n < MOST_NAMES; i++)
    if (r->memory.live_at_peak[i].source)
      named[n++] =
          (struct named){r->memory.live_at_peak[i].source, r->memory.live_at_peak[i].bytes};
  return n;
}

int diff_figures(struct diffing *d) {
  static const struct {
    const char *section, *unit;
    u32 (*list)(const struct results *, struct named *);
  } lists[] = {{"critical path", "ms", path_shares},
               {"kernels", "ms", kernel_shares},
               {"live at peak", "bytes", memory_shares},
               {"tensors at peak", "bytes", tensor_shares}};
  u32 room = 0;
  bool good = true;
  for (size_t i = 0; good && i < sizeof(figures) / sizeof(figures[0]); i++) {
    const struct figure *f = &figures[i];
    good = add(d, &room, f->section, f->name, f->unit,
               *(const double *)((const char *)d->before + f->offset),
               *(const double *)((const char *)d->after + f->offset));
  }
  for (size_t i = 0; good && i < sizeof(lists) / sizeof(lists[0]); i++) {
    struct named before[MOST_NAMES], after[MOST_NAMES];
    u32 n_before = lists[i].list(d->before, before), n_after = lists[i].list(d->after, after);
    if (n_before && n_after)
      good = add_named(d, &room, lists[i].section, lists[i].unit, before, n_before, after, n_after);
  }
  return good ? judge(d) : -ENOMEM;
}
