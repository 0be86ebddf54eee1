/* SPDX-License-Identifier: MIT
 *
 * Processes of one booted machine share CLOCK_MONOTONIC exactly. That is better than any fit, but
 * host names can lie (containers), so it is used only where collective ends agree with it.
 */
#ifndef TSCOPE_HOST_CLOCK_H
#define TSCOPE_HOST_CLOCK_H

#include "align/align.h"
#include "align/samples.h"

/* Gives the ranks of each host one clock, if the ends of those `placed` confirm it; on the host of
 * `root`, whose clock is the axis, they get that clock. Returns how many ranks share a clock with
 * another rank. Their residual becomes the error of reading the clock itself. */
u32 share_host_clocks(struct model *model, const struct clock_facts *facts,
                      const struct samples *samples, const bool *placed, u32 root,
                      struct rank_clock *clocks);

/* Whether all ranks say that they are on one host, and their clocks' distances from CLOCK_REALTIME
 * confirm it. */
bool share_host_clock_unchecked(const struct model *model, const struct clock_facts *facts);

/* Whether collective calls, ends known or not, chain all ranks together. */
bool linked_by_calls(const struct model *model, struct arena *scratch);

#endif
