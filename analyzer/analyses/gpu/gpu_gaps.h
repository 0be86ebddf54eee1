/* SPDX-License-Identifier: MIT
 *
 * When a GPU does nothing, and until when for want of a launch: found once for each rank, for all
 * analyses that ask.
 */
#pragma once

#include "analyses/analysis.h"

/* From the end of all work before it to the begin of the next. The call that launches the next one
 * begins and ends in between: each clamped to the gap, NS_UNKNOWN if it is not known. */
struct gpu_gap {
  i64 begin; /* NS_UNKNOWN: before the first work */
  i64 call, launched;
  i64 end;
};

struct gpu_gaps {
  struct gpu_gap *at; /* in order, disjoint */
  u32 n;
};

/* Empty where it is not known what ran. Freed with free(gaps.at). */
void gpu_gaps_find(const struct timeline *timeline, struct gpu_gaps *out);
