/* SPDX-License-Identifier: MIT
 *
 * Where the values that both runs tell (the loss) part.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"

/* Of the larger value: beyond what sums in another order do. */
#define PARTED 1e-3

struct point {
  const char *name;
  u32 step;
  double value;
};

static int by_name_and_step(const void *left, const void *right) {
  const struct point *a = left, *b = right;
  int name = strcmp(a->name, b->name);
  return name ? name : (a->step > b->step) - (a->step < b->step);
}

/* The values of the lowest rank that tells any, by name and step. The caller frees. */
static struct point *points_of(const struct model *model, u32 *n) {
  struct point *points = malloc((model->n_scalars + 1) * sizeof(*points));
  u32 rank = INDEX_NONE;
  *n = 0;
  for (u32 i = 0; i < model->n_scalars; i++)
    if (model->scalars[i].step != INDEX_NONE && model->scalars[i].rank < rank)
      rank = model->scalars[i].rank;
  for (u32 i = 0; points && i < model->n_scalars; i++) {
    const struct scalar *scalar = &model->scalars[i];
    if (scalar->name && scalar->step != INDEX_NONE && scalar->rank == rank)
      points[(*n)++] = (struct point){scalar->name, scalar->step, scalar->value};
  }
  if (points)
    qsort(points, *n, sizeof(*points), by_name_and_step);
  return points;
}

static bool parted(double a, double b) {
  if (isnan(a) || isnan(b))
    return isnan(a) != isnan(b);
  return fabs(a - b) > PARTED * fmax(fabs(a), fabs(b));
}

static void compare_point(struct diff_scalar *row, const struct point *a, const struct point *b) {
  row->steps++;
  bool differs = a->value != b->value && !(isnan(a->value) && isnan(b->value));
  if (differs && isnan(row->first_step)) {
    row->first_step = b->step;
    row->before = a->value;
    row->after = b->value;
  }
  if (parted(a->value, b->value) && isnan(row->parted_step)) {
    row->parted_step = b->step;
    row->before = a->value;
    row->after = b->value;
  }
}

int diff_scalars(struct diffing *d) {
  struct diff_result *out = d->out;
  u32 n_before, n_after;
  struct point *before = points_of(d->before->model, &n_before);
  struct point *after = points_of(d->after->model, &n_after);
  out->scalars = arena_array(d->arena, n_after + 1u, sizeof(*out->scalars));
  int error = before && after && out->scalars ? 0 : -ENOMEM;
  for (u32 i = 0, k = 0; !error && i < n_before && k < n_after;) {
    int order = by_name_and_step(&before[i], &after[k]);
    if (order == 0) {
      struct diff_scalar *row = out->n_scalars ? &out->scalars[out->n_scalars - 1] : NULL;
      if (!row || strcmp(row->name, after[k].name) != 0) {
        row = &out->scalars[out->n_scalars++];
        *row = (struct diff_scalar){after[k].name, 0, NAN, NAN, NAN, NAN};
      }
      compare_point(row, &before[i], &after[k]);
    }
    i += order <= 0;
    k += order >= 0;
  }
  free(before);
  free(after);
  return error;
}
