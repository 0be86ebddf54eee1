/* SPDX-License-Identifier: MIT
 *
 * Puts the clocks of all ranks on one axis. Collectives that work as barriers (all-reduce,
 * all-gather, reduce-scatter, all-to-all, barrier) end at the same time everywhere, within
 * microseconds, however far apart they start. So the difference of their ends is the difference of
 * the clocks. Groups are chained through the ranks they share.
 */
#ifndef TSCOPE_ALIGN_H
#define TSCOPE_ALIGN_H

#include "base/arena.h"
#include "model/model.h"
#include "model/rank_clock.h"

/* What is known of a rank's clock before looking at collectives. */
struct clock_facts {
  i64 realtime_minus_monotonic;
  u64 anchor_error_ns;
  i64 begin; /* first instant in its trace, local */
};

/* How much further a's wall clock is from the time since boot than b's; NS_UNKNOWN if one of the
 * files has an impossible value. */
i64 clock_realtime_difference(const struct clock_facts *a, const struct clock_facts *b);

/* Finds clocks[n_ranks] from model.collectives and model.arrivals, whose times are local
 * CLOCK_MONOTONIC. Sets rank.clock, clock_aligned, clock_method, clock_residual_us; strings live
 * in `arena`. Where alignment is refused, clocks follow CLOCK_REALTIME as best they can.
 * 0, or -ENOMEM. */
int align_clocks(struct model *model, const struct clock_facts *facts, struct rank_clock *clocks,
                 struct arena *arena);

#endif
