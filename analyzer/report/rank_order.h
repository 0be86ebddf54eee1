/* SPDX-License-Identifier: MIT
 *
 * Ranks beside each other, as every output shows them.
 */
#pragma once

#include "analyses/results/results.h"
#include "base/arena.h"

enum { FEW_RANKS = 8 }; /* are shown by rank */

/* The ranks in the order in which they are shown: those of a large run that cost their peers most
 * come first. */
const struct rank_result **ranks_in_order(const struct results *results, struct arena *arena);

/* The compute of a rank as it is shown beside differences of medians, ms. */
double compute_of(const struct rank_result *rank);
