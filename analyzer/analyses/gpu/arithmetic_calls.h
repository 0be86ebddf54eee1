/* SPDX-License-Identifier: MIT
 *
 * What flops.c finds about the calls of a rank, for gemms.c.
 */
#pragma once

#include "analyses/analysis.h"

/* Results for the calls of a timeline (flops.c), by index into timeline.arithmetic. */
struct arithmetic_calls {
  const i64 *first_start; /* start of the first kernel, NS_UNKNOWN if none was seen */
  const i64 *kernel_ns;   /* of its kernels, summed */
  const bool *analysed;   /* it is in the analysed steps */
  const u64 *replays;     /* [gemms.n_contents] replays that are */
};

/* gemms.c: time and speed of GEMMs, by shape and precision. */
void gemms_rank(struct analysis *a, const struct timeline *timeline,
                const struct arithmetic_calls *calls);
