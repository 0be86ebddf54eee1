/* SPDX-License-Identifier: MIT
 *
 * Where the values that both runs report (the loss) begin to differ, and the level at which they
 * end.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorting.h"
#include "base/statistics.h"
#include "diff/diff.h"
#include "format/scalar_line.h"

/* A share of the larger value: more than a different order of sums causes. */
#define PARTED 1e-3

struct point {
  const char *name;
  u32 step;
  double value;
};

ORDER_BY(by_name_and_step, struct point, BY_TEXT(name) UP(step))

/* The values of the lowest rank that reports any, by name and step. */
static struct point *points_of(struct arena *scratch, const struct model *model, u32 *n) {
  struct point *points = arena_array(scratch, model->n_scalars, sizeof(*points));
  u32 rank = INDEX_NONE;
  const struct scalar *all = model->scalars;
  FOR_EACH(all, model->n_scalars, one)
    if (one->step != INDEX_NONE && one->rank < rank)
      rank = one->rank;
  *n = LIST_WHERE(points, 0, model->n_scalars, i,
                  all[i].name && all[i].step != INDEX_NONE && all[i].rank == rank,
                  ((struct point){all[i].name, all[i].step, all[i].value}));
  SORT(points, *n, by_name_and_step);
  return points;
}

static bool differ(double a, double b) {
  if (isnan(a) || isnan(b))
    return isnan(a) != isnan(b);
  return fabs(a - b) > PARTED * fmax(fabs(a), fabs(b));
}

static void compare_point(struct diff_scalar *row, const struct point *a, const struct point *b) {
  row->steps++;
  bool differs = a->value != b->value && !(isnan(a->value) && isnan(b->value));
  bool first = differs && isnan(row->first_step);
  bool parted = differ(a->value, b->value) && isnan(row->parted_step);
  row->first_step = first ? b->step : row->first_step;
  row->parted_step = parted ? b->step : row->parted_step;
  if (first || parted) {
    row->before = a->value;
    row->after = b->value;
  }
}

/* The level at the end, by which several runs a side are compared. */

/* The last quarter of the steps for which all runs report values that report any. */
static void choose_level_steps(struct diffing *d) {
  u32 from = 0, to = INDEX_NONE;
  EACH_RUN(d, side, i) {
    const struct model *model = d->sides[side]->runs[i]->model;
    u32 first = INDEX_NONE, last = 0;
    FOR_EACH(model->scalars, model->n_scalars, scalar) {
      u32 step = scalar->step;
      first = MIN(step, first);
      last = step == INDEX_NONE ? last : MAX(step, last);
    }
    if (first == INDEX_NONE)
      continue;
    from = MAX(first, from);
    to = MIN(last, to);
  }
  d->level_to = to;
  d->level_from = to > from ? to - (to - from) / 4 : to;
}

u32 diff_levels(struct diffing *d, const struct model *model, struct diff_level *levels, u32 room) {
  u32 n_points, n = 0;
  struct point *points = points_of(&d->scratch, model, &n_points);
  double *values = arena_array(&d->scratch, n_points, sizeof(*values));
  for (u32 i = 0, named; i < n_points && n < room; i += named) {
    named = ROW_OF_EQUALS(&points[i], n_points - i, a, b, !strcmp(a->name, b->name));
    u32 n_values = LIST_WHERE(values, i, i + named, k,
                              points[k].step >= d->level_from && points[k].step <= d->level_to,
                              points[k].value);
    if (n_values)
      levels[n++] = (struct diff_level){points[i].name, median_of(values, n_values)};
  }
  return n;
}

static u32 compare_points(const struct point *before, u32 n_before, const struct point *after,
                          u32 n_after, struct diff_scalar *rows) {
  u32 n = 0;
  for (u32 i = 0, k = 0; i < n_before && k < n_after;) {
    int order = by_name_and_step(&before[i], &after[k]);
    if (order == 0) {
      if (!n || strcmp(rows[n - 1].name, after[k].name) != 0)
        rows[n++] = (struct diff_scalar){after[k].name, 0, NAN, NAN, NAN, NAN};
      compare_point(&rows[n - 1], &before[i], &after[k]);
    }
    i += order <= 0;
    k += order >= 0;
  }
  return n;
}

static void compare_models(struct arena *arena, struct arena *scratch, const struct model *before,
                           const struct model *after, struct diff_scalar **rows, u32 *n) {
  u32 n_before, n_after;
  struct point *was = points_of(scratch, before, &n_before);
  struct point *is = points_of(scratch, after, &n_after);
  *rows = arena_array(arena, n_after, sizeof(**rows));
  *n = compare_points(was, n_before, is, n_after, *rows);
}

bool diff_is_result(const char *name) {
  enum scalar_role role = scalar_role_of(name);
  return role == SCALAR_ROLE_LOSS || role == SCALAR_ROLE_EVAL_LOSS || role == SCALAR_ROLE_GRAD_NORM;
}

double diff_bits(const struct model *before, const struct model *after, const char **name) {
  SCOPED_ARENA struct arena scratch = {0};
  struct diff_scalar *rows;
  u32 n = 0;
  compare_models(&scratch, &scratch, before, after, &rows, &n);
  const struct diff_scalar *first =
      LARGEST(rows, n, one, diff_is_result(one->name) && !isnan(one->first_step), -one->first_step);
  if (first)
    *name = first->name;
  return first ? first->first_step : NAN;
}

void diff_scalars(struct diffing *d) {
  choose_level_steps(d);
  compare_models(d->arena, &d->scratch, d->before->model, d->after->model, &d->out->scalars,
                 &d->out->n_scalars);
}
