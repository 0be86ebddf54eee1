/* SPDX-License-Identifier: MIT
 *
 * Why the GPU of a straggler computes longer than its peers'.
 */
#pragma once

#include "analyses/findings/findings.h"
#include "analyses/queries.h"

/* What the GPU of a rank does longer than its peers': more work, or the same more slowly. */
struct gpu_excess {
  bool known, more_work;
  const char *place;           /* of the line that launches most of it; NULL */
  double place_ms, arithmetic; /* a step; of GEMMs and attention, as a multiple of the peers' */
  struct longer_kernels kernels;
};

/* Nothing is known of a rank whose reason is another, or whose kernels are not known. */
struct gpu_excess find_gpu_excess(struct findings *f, const struct rank_result *rank);

/* In words, after a blank; "" if nothing is known. */
const char *describe_gpu_excess(struct findings *f, const struct gpu_excess *found);
