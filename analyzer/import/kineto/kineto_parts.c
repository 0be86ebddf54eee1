/* SPDX-License-Identifier: MIT
 *
 * A recording may pause, as with `acc_events` in a profiler's schedule: then steps in between have
 * no marks, and are no single step. Only one part has steps, the same on all ranks.
 */
#include "base/sorting.h"
#include "import/kineto/kineto.h"

/* Marks from `first` on; the one at `end` ends the last step. */
struct recorded_part {
  u32 first, end;
};

/* From this step on so many more ranks have it. */
struct part_change {
  u64 step;
  i32 ranks;
};

/* Steps that the same ranks have. */
struct stretch {
  u64 from, to;
  u32 ranks;
};

ORDER_BY(by_step, struct part_change, UP(step))

static bool next_part(const struct rank_events *events, struct recorded_part *part) {
  if (part->end >= events->marks.n)
    return false;
  for (part->first = part->end; !events->marks.at[part->end].ends; part->end++) /* the last does */
    ;
  return true;
}

/* A loop over the parts of a rank. */
#define FOR_EACH_PART(events, part)                                                                \
  for (struct recorded_part part = {0}; next_part(events, &part); part.end++)

static struct stretch steps_of(const struct rank_events *events, struct recorded_part part) {
  u64 from = events->marks.at[part.first].step;
  return (struct stretch){from, from + (part.end - part.first), 1};
}

static u64 length_of(struct stretch stretch) {
  return stretch.to - stretch.from;
}

/* Of two, the one that all ranks have; else the one with more steps of ranks. */
static bool is_better(struct stretch one, struct stretch other, u32 all) {
  bool of_all = one.ranks == all && length_of(one) > 1;
  bool other_of_all = other.ranks == all && length_of(other) > 1;
  return of_all != other_of_all ? of_all
                                : one.ranks * length_of(one) >= other.ranks * length_of(other);
}

static struct stretch choose_steps(const struct rank_events *all, u32 n_ranks) {
  SCOPED VECTOR(struct part_change) changes = {0};
  struct stretch best = {0};
  u32 with_steps = 0, ranks = 0;
  FOR_EACH(all, n_ranks, events) {
    with_steps += events->marks.n > 0;
    FOR_EACH_PART(events, part) {
      struct stretch steps = steps_of(events, part);
      VECTOR_PUSH(&changes, ((struct part_change){steps.from, 1}));
      VECTOR_PUSH(&changes, ((struct part_change){steps.to, -1}));
    }
  }
  SORT(changes.at, changes.n, by_step);
  for (u32 i = 0; i + 1 < changes.n; i++) {
    ranks += (u32)changes.at[i].ranks;
    struct stretch steps = {changes.at[i].step, changes.at[i + 1].step, ranks};
    if (steps.to > steps.from && is_better(steps, best, with_steps))
      best = steps;
  }
  return best;
}

static u64 shared(struct stretch one, struct stretch other) {
  u64 from = MAX(one.from, other.from);
  u64 to = MIN(one.to, other.to);
  return to > from ? to - from : 0;
}

/* Keeps the part with most of these steps. How many steps the others have. */
static u32 keep_part(struct rank_events *events, struct stretch steps) {
  struct rank_mark *marks = events->marks.at;
  struct recorded_part best = {0};
  u64 most = 0;
  u32 all = 0;
  FOR_EACH_PART(events, part) {
    u64 has = shared(steps_of(events, part), steps);
    best = has > most ? part : best;
    most = MAX(has, most);
    all += part.end - part.first;
  }
  u32 kept = best.end - best.first;
  events->marks.n = kept ? kept + 1 : 0;
  if (kept)
    memmove(marks, &marks[best.first], events->marks.n * sizeof(*marks));
  return all - kept;
}

static bool pauses(const struct rank_events *events) {
  u32 parts = 0;
  FOR_EACH_PART(events, part)
  parts++;
  return parts > 1;
}

u32 kineto_keep_one_part(struct rank_events *all, u32 n_ranks) {
  if (!ANY(all, n_ranks, one, pauses(one)))
    return 0;
  struct stretch steps = choose_steps(all, n_ranks);
  u32 most = 0;
  FOR_EACH_CHANGED(all, n_ranks, events) {
    u32 left_out = keep_part(events, steps);
    most = MAX(left_out, most);
  }
  return most;
}
