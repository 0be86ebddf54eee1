/* SPDX-License-Identifier: MIT
 *
 * The figures of both sides' reports: steps, phases, what steps are made of, kernels by category,
 * memory. A new figure is a line of a table here.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/sorting.h"
#include "diff/diff.h"

/* Of the figures reported as changed, at most this share is expected to be chance [Benjamini and
 * Hochberg, 1995]: there are dozens of figures, and one in a hundred would be found anyway. */
#define FALSE_DISCOVERIES 0.05

static const struct figure {
  enum diff_section section;
  enum diff_figure figure;
  enum diff_unit unit;
  size_t offset; /* of a double in struct results */
} figures[] = {
#define AT(member) offsetof(struct results, member)
    {DIFF_OF_STEP_TIME, FIGURE_STEP_MEDIAN, UNIT_MS, AT(step_median_ms)},
    {DIFF_OF_STEP_TIME, FIGURE_STEP_P95, UNIT_MS, AT(step_p95_ms)},
    {DIFF_OF_STEP_TIME, FIGURE_STEP_CV, UNIT_FRACTION, AT(step_cv)},
    {DIFF_OF_PHASES, FIGURE_DATA, UNIT_MS, AT(data_ms)},
    {DIFF_OF_PHASES, FIGURE_FORWARD, UNIT_MS, AT(forward_ms)},
    {DIFF_OF_PHASES, FIGURE_BACKWARD, UNIT_MS, AT(backward_ms)},
    {DIFF_OF_PHASES, FIGURE_OPTIMIZER, UNIT_MS, AT(optimizer_ms)},
    {DIFF_OF_PHASES, FIGURE_OTHER_PHASE, UNIT_MS, AT(other_ms)},
    {DIFF_OF_OVERLAP, FIGURE_COMMUNICATION, UNIT_MS, AT(ov_comm_ms)},
    {DIFF_OF_STEP, FIGURE_COMPUTE, UNIT_MS, AT(ov_compute_ms)},
    {DIFF_OF_STEP, FIGURE_EXPOSED_WAIT, UNIT_MS, AT(ov_exposed_wait_ms)},
    {DIFF_OF_STEP, FIGURE_EXPOSED_TRANSFER, UNIT_MS, AT(ov_exposed_transfer_ms)},
    {DIFF_OF_STEP, FIGURE_EXPOSED_MEMCPY, UNIT_MS, AT(ov_exposed_memcpy_ms)},
    {DIFF_OF_STEP, FIGURE_IDLE, UNIT_MS, AT(ov_idle_ms)},
    {DIFF_OF_STEP, FIGURE_GEMMS, UNIT_MS, AT(gemms.ms)},
    {DIFF_OF_UTILISATION, FIGURE_GEMM_SPEED, UNIT_TFLOPS, AT(gemms.tflops)},
    {DIFF_OF_UTILISATION, FIGURE_MFU, UNIT_FRACTION, AT(mfu)},
    {DIFF_OF_UTILISATION, FIGURE_HFU, UNIT_FRACTION, AT(hfu)},
    {DIFF_OF_MEMORY, FIGURE_PEAK_ALLOCATED, UNIT_BYTES, AT(memory.peak_allocated_bytes)},
    {DIFF_OF_MEMORY, FIGURE_PEAK_RESERVED, UNIT_BYTES, AT(memory.peak_reserved_bytes)},
    {DIFF_OF_MEMORY, FIGURE_INACTIVE, UNIT_BYTES, AT(memory.inactive_bytes)},
    {DIFF_OF_MEMORY, FIGURE_MEMORY_GROWTH, UNIT_BYTES, AT(memory.growth_bytes_per_step)},
#undef AT
};

/* Where a figure is known for each step, so is how far steps of one run differ. */
static const struct phase {
  enum diff_figure figure;
  u32 kind; /* of model/phase_times.h */
} phases[] = {
    {FIGURE_DATA, TSCOPE_PHASE_DATA},         {FIGURE_FORWARD, TSCOPE_PHASE_FORWARD},
    {FIGURE_BACKWARD, TSCOPE_PHASE_BACKWARD}, {FIGURE_OPTIMIZER, TSCOPE_PHASE_OPTIMIZER},
    {FIGURE_OTHER_PHASE, PHASE_OTHER},
};

struct entry {
  enum diff_section section;
  enum diff_figure figure;
  enum diff_unit unit;
  const char *name;
  double value;
};

struct entries {
  struct entry *at;
  u32 n, room;
};

/* Lists of names: a name that a run's list lacks was 0 there; if a run has no list, its values are
 * unknown. */
static bool is_list(enum diff_section section) {
  return section == DIFF_OF_CRITICAL_PATH || section == DIFF_OF_KERNELS ||
         section == DIFF_OF_LIVE_AT_PEAK || section == DIFF_OF_TENSORS_AT_PEAK;
}

static const struct entry *entry_of(const struct entries *entries, enum diff_section section,
                                    const char *name) {
  return FIND(entries->at, entries->n, one, one->section == section && !strcmp(one->name, name));
}

/* Entries with the same name (tensors of one place and several sizes) are one figure. */
static void add_entry(struct entries *entries, const struct entry *one) {
  struct entry *known =
      one->name ? (struct entry *)entry_of(entries, one->section, one->name) : NULL;
  if (known)
    known->value += one->value;
  else if (one->name && !isnan(one->value) && entries->n < entries->room)
    entries->at[entries->n++] = *one;
}

/* What the run has a list of. */
static void add_listed(struct entries *entries, enum diff_section section, const char *name,
                       enum diff_unit unit, double value) {
  add_entry(entries, &(struct entry){section, FIGURE_LISTED, unit, name, value});
}

enum { MOST_NAMES = 64 };

static u32 at_most_listed(u32 n) {
  return MIN(n, MOST_NAMES);
}

static void add_lists(struct entries *entries, const struct results *r, bool per_step) {
  double times = kernels_are_of(r, per_step);
  FOR_EACH(r->path_by_category, at_most_listed(r->n_path_by_category), one)
    add_listed(entries, DIFF_OF_CRITICAL_PATH, one->name, UNIT_MS, one->ms);
  FOR_EACH(r->kernel_categories, at_most_listed(r->n_kernel_categories), one)
    add_listed(entries, DIFF_OF_KERNELS, one->category, UNIT_MS, one->sum_ms / times);
  FOR_EACH(r->memory.by_category, at_most_listed(r->memory.n_by_category), one)
    add_listed(entries, DIFF_OF_LIVE_AT_PEAK, one->category, UNIT_BYTES, one->bytes);
  FOR_EACH(r->memory.live_at_peak, at_most_listed(r->memory.n_live_at_peak), one)
    add_listed(entries, DIFF_OF_TENSORS_AT_PEAK, one->source, UNIT_BYTES, one->bytes);
}

/* What the job reports about itself, if several runs on each side show its noise. */
static void add_levels(struct diffing *d, struct entries *entries, const struct results *r) {
  struct diff_level levels[MOST_NAMES];
  u32 n = d->several ? diff_levels(d, r->model, levels, MOST_NAMES) : 0;
  FOR_EACH(levels, n, level)
    add_listed(entries, DIFF_OF_VALUES, level->name, UNIT_VALUE, level->value);
}

/* A run without steps has only totals where others have values per step: they are not the same
 * figure. */
static bool is_comparable(const struct figure *f, bool one_kind) {
  return one_kind || (f->section != DIFF_OF_STEP && f->section != DIFF_OF_OVERLAP);
}

static void add_figures(struct diffing *d, struct entries *entries, const struct results *r,
                        bool one_kind, bool per_step) {
  enum { FIGURES = LENGTH_OF(figures) };
  *entries = (struct entries){.room = FIGURES + 5 * MOST_NAMES};
  entries->at = arena_array(&d->scratch, entries->room, sizeof(*entries->at));
  FOR_EACH(figures, FIGURES, one)
    if (is_comparable(one, one_kind))
      add_entry(entries, &(struct entry){one->section, one->figure, one->unit,
                                         diff_figure_words[one->figure],
                                         *(const double *)((const char *)r + one->offset)});
  add_lists(entries, r, per_step);
  add_levels(d, entries, r);
}

struct comparison {
  struct diffing *d;
  struct entries *runs[2]; /* [d->sides[].n] */
  double *values;          /* of all of these, of the figure at hand */
};

/* False where one side knows nothing of it. */
static bool gather_values(struct comparison *c, const struct entry *of) {
  bool list = is_list(of->section), known[2] = {false, false};
  u32 n = 0;
  EACH_RUN(c->d, side, i) {
    const struct entries *run = &c->runs[side][i];
    const struct entry *entry = entry_of(run, of->section, of->name);
    bool has_list = list && ANY(run->at, run->n, one, one->section == of->section);
    double value = entry ? entry->value : has_list ? 0 : (double)NAN;
    c->values[n++] = value;
    known[side] |= !isnan(value);
  }
  return !list || (known[BEFORE] && known[AFTER]);
}

static void add_row(struct comparison *c, const struct entry *of) {
  struct diff_result *out = c->d->out;
  const struct diff_compared is = diff_compare(c->d, c->values);
  double change = is.after / is.before - 1;
  out->rows[out->n_rows++] = (struct diff_row){.name = arena_text(c->d->arena, of->name),
                                               .change = is.before == is.after ? 0
                                                         : isfinite(change)    ? change
                                                                               : NAN,
                                               SAME(&is, before, after, p_value),
                                               SAME(of, section, figure, unit)};
}

static void add_rows(struct comparison *c) {
  struct diff_result *out = c->d->out;
  u32 room = 0;
  EACH_RUN(c->d, side, i)
    room += c->runs[side][i].n;
  out->rows = arena_array(c->d->arena, room, sizeof(*out->rows));
  for (int side = AFTER; side >= BEFORE; side--)
    for (u32 i = 0; i < c->d->sides[side]->n; i++)
      FOR_EACH(c->runs[side][i].at, c->runs[side][i].n, of) {
        if (!ANY(out->rows, out->n_rows, one,
                 one->section == of->section && !strcmp(one->name, of->name)) &&
            gather_values(c, of))
          add_row(c, of);
      }
}

/* Noise within the two runs, where there is only one a side. */

static double mean_phase_ms(const struct model *model, u32 step, u32 kind) {
  return MEAN_KNOWN(0, model->n_ranks, rank, phase_ms(model, rank, step, kind));
}

/* A phase's time in each step, mean over ranks. */
static double *phase_series(struct diffing *d, const struct results *r, u32 kind, u32 *n) {
  const struct model *model = r->model;
  const bool *trains = diff_training_steps(&d->scratch, r);
  double *values = arena_array(&d->scratch, model->steps.n, sizeof(*values));
  *n = LIST_KNOWN(values, 0, model->phases ? model->steps.n : 0, step,
                  trains[step] ? mean_phase_ms(model, step, kind) : NAN);
  return values;
}

static void noise_within(struct diffing *d, struct diff_row *row) {
  if (row->figure == FIGURE_STEP_MEDIAN)
    row->p_value = d->out->step_p_value;
  FOR_EACH(phases, LENGTH_OF(phases), phase) {
    if (row->figure != phase->figure)
      continue;
    u32 n_before, n_after;
    double *before = phase_series(d, d->before, phase->kind, &n_before);
    double *after = phase_series(d, d->after, phase->kind, &n_after);
    row->p_value = diff_noise(before, n_before, after, n_after, NULL);
    return;
  }
}

/* The largest p-value that still counts as found among so many. */
static double threshold_among(struct diffing *d) {
  const struct diff_result *out = d->out;
  double threshold = -1, *p = arena_array(&d->scratch, out->n_rows, sizeof(*p));
  u32 n = LIST_KNOWN(p, 0, out->n_rows, i, out->rows[i].p_value);
  SORT(p, n, by_double);
  for (u32 i = 0; i < n; i++)
    if (p[i] <= FALSE_DISCOVERIES * (i + 1) / n)
      threshold = p[i];
  return threshold;
}

/* One run a side can only excuse a figure: steps of one run that differ as much. */
static void set_verdicts(struct diffing *d) {
  double threshold = d->several ? threshold_among(d) : DIFF_SIGNIFICANCE;
  for (u32 i = 0; i < d->out->n_rows && !d->several; i++)
    noise_within(d, &d->out->rows[i]);
  FOR_EACH_CHANGED(d->out->rows, d->out->n_rows, row) {
    if (!isnan(row->p_value) && d->several && row->p_value <= threshold)
      row->verdict = row->after > row->before ? FIGURE_IS_MORE : FIGURE_IS_LESS;
    else if (!isnan(row->p_value) && (d->several || row->p_value >= threshold))
      row->verdict = FIGURE_IS_SAME;
  }
}

void diff_figures(struct diffing *d) {
  struct comparison c = {.d = d};
  bool stepped = true, whole = true;
  EACH_RUN(d, side, i) {
    stepped &= d->sides[side]->runs[i]->step_count > 0;
    whole &= d->sides[side]->runs[i]->whole_run;
  }
  bool one_kind = stepped || whole;
  for (u32 side = BEFORE; side <= AFTER; side++)
    c.runs[side] = arena_array(&d->scratch, d->sides[side]->n, sizeof(*c.runs[side]));
  EACH_RUN(d, side, i)
    add_figures(d, &c.runs[side][i], d->sides[side]->runs[i], one_kind, stepped);
  c.values = arena_array(&d->scratch, d->out->n_runs, sizeof(double));
  d->out->kernels_per = stepped ? KERNELS_PER_STEP : KERNELS_IN_ALL;
  add_rows(&c);
  set_verdicts(d);
}
