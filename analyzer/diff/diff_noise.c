/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/statistics.h"
#include "diff/diff.h"

enum { BATCHES = 8 };

struct batched {
  double mean, error; /* of the batches' medians, and its standard error */
};

static bool batch(const double *values, u32 n, struct batched *out) {
  double medians[BATCHES], *scratch = malloc(n * sizeof(*scratch));
  if (!scratch)
    return false;
  memcpy(scratch, values, n * sizeof(*scratch));
  for (u32 i = 0; i < BATCHES; i++) {
    u32 from = (u32)((u64)n * i / BATCHES), to = (u32)((u64)n * (i + 1) / BATCHES);
    medians[i] = median_of(scratch + from, to - from);
  }
  free(scratch);
  out->mean = mean_of(medians, BATCHES);
  double squares = 0;
  for (u32 i = 0; i < BATCHES; i++)
    squares += (medians[i] - out->mean) * (medians[i] - out->mean);
  out->error = sqrt(squares / (BATCHES - 1) / BATCHES);
  return true;
}

double diff_noise(const double *before, u32 n_before, const double *after, u32 n_after,
                  double *half_width) {
  struct batched a, b;
  *half_width = NAN;
  if (n_before < DIFF_LEAST_STEPS || n_after < DIFF_LEAST_STEPS || !batch(before, n_before, &a) ||
      !batch(after, n_after, &b))
    return NAN;
  double va = a.error * a.error, vb = b.error * b.error, error = sqrt(va + vb);
  if (error == 0) {
    *half_width = 0;
    return a.mean == b.mean ? 1 : 0;
  }
  /* Welch's test; degrees of freedom after Welch and Satterthwaite. */
  double freedom = (va + vb) * (va + vb) / ((va * va + vb * vb) / (BATCHES - 1));
  *half_width = student_quantile(0.99, freedom) * error;
  return student_tails((b.mean - a.mean) / error, freedom);
}
