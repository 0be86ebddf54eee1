/* SPDX-License-Identifier: MIT
 *
 * Which ranks read the same clock. Processes of one boot of one machine share CLOCK_MONOTONIC
 * exactly, unless they live in different time namespaces. No fit is as good as that, so such ranks
 * are never placed apart. Traces say the boot and the offset of their namespace; older ones only
 * the name of the host and their distance from the wall clock.
 */
#pragma once

#include "align/align.h"
#include "align/samples.h"

struct clock_domains {
  u32 n;
  u32 *of; /* [n_ranks] number of its domain; the first rank of each number is in ascending order */
  u32 shared;     /* ranks that share a clock with another rank */
  bool certain;   /* the traces say the boot of each clock that is shared */
  bool confirmed; /* collectives with known ends agree with each rank that shares a clock */
};

/* Facts can lie (copied machines and containers have the same names and numbers). Where a rank's
 * collectives end before another rank of the same clock has started them, each rank of this clock
 * gets a clock of its own. */
void clock_domains_find(struct clock_domains *domains, const struct model *model,
                        const struct clock_facts *facts, const struct samples *samples,
                        struct arena *arena);
