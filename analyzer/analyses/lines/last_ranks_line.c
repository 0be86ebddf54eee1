/* SPDX-License-Identifier: MIT
 *
 * Ranks that wait for one another, but not always for the same one: longer sequences, an expert
 * with more tokens, a turn to write a log. No rank is slower than its peers. But the one that comes
 * last in a step was longer at some line than the others in that step, whichever rank it is.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/persistence.h"
#include "base/sorting.h"
#include "base/statistics.h"

/* A line of a rank's: its time in the steps in which the rank is last, and in those in which
 * another is. */
struct stay {
  const struct sampled_part *part;
  double last_ns, other_ns, last_samples, other_samples;
  struct persistence follows;
};

ORDER_BY(by_line, struct stay, UP(part->key))

struct last_rank_search {
  struct analysis *a;
  u32 *last;         /* [n_steps] who; INDEX_NONE */
  double *waited_ms; /* [n_steps] for it */
  struct stay *stays;
  u32 n, lines;             /* of `stays`; the most that a rank has */
  double last_steps, steps; /* steps of ranks: in which the rank is last, and all that have one */
};

/* Who is last in a slice, which is one step; INDEX_NONE too if that rank has no samples. */
static u32 last_in_slice(const struct last_rank_search *s, u32 slice) {
  u32 last = slice < s->a->n_steps ? s->last[slice] : INDEX_NONE;
  return last != INDEX_NONE && s->a->line_sums[last].parts.n ? last : INDEX_NONE;
}

static void count_steps(struct last_rank_search *s, u32 rank) {
  const struct rank_parts *parts = &s->a->line_sums[rank].parts;
  for (u32 slice = 0; parts->n && slice < s->a->n_steps; slice++) {
    u32 last = last_in_slice(s, slice);
    if (last == INDEX_NONE)
      continue;
    s->steps += parts->steps[slice];
    s->last_steps += last == rank ? parts->steps[slice] : 0;
  }
}

static void add_line(struct last_rank_search *s, u32 rank, const struct sampled_part *part) {
  const struct rank_parts *parts = &s->a->line_sums[rank].parts;
  struct stay *stay = &s->stays[s->n++];
  *stay = (struct stay){.part = part};
  FOR_EACH(part->times, part->n_times, time) {
    u32 last = last_in_slice(s, time->slice);
    if (last == INDEX_NONE)
      continue;
    *(last == rank ? &stay->last_ns : &stay->other_ns) += (double)time->ns;
  }
  stay->last_samples = stay->last_ns / parts->sample_ns;
  stay->other_samples = stay->other_ns / parts->sample_ns;
  part_persistence(parts, part, NULL, 1, &stay->follows);
}

static void list_lines(struct last_rank_search *s) {
  u32 n = TOTAL(u32, s->a->line_sums, s->a->model->n_ranks, one, one->parts.n);
  s->stays = memory_array(size_sum(n, 1), sizeof(*s->stays));
  for (u32 rank = 0; rank < s->a->model->n_ranks; rank++) {
    const struct rank_parts *parts = &s->a->line_sums[rank].parts;
    u32 before = s->n;
    count_steps(s, rank);
    FOR_EACH(parts->at, parts->n, part)
      if (part->kind == OWN_LINE)
        add_line(s, rank, part);
    s->lines = MAX(s->n - before, s->lines);
  }
  SORT(s->stays, s->n, by_line);
}

/* One line on all ranks, in `all`; whether chance does not explain how long the last ones are
 * there. */
static bool stands_out(const struct last_rank_search *s, const struct stay *stays, u32 n,
                       struct stay *all) {
  double most_ns = -1;
  *all = (struct stay){0};
  FOR_EACH(stays, n, stay) {
    if (stay->last_ns > most_ns)
      all->part = stay->part;
    most_ns = fmax(most_ns, stay->last_ns);
    ADD_EACH(all, stay, last_ns, other_ns, last_samples, other_samples);
    persistence_join(&all->follows, &stay->follows, 1);
  }
  double chance = chance_of_count((u32)lround(all->last_samples),
                                  (u32)lround(all->last_samples + all->other_samples),
                                  s->last_steps / s->steps, persistence_of(&all->follows));
  return chance * s->lines < STRAGGLER_SIGNIFICANCE;
}

static double usual_wait_ms(const struct last_rank_search *s) {
  SCOPED double *waits = memory_array(size_sum(s->a->n_steps, 1), sizeof(double));
  u32 n =
      LIST_WHERE(waits, 0, s->a->n_steps, step, s->last[step] != INDEX_NONE, s->waited_ms[step]);
  return median_of(waits, n);
}

static const struct sampled_line *longest_line(struct last_rank_search *s) {
  struct stay all, best = {0};
  double best_ms = 0, ms, others_ms;
  list_lines(s);
  for (u32 i = 0, n; i < s->n && s->last_steps > 0 && s->steps > s->last_steps; i += n) {
    n = ROW_OF_EQUALS(&s->stays[i], s->n - i, first, one, one->part->key == first->part->key);
    bool is = stands_out(s, &s->stays[i], n, &all);
    ms = ns_to_ms(all.last_ns / s->last_steps);
    others_ms = ns_to_ms(all.other_ns / (s->steps - s->last_steps));
    if (!is || ms - others_ms <= best_ms)
      continue;
    best = all;
    best_ms = ms - others_ms;
  }
  if (!best.part || best_ms < REASON_SHARE * usual_wait_ms(s))
    return NULL;
  struct sampled_line *line = line_of_part(s->a, best.part);
  line->ms = ns_to_ms(best.last_ns / s->last_steps);
  line->peers_ms = ns_to_ms(best.other_ns / (s->steps - s->last_steps));
  line->more_ms = best_ms;
  line->error_ms = NAN;
  return line;
}

const struct sampled_line *last_ranks_line_find(struct analysis *a) {
  struct last_rank_search s = {.a = a};
  if (a->whole_run || a->n_steps > TRAINING_SLICES)
    return NULL;
  s.last = memory_array(size_sum(a->n_steps, 1), sizeof(*s.last));
  s.waited_ms = memory_array(size_sum(a->n_steps, 1), sizeof(*s.waited_ms));
  last_ranks_of_steps(a, s.last, s.waited_ms);
  const struct sampled_line *line = longest_line(&s);
  FREE_EACH(&s, last, waited_ms, stays);
  return line;
}
