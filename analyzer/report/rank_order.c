/* SPDX-License-Identifier: MIT */
#include "report/rank_order.h"

#include <math.h>

#include "base/sorting.h"

/* The value beside differences of medians is a median too. If most steps have no compute, a median
 * of 0 says nothing, and no difference is shown. */
double compute_of(const struct rank_result *rank) {
  return rank->median_compute_ms > 0 ? rank->median_compute_ms : rank->mean_compute_ms;
}

/* Stragglers first, then by the wait they impose; unknown ones last; else by rank. */
static double known_wait(const struct rank_result *rank) {
  return isnan(rank->imposed_wait_ms) ? -1 : rank->imposed_wait_ms;
}

ORDER_POINTERS_BY(worst_first, struct rank_result, DOWN(straggler) DOWN_OF(known_wait) UP(rank))

const struct rank_result **ranks_in_order(const struct results *results, struct arena *arena) {
  u32 n = results->n_ranks;
  const struct rank_result **ranks = arena_array(arena, n, sizeof(*ranks));
  for (u32 i = 0; i < n; i++)
    ranks[i] = &results->ranks[i];
  if (n > FEW_RANKS)
    SORT(ranks, n, worst_first);
  return ranks;
}
