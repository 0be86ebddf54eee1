/* SPDX-License-Identifier: MIT
 *
 * Ranks that make fewer steps than others and stay in the job: their batches ran out, and they only
 * take part in what the others call (PyTorch's Join), or wait.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "base/sorting.h"

enum { RANKS_TOLD = 3, LEAST_FEWER = 2 };
#define LEAST_SHARE_FEWER 0.05 /* the last batch of an epoch may be short of some ranks */

struct steps_of_rank {
  u32 end; /* behind the last that the rank has */
  u32 rank;
};

ORDER_BY(by_end, struct steps_of_rank, UP(end) UP(rank))

/* Whether two ranks make a step at the same time. Ranks with other parts in a job, such as actors
 * and a learner, may make steps of their own. */
static bool step_is_shared(const struct model *model, u32 step, u32 a, u32 b) {
  const struct steps *steps = &model->steps;
  size_t of_a = cell_of_step(model, step, a), of_b = cell_of_step(model, step, b);
  return steps->begin[of_a] < steps->end[of_b] && steps->begin[of_b] < steps->end[of_a];
}

/* Ranks that have steps, and what they have. One that was not there until the end, or whose end is
 * not known, is another finding's: then there is none. */
static u32 list_ranks(const struct model *model, struct steps_of_rank *list) {
  const struct steps *steps = &model->steps;
  u32 n = 0;
  i64 last = INT64_MIN;
  for (u32 r = 0; r < model->n_ranks; r++) {
    u32 end = steps->n;
    while (end > 0 && steps->begin[cell_of_step(model, end - 1, r)] == NS_UNKNOWN)
      end--;
    if (end)
      list[n++] = (struct steps_of_rank){end, r};
    if (end == steps->n) {
      i64 of_rank = steps->end[cell_of_step(model, end - 1, r)];
      last = MAX(of_rank, last);
    }
  }
  SORT(list, n, by_end);
  return ALL(list, n, one,
             model->ranks[one->rank].closed && model->ranks[one->rank].end >= last &&
                 step_is_shared(model, one->end - 1, one->rank, list[n - 1].rank))
             ? n
             : 0;
}

/* "rank 0 makes 40 steps, rank 1 55". */
static const char *describe_fewest(struct findings *f, const struct steps_of_rank *list, u32 n) {
  const struct model *model = f->a->model;
  const char *text = "";
  u32 told = 0;
  for (u32 i = 0; i < n && told < RANKS_TOLD && list[i].end < list[n - 1].end; i++, told++)
    text = say(f, "%s%s %u %s%u%s", text, told ? ", rank" : "Rank", model->ranks[list[i].rank].rank,
               told ? "" : "makes ", list[i].end + model->steps.first, told ? "" : " steps");
  return text;
}

void rule_uneven_steps(struct findings *f) {
  const struct model *model = f->a->model;
  if (f->a->whole_run || model->steps.by_collectives || model->n_ranks < 2)
    return;
  struct steps_of_rank *list = arena_array(f->arena, model->n_ranks, sizeof(*list));
  u32 n = list_ranks(model, list), most = n ? list[n - 1].end : 0;
  u32 *ranks = arena_array(f->arena, model->n_ranks, sizeof(*ranks));
  u32 fewer = LIST_WHERE(ranks, 0, n, i, list[i].end < most, model->ranks[list[i].rank].rank);
  double sum = TOTAL(double, list, n, one, one->end);
  if (!n || most - list[0].end < LEAST_FEWER || most - list[0].end < LEAST_SHARE_FEWER * most)
    return;
  double evenly = ceil(sum / n), saved_ms = (most - evenly) * f->r->step_median_ms;
  SORT(ranks, fewer, by_u32);
  finding_add(f, severity_of(f, saved_ms / f->steps), saved_ms / 1e3,
              say(f, "Ranks make %u to %u steps: %u of %u run out of batches before the others",
                  list[0].end + model->steps.first, most + model->steps.first, fewer, n),
              say(f,
                  "%s; %u of %u make %u. Who has no more stays in the job, and does no work of its "
                  "own in the others' steps: these are made with fewer samples. With as many "
                  "batches for all there would be %.0f steps.",
                  describe_fewest(f, list, n), n - fewer, n, most + model->steps.first,
                  evenly + model->steps.first),
              "Give every rank as many batches: shards of one size, a sampler that pads or drops "
              "what is left over (DistributedSampler), packing by number of tokens over all ranks.",
              ranks, fewer);
}
