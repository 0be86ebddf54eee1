/* SPDX-License-Identifier: MIT
 *
 * How many kernels devices run in each step: whether a step takes longer because it holds more.
 */
#pragma once

#include "analyses/analysis.h"

struct more_kernels {
  double in_them, usual; /* of the rank that has least more, medians of steps; NAN: not known */
  bool more;             /* that makes up most of what they take longer, if kernels are alike */
};

/* Of the steps marked in `them`, [model.steps.n], which take so much longer, beside the other steps
 * of training: of a rank, or if that is INDEX_NONE of all ranks, of which each has a device whose
 * kernels are known. */
struct more_kernels find_more_kernels(const struct analysis *a, const bool *them, double longer_ms,
                                      u32 rank);

struct longer_compute {
  double in_them_ms, usual_ms; /* of the rank that computes longest, medians of steps */
  struct more_kernels kernels; /* of that rank */
};

/* The ranks (their global numbers, into `ranks`) whose devices compute longer in these steps or in
 * those before, so that their peers wait for them, by half of what the steps take longer; how many.
 */
u32 ranks_that_compute_longer(const struct analysis *a, const bool *them, double longer_ms,
                              u32 *ranks, struct longer_compute *found);
