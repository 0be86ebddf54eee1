/* SPDX-License-Identifier: MIT
 *
 * A straggler that no one collective shows: the others wait for it in messages, or a root that
 * collects from all waits for it and they for the root; or they wait at many collectives of a step,
 * little at each. The dependency graph knows: more of the critical
 * path than on any other lies on that rank, and in most steps a replay with it as fast as its peers
 * is shorter.
 */
#include <math.h>

#include "analyses/path/path_replay.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "model/clock_error.h"

/* More of the path than an equal part of it: then a replay is asked whether it counts. */
#define PATH_BEYOND_ITS_PART 0.1

double share_of_path(const struct results *r, u32 rank) {
  double sum = TOTAL(double, r->path_by_rank, r->n_ranks, one, *one);
  return sum > 0 ? r->path_by_rank[rank] / sum : 0;
}

u32 rank_of_path(const struct results *r) {
  const double *longest = LARGEST(r->path_by_rank, r->n_ranks, one, true, *one);
  u32 most = longest ? (u32)(longest - r->path_by_rank) : 0;
  double share = share_of_path(r, most);
  return share >= 1.0 / r->n_ranks + PATH_BEYOND_ITS_PART ? most : INDEX_NONE;
}

/* If all ranks were alike, each would be the one that delays a step in 1/n of the steps. Or it is
 * known that it comes last at a collective, if only by little there: it may do so at many a step.
 */
static double chance_of_path(const struct results *r, const struct rank_result *rank,
                             const struct saving *saving) {
  double p = r->n_ranks * chance_of_count(saving->half_saved, saving->steps, 1.0 / r->n_ranks,
                                          saving->correlation);
  return rank->slowest_fraction > STRAGGLER_MAJORITY ? fmin(p, rank->p_value) : p;
}

/* That of the others in communication, mean; a rank that is only slower keeps nobody waiting. */
static double wait_of_others_ms(const struct results *r, u32 rank) {
  double mean = MEAN_KNOWN(0, r->n_ranks, i, i == rank ? (double)NAN : r->ranks[i].exposed_wait_ms);
  return isnan(mean) ? 0 : mean;
}

/* Of the difference between the clocks of two ranks that the path has, at most. */
static double clock_error_ms(const struct analysis *a) {
  const struct model *model = a->model;
  u32 *ranks = arena_array(a->arena, model->n_ranks, sizeof(u32));
  u32 n = LIST_WHERE(ranks, 0, model->n_ranks, r, model->ranks[r].clock.aligned, r);
  return widest_clock_error_ns(model, ranks, n) / 1e6;
}

bool name_straggler_of_path(struct analysis *a) {
  struct results *r = a->results;
  u32 index = r->n_pipeline_stage ? INDEX_NONE : rank_of_path(r);
  if (index == INDEX_NONE || r->ranks[index].refuted || !replay_knows_waits(a, index))
    return false;
  bool *alone = arena_array(a->arena, r->n_ranks, sizeof(bool));
  alone[index] = true;
  struct cure_change change = {.kind = CHANGE_RANKS, .ranks = alone};
  struct saving saving;
  replay_savings(a, &(struct cure){&change, 1}, 1, false, &saving);
  struct rank_result *rank = &r->ranks[index];
  double p = chance_of_path(r, rank, &saving);
  if (!(saving.low_ms >= fmax(WORTH_MENTIONING * r->step_mean_ms, clock_error_ms(a))) ||
      !saving_pays(&saving, r->step_mean_ms) || !(p < STRAGGLER_SIGNIFICANCE) ||
      wait_of_others_ms(r, index) < REASON_SHARE * saving.ms)
    return false;
  rank->straggler = rank->of_path = true;
  rank->p_value = p;
  rank->imposed_wait_ms = rank->lateness_ms = rank->late_a_step_ms = saving.ms;
  rank->lateness_error_ms = rank->late_a_step_error_ms = saving.error_ms;
  rank->collective = "no one collective";
  straggler_reasons_fill(a);
  return true;
}
