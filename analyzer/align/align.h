/* SPDX-License-Identifier: MIT
 *
 * Puts the clocks of all ranks on one axis. Ranks of one boot of one host share a clock
 * (clock_domains.h). Clocks of different hosts are tied by collectives that work as barriers
 * (all-reduce, all-gather, reduce-scatter, all-to-all, barrier) and by messages (clock_fit.h).
 * Groups are chained through the hosts they share.
 */
#pragma once

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
 * CLOCK_MONOTONIC. Sets rank.clock, clock_aligned, clock_method, clock_residual_us and
 * clock_between_us; strings live in `arena`. Where alignment is refused, clocks follow
 * CLOCK_REALTIME as best they can. */
void align_clocks(struct model *model, const struct clock_facts *facts, struct rank_clock *clocks,
                  struct arena *arena, unsigned threads);
