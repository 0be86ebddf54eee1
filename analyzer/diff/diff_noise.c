/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/statistics.h"
#include "diff/diff.h"

enum { BATCHES = 8 };

/* Independent values of one level. */
struct sample {
  double mean, error; /* the mean's standard error */
  u32 n;
};

static struct sample sample_of(const double *values, u32 n) {
  SCOPED double *known = memory_array(n, sizeof(*known));
  u32 n_known = LIST_KNOWN(known, 0, n, i, values[i]);
  return (struct sample){mean_of(known, n_known), deviation_of(known, n_known) / sqrt(n_known),
                         n_known};
}

/* Welch's test; degrees of freedom after Welch and Satterthwaite. */
static double welch(const struct sample *a, const struct sample *b, double *half_width) {
  double va = a->error * a->error, vb = b->error * b->error, error = sqrt(va + vb);
  double freedom = (va + vb) * (va + vb) / (va * va / (a->n - 1) + vb * vb / (b->n - 1));
  if (half_width)
    *half_width = error == 0 ? 0 : student_quantile(0.99, freedom) * error;
  if (error == 0)
    return a->mean == b->mean ? 1 : 0;
  return student_tails((b->mean - a->mean) / error, freedom);
}

static struct sample batch_means(const double *values, u32 n) {
  double medians[BATCHES];
  SCOPED double *scratch = memory_array(n, sizeof(*scratch));
  memcpy(scratch, values, n * sizeof(*scratch));
  for (u32 i = 0; i < BATCHES; i++) {
    u32 from = (u32)((u64)n * i / BATCHES), to = (u32)((u64)n * (i + 1) / BATCHES);
    medians[i] = median_of(scratch + from, to - from);
  }
  return sample_of(medians, BATCHES);
}

double diff_noise(const double *before, u32 n_before, const double *after, u32 n_after,
                  double *half_width) {
  if (half_width)
    *half_width = NAN;
  if (n_before < DIFF_LEAST_STEPS || n_after < DIFF_LEAST_STEPS)
    return NAN;
  struct sample a = batch_means(before, n_before), b = batch_means(after, n_after);
  return welch(&a, &b, half_width);
}

double diff_noise_between(const double *before, u32 n_before, const double *after, u32 n_after,
                          double *half_width) {
  struct sample a = sample_of(before, n_before), b = sample_of(after, n_after);
  if (half_width)
    *half_width = NAN;
  return a.n < DIFF_LEAST_RUNS || b.n < DIFF_LEAST_RUNS ? NAN : welch(&a, &b, half_width);
}

struct diff_compared diff_compare(const struct diffing *d, const double *values) {
  u32 n_before = d->sides[BEFORE]->n, n_after = d->sides[AFTER]->n;
  const double *after = values + n_before;
  return (struct diff_compared){
      diff_mean(values, n_before), diff_mean(after, n_after),
      d->several ? diff_noise_between(values, n_before, after, n_after, NULL) : NAN};
}
