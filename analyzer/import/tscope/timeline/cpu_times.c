/* SPDX-License-Identifier: MIT
 *
 * What a CPU job does outside all phases and calls. Two readings of a thread's CPU clock show how
 * much it computed between them; without its training phases, which are compute, that much was in
 * the rest: the periods without a name, and the loading of input. That share of each such period
 * counts as compute, from its beginning: its position there does not matter for sums over steps.
 */

#include "base/checked_memory.h"
#include "base/intervals.h"
#include "import/tscope/timeline/timeline_build.h"

#define WHOLE 0.95 /* a thread that is moved or interrupted now and then computes all the same */
#define NOTHING 0.05

struct cpu_reading {
  /* training: less the time blocked; occupied: training, input, waits and calls */
  const struct intervals *training, *blocked, *occupied;
  struct intervals *busy;
  u32 at_training, at_blocked, at_occupied;
};

/* The share of what is not occupied between two instants. */
static void add_gaps(struct cpu_reading *r, i64 from, i64 to, double share) {
  const struct intervals *occupied = r->occupied;
  while (r->at_occupied < occupied->n && occupied->at[r->at_occupied].end <= from)
    r->at_occupied++;
  i64 at = from;
  for (u32 i = r->at_occupied; at < to; i++) {
    bool last = i >= occupied->n || occupied->at[i].start >= to;
    i64 end = last ? to : occupied->at[i].start;
    i64 busy = end > at ? (i64)((double)(end - at) * share) : 0;
    if (busy > 0)
      intervals_append(r->busy, at, at + busy);
    if (last)
      return;
    at = occupied->at[i].end;
  }
}

/* From one reading of a thread's CPU clock to the next. */
static void add_stretch(struct cpu_reading *r, const struct rank_cpu *from,
                        const struct rank_cpu *to) {
  i64 training = intervals_covered(r->training, &r->at_training, from->time, to->time);
  i64 blocked = intervals_covered(r->blocked, &r->at_blocked, from->time, to->time);
  i64 rest = to->time - from->time - training - blocked;
  double computed = (double)to->cpu_ns - (double)from->cpu_ns - (double)training;
  if (rest <= 0 || to->cpu_ns < from->cpu_ns)
    return;
  double share = computed / (double)rest;
  add_gaps(r, from->time, to->time, share > WHOLE ? 1 : share < NOTHING ? 0 : share);
}

void cpu_times_unite(const struct rank_events *events, const struct intervals *training,
                     const struct intervals *named, const struct intervals *blocked,
                     struct arena *arena, struct intervals *busy) {
  struct intervals occupied;
  u32 n = events->cpu_times.n;
  *busy = (struct intervals){0};
  if (n < 2)
    return;
  intervals_union(arena, named, blocked, &occupied);
  busy->at = arena_array(arena, size_sum(occupied.n, size_product(2, n)), sizeof(*busy->at));
  struct cpu_reading r = {
      .training = training, .blocked = blocked, .occupied = &occupied, .busy = busy};
  u32 thread =
      events->cpu_times.at[0].thread; /* the thread that waits first is the one that trains */
  const struct rank_cpu *last = NULL;
  FOR_EACH(events->cpu_times.at, n, now) {
    if (now->thread != thread)
      continue;
    if (last)
      add_stretch(&r, last, now);
    last = now;
  }
}
