/* SPDX-License-Identifier: MIT
 *
 * Who arrives last, over all collectives in which every member waits for every other: what even a
 * single step shows. stragglers.c asks whether it happens regularly.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "base/each.h"

struct arrivals {
  const struct analysis *a;
  u64 *last, *judged; /* [n_ranks] */
  i64 *waited;        /* [n_ranks] by the mean peer, for this rank */
};

/* The order of two ranks is not known if they arrive closer together than the error between their
 * clocks. A collective in which it is not known who came last says nothing. */
static void count_last(struct arrivals *s, const struct collective *collective) {
  const struct model *model = s->a->model;
  const struct arrival *arrivals = &model->arrivals[collective->first_arrival];
  i64 last = INT64_MIN, sum = 0;
  u32 who = INDEX_NONE;
  for (u32 i = 0; i < collective->n_arrivals; i++) {
    i64 start = arrivals[i].start;
    if (start == NS_UNKNOWN)
      return;
    sum += start - arrivals[0].start;
    if (start > last) {
      last = start;
      who = arrivals[i].rank;
    }
  }
  for (u32 i = 0; i < collective->n_arrivals; i++)
    if (arrivals[i].rank != who &&
        (double)(last - arrivals[i].start) <= model_clock_error_ns(model, who, arrivals[i].rank))
      return;
  for (u32 i = 0; i < collective->n_arrivals; i++)
    s->judged[arrivals[i].rank]++;
  s->last[who]++;
  s->waited[who] +=
      last - arrivals[0].start - (sum - (last - arrivals[0].start)) / (collective->n_arrivals - 1);
}

void last_arrivals_analyse(struct analysis *a) {
  const struct model *model = a->model;
  struct arrivals s = {.a = a,
                       .last = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(u64)),
                       .judged = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(u64)),
                       .waited = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(i64))};
  for (u32 i = 0; model->clock_aligned && i < model->n_collectives; i++) {
    const struct collective *collective = &model->collectives[i];
    if (analysis_includes(a, collective) && op_is_barrier_like(collective->op) &&
        collective->complete && collective->n_arrivals > 1 && collective->last_start != NS_UNKNOWN)
      count_last(&s, collective);
  }
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
