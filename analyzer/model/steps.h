/* SPDX-License-Identifier: MIT
 *
 * Where training steps begin and end. Each way of finding them fills one list of bounds per rank.
 */
#ifndef TSCOPE_STEPS_H
#define TSCOPE_STEPS_H

#include "internal.h"

/* Step s of this rank is [bounds[s], bounds[s + 1]); its number in the run is first + s. */
struct rank_bounds {
  VECTOR(i64) at;
  u32 first;
};

/* All fill bounds[n_ranks] and give the confidence; false when there is no evidence of this kind.
 * The caller frees bounds[].at.at. Memory that runs out reads as no evidence. */
bool bounds_by_marks(const struct model *model, struct rank_bounds *bounds, double *confidence);
bool bounds_by_ranges(const struct model *model, struct rank_bounds *bounds, double *confidence);
bool bounds_by_optimizer(const struct model *model, struct rank_bounds *bounds, double *confidence);

/* The optimizer ranges of a rank that are over and lie in no other, in order of time: indices into
 * spine.phases, for which `phases` has room. Returns how many. */
u32 list_optimizer_phases(const struct spine *spine, u32 *phases);

/* By the period of the collective sequence. Sets arrival.step relative to the bounds, since work
 * that the host enqueued ahead of time belongs to the step that its call is part of. */
bool bounds_by_period(const struct model *model, struct rank_bounds *bounds, double *confidence,
                      unsigned threads);

#endif
