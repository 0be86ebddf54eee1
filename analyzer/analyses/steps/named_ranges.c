/* SPDX-License-Identifier: MIT
 *
 * The names that the program itself gives to its parts: time in ranges by name, over all ranks.
 */
#include "model/named_ranges.h"
#include "base/checked_memory.h"

#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "base/parallel.h"
#include "base/sorting.h"

struct rank_ranges {
  struct arena arena;
  struct named_range *at;
  u32 n;
};

struct collecting {
  struct analysis *a;
  struct rank_ranges *ranks;
};

static void collect_rank(void *user, u32 rank, unsigned worker) {
  struct collecting *collecting = user;
  struct rank_ranges *ranges = &collecting->ranks[rank];
  (void)worker;
  if (model_named_ranges(collecting->a->model, rank, &ranges->arena, &ranges->at, &ranges->n) < 0)
    ranges->n = 0; /* a file that disappeared is shown as partial elsewhere */
}

ORDER_BY(by_name, struct named_range, BY_TEXT(name) BY_TEXT(domain))

ORDER_BY(by_time, struct named_range, DOWN(sum) THEN(by_name(a, b)))

static void add_to(struct named_range *one, const struct named_range *more) {
  one->count += more->count;
  if (__builtin_add_overflow(one->sum, more->sum, &one->sum))
    one->sum = INT64_MAX;
  one->longest = MAX(more->longest, one->longest);
}

static double time_of_ranks(const struct model *model) {
  return TOTAL(double, model->ranks, model->n_ranks, one, (double)(one->end - one->begin));
}

static void list(struct analysis *a, const struct named_range *all, u32 n) {
  struct results *results = a->results;
  double whole = time_of_ranks(a->model);
  results->named_ranges = arena_array(a->arena, n, sizeof(*results->named_ranges));
  for (u32 i = 0; i < n; i++) {
    struct named_range_result *out = &results->named_ranges[i];
    *out = (struct named_range_result){.name = arena_text(a->arena, all[i].name),
                                       .domain = arena_text(a->arena, all[i].domain),
                                       .count = (double)all[i].count,
                                       .sum_ms = ns_to_ms(all[i].sum),
                                       .mean_ms = ns_to_ms(all[i].sum) / (double)all[i].count,
                                       .max_ms = ns_to_ms(all[i].longest),
                                       .share = (double)all[i].sum / whole};
    results->n_named_ranges++;
  }
}

void named_ranges_analyse(struct analysis *a) {
  u32 n_ranks = a->model->n_ranks;
  struct collecting collecting = {
      .a = a, .ranks = memory_zeroed(size_sum(n_ranks, 1), sizeof(struct rank_ranges))};
  parallel_for(n_ranks, a->options->threads, collect_rank, &collecting);
  u32 n = TOTAL(u32, collecting.ranks, n_ranks, one, one->n);
  SCOPED struct named_range *all = memory_array(size_sum(n, 1), sizeof(*all));
  n = 0;
  FOR_EACH(collecting.ranks, n_ranks, each)
    FOR_EACH(each->at, each->n, item)
      all[n++] = *item;
  u32 names = SORT_AND_JOIN(all, n, by_name, one, more, add_to(one, more));
  SORT(all, names, by_time);
  if (names)
    list(a, all, MIN(names, NAMED_RANGES_LISTED));
  FOR_EACH_CHANGED(collecting.ranks, n_ranks, rank)
    arena_release(&rank->arena);
  free(collecting.ranks);
}
