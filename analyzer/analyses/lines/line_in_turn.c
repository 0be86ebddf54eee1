/* SPDX-License-Identifier: MIT
 *
 * What one rank alone does in every so many steps, by line. Where ranks come late for other reasons
 * too, as on a busy machine, their arrivals do not show it; samples do: chance does not put one
 * rank so often at a line at which its peers are not, nor at a fixed distance.
 */
#include <math.h>

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"

/* Time at a line, and in how many steps. */
struct stay {
  double ns;
  u32 n, *steps; /* indices of slices, if they are wanted */
};

static struct stay stay_at(const struct sampled_part *part, struct arena *scratch) {
  struct stay stay = {0};
  if (scratch)
    stay.steps = arena_array(scratch, size_sum(part->n_times, 1), sizeof(u32));
  for (u32 i = 0; i < part->n_times; i++) {
    const struct part_time *time = &part->times[i];
    if (time->slice >= TRAINING_SLICES || !time->steps)
      continue;
    stay.ns += (double)time->ns;
    if (stay.steps)
      stay.steps[stay.n] = time->slice;
    stay.n++;
  }
  return stay;
}

/* Of all other ranks; `n_ranks` of them have samples. */
static struct stay stay_of_peers(const struct analysis *a, u32 rank, u64 key, u32 *n_ranks) {
  struct stay all = {0};
  *n_ranks = 0;
  for (u32 r = 0; r < a->model->n_ranks; r++) {
    const struct rank_parts *parts = &a->line_sums[r].parts;
    *n_ranks += r != rank && parts->n;
    for (u32 i = 0; i < parts->n && r != rank; i++)
      if (parts->at[i].key == key) {
        struct stay one = stay_at(&parts->at[i], NULL);
        all.ns += one.ns;
        all.n += one.n;
      }
  }
  return all;
}

/* How long a rank is at the line in a step in which it is there at all, if it alone is, and that is
 * worth telling; 0 if not. */
static double lone_ms(const struct analysis *a, u32 rank, const struct sampled_part *part,
                      const struct stay *own, struct line_in_turn *found) {
  double step_ms = a->results->step_median_ms, ms = own->ns / own->n / 1e6;
  u32 peers;
  struct stay others = stay_of_peers(a, rank, part->key, &peers);
  if (!peers || others.ns / peers >= LINE_OF_ONE * own->ns || ms < WORTH_MENTIONING * step_ms ||
      ms * own->n < STRETCH_OF_RUN * step_ms * a->n_training)
    return 0;
  found->chance =
      chance_of_count(own->n, own->n + others.n, 1.0 / (peers + 1), 0) * a->line_sums[rank].parts.n;
  found->peers_seen = others.n;
  return found->chance < STRAGGLER_SIGNIFICANCE ? ms : 0;
}

bool line_in_turn_find(struct analysis *a, u32 rank, struct line_in_turn *found) {
  const struct rank_parts *parts = &a->line_sums[rank].parts;
  const struct sampled_part *best = NULL;
  struct arena scratch = {0};
  double most = 0;
  for (u32 i = 0; i < parts->n && !a->whole_run && a->n_steps <= TRAINING_SLICES; i++) {
    struct line_in_turn now = {0};
    if (parts->at[i].kind != OWN_LINE)
      continue;
    struct stay own = stay_at(&parts->at[i], &scratch);
    double ms = own.n ? lone_ms(a, rank, &parts->at[i], &own, &now) : 0;
    if (ms * own.n <= most)
      continue;
    now.period = period_of_steps(own.steps, own.n, a->n_steps, &scratch);
    if (!now.period)
      continue;
    u32 in_turn = a->n_training / now.period; /* what is short is not seen each time */
    now.seen = own.n;
    now.ms = own.n < in_turn ? ms * own.n / in_turn : ms;
    most = ms * own.n;
    best = &parts->at[i];
    *found = now;
  }
  if (best)
    found->line = line_of_part(a, best);
  arena_release(&scratch);
  return best;
}
