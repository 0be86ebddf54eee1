/* SPDX-License-Identifier: MIT
 *
 * Who arrives last, over all collectives in which every member waits for every other: what even a
 * single step shows, whatever made it late. stragglers.c asks who is late for reasons of its own:
 * it takes off what a rank waited in other communicators, and asks whether it happens regularly.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"

static u32 judged_last(const struct analysis *a, const struct collective *collective, i64 *waited) {
  if (!analysis_includes(a, collective) || analysis_times_of(a, collective->step) != TIMES_KEPT ||
      !op_is_barrier_like(collective->op) || collective->last_start == NS_UNKNOWN)
    return INDEX_NONE;
  struct last_member last = model_last_member(a->model, collective);
  *waited = last.waited;
  return last.rank;
}

struct arrivals {
  u64 *last, *judged; /* [n_ranks] */
  i64 *waited;        /* [n_ranks] by the mean peer, for this rank */
};

static void count_last(struct arrivals *s, const struct analysis *a,
                       const struct collective *collective) {
  i64 waited;
  u32 who = judged_last(a, collective, &waited);
  if (who == INDEX_NONE)
    return;
  FOR_EACH_MEMBER(a->model, collective, member)
    s->judged[member->rank]++;
  s->last[who]++;
  s->waited[who] += waited;
}

void last_arrivals_analyse(struct analysis *a) {
  const struct model *model = a->model;
  struct arrivals s = {.last = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(u64)),
                       .judged = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(u64)),
                       .waited = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(i64))};
  FOR_EACH(model->collectives, model->n_collectives, collective)
    count_last(&s, a, collective);
  for (u32 r = 0; r < a->results->n_ranks; r++) {
    struct rank_result *out = &a->results->ranks[r];
    bool known = s.judged[r] > 0;
    u32 steps = a->ranks[r].steps;
    out->last_collectives = known ? (double)s.last[r] : NAN;
    out->judged_collectives = known ? (double)s.judged[r] : NAN;
    out->last_wait_ms = known && steps ? ns_to_ms(s.waited[r]) / steps : NAN;
  }
  FREE_EACH(&s, last, judged, waited);
}

struct waits {
  i64 sum, longest;
};

void last_ranks_of_steps(const struct analysis *a, u32 *last, double *waited_ms) {
  const struct model *model = a->model;
  size_t n = model->n_ranks;
  SCOPED struct waits *waits =
      memory_zeroed(size_sum(size_product(a->n_steps, n), 1), sizeof(*waits));
  FOR_EACH(model->collectives, model->n_collectives, collective) {
    i64 waited;
    u32 who = judged_last(a, collective, &waited);
    if (who == INDEX_NONE)
      continue;
    struct waits *of = &waits[((u32)collective->step - a->first_step) * n + who];
    of->sum += waited;
    of->longest = MAX(waited, of->longest);
  }
  for (u32 step = 0; step < a->n_steps; step++) {
    const struct waits *of = &waits[step * n];
    u32 who = NUMBER_OF_LARGEST(0, (u32)n, rank, (double)of[rank].sum);
    last[step] = of[who].sum > 0 ? who : INDEX_NONE;
    waited_ms[step] = of[who].sum > 0 ? ns_to_ms(of[who].longest) : NAN;
  }
}
