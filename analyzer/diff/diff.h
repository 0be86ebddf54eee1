/* SPDX-License-Identifier: MIT
 *
 * Two runs against each other. Pure functions from two results to a struct diff_result, one file
 * for each kind of thing that is compared; diff.c calls them in order.
 */
#ifndef TSCOPE_DIFF_H
#define TSCOPE_DIFF_H

#include "analyses/results.h"
#include "base/arena.h"
#include "diff/diff_result.h"

/* Fills in after->diff. What it says lives as long as `after`; `before` need not, but for
 * diff.earlier, which outputs that show both runs side by side read. 0, or negative errno. */
int diff_results(const struct results *before, struct results *after);

struct diffing {
  const struct results *before, *after;
  struct diff_result *out;
  struct arena *arena; /* of `after` */
};

/* Each 0 or negative errno. */
int diff_steps(struct diffing *d);
int diff_figures(struct diffing *d);
int diff_collectives(struct diffing *d);
int diff_provenance(struct diffing *d);
int diff_scalars(struct diffing *d);
int diff_findings(struct diffing *d);

/* The probability that the medians of two series differ so much if nothing changed, and half the
 * width of the 99 % interval of their difference; by means of batches, so that steps that resemble
 * their neighbours do not count twice [Law and Carson, 1979]. NAN where a series is too short. */
enum { DIFF_LEAST_STEPS = 16 };
double diff_noise(const double *before, u32 n_before, const double *after, u32 n_after,
                  double *half_width);

#endif
