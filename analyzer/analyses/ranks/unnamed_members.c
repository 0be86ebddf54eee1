/* SPDX-License-Identifier: MIT
 *
 * The members of a communicator that have no name yet: in each tested collective in the order in
 * which they were ready, and in each step in that of what their devices compute. A round of tests
 * takes out whom it names; so thousands of rounds over thousands of ranks need no median anew.
 */
#include <math.h>

#include "analyses/ranks/straggler_test.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "model/clock_error.h"

struct ordering {
  struct straggler_test *c;
  u32 begin; /* of the communicator's tested collectives */
};

static void order_ready(void *user, u32 i, unsigned worker) {
  (void)worker;
  const struct ordering *ordering = user;
  struct straggler_test *c = ordering->c;
  const struct model *model = c->a->model;
  const struct collective *collective = tested_collective(c, ordering->begin + i);
  SCOPED double *own = memory_array(size_sum(collective->n_arrivals, 1), sizeof(*own));
  u32 n = 0;
  FOR_EACH_MEMBER(model, collective, member)
    own[n++] = c->named[member->rank] ? (double)NAN : arrival_own_time(c, member);
  ordered_values_fill(&c->unnamed.ready[i], own, n);
  c->unnamed.from_ns[i] = own_work_begin(c, collective);
}

void unnamed_members_order(struct straggler_test *c, u32 comm) {
  u32 begin = c->first[comm], n = c->first[comm + 1] - begin;
  struct unnamed_members *unnamed = &c->unnamed;
  u64 members = 0;
  *unnamed = (struct unnamed_members){.comm = comm, .begin = begin, .n = n};
  unnamed->ready = arena_array(&unnamed->arena, n, sizeof(*unnamed->ready));
  const struct comm *of = &c->a->model->comms[comm];
  unnamed->clocks_ns =
      c->by_clock[comm] ? widest_clock_error_ns(c->a->model, of->members, of->size) : INFINITY;
  unnamed->from_ns = arena_array(&unnamed->arena, n, sizeof(double));
  unnamed->last = arena_array(&unnamed->arena, n, sizeof(u32));
  for (u32 i = 0; i < n; i++) {
    u32 size = tested_collective(c, begin + i)->n_arrivals;
    ordered_values_reserve(&unnamed->ready[i], &unnamed->arena, size);
    members += size;
  }
  parallel_for(n, straggler_threads(c, members), order_ready, &(struct ordering){c, begin});
}

void unnamed_members_forget(struct straggler_test *c) {
  FOR_EACH(c->unnamed.last, c->unnamed.n_last, one)
    c->times_last[*one] = 0;
  arena_release(&c->unnamed.arena);
  c->unnamed = (struct unnamed_members){0};
}

void unnamed_members_take_out(struct straggler_test *c, u32 rank) {
  struct unnamed_members *unnamed = &c->unnamed;
  for (u32 i = 0; i < unnamed->n; i++) {
    u32 k = member_of(c, tested_collective(c, unnamed->begin + i), rank);
    if (k != INDEX_NONE)
      ordered_values_take_out(&unnamed->ready[i], k);
  }
  u32 k = member_of(c, tested_roster(c, unnamed->comm), rank);
  for (u32 step = 0; unnamed->computed && k != INDEX_NONE && step < c->a->n_steps; step++)
    if (unnamed->computed[step].place[k] != INDEX_NONE)
      ordered_values_take_out(&unnamed->computed[step], k);
}

/* Of the members that have no name yet in tested collective i: how many they are, when the middle
 * one was ready, who was last, and how much later than the median of the others. It is not known
 * who was last if the clocks cannot show that it is later, or if only one member is left. */
static u32 find_last(struct straggler_test *c, u32 i) {
  const struct collective *collective = tested_collective(c, i);
  const struct ordered_values *ready = &c->unnamed.ready[i - c->unnamed.begin];
  c->last_of[i] = INDEX_NONE;
  c->late_of[i] = 0;
  if (ready->left < 2)
    return ready->left;
  u32 last = ordered_values_largest(ready);
  const struct arrival *member = &members_of(c->a->model, collective)[last];
  c->late_of[i] = arrival_own_time(c, member) - ordered_values_median_without(ready, last);
  c->middle_of[i] = ordered_values_median(ready);
  if (c->late_of[i] > c->unnamed.clocks_ns ||
      c->late_of[i] > arrival_error(c, collective, member->rank))
    c->last_of[i] = member->rank;
  return ready->left;
}

u32 unnamed_members_find_last(struct straggler_test *c) {
  struct unnamed_members *unnamed = &c->unnamed;
  const struct collective *roster = tested_roster(c, unnamed->comm);
  u32 most = 0;
  FOR_EACH(unnamed->last, unnamed->n_last, one)
    c->times_last[*one] = 0;
  unnamed->n_last = 0;
  for (u32 i = unnamed->begin; i < unnamed->begin + unnamed->n; i++) {
    u32 n = find_last(c, i), last = c->last_of[i];
    most = MAX(n, most);
    if (last == INDEX_NONE || member_of(c, roster, last) == INDEX_NONE)
      continue;
    if (c->times_last[last]++ == 0) {
      unnamed->last[unnamed->n_last++] = last;
      c->imposed_ns[last] = 0;
    }
    c->imposed_ns[last] += c->late_of[i];
  }
  SORT(unnamed->last, unnamed->n_last, by_u32);
  return most;
}

u32 unnamed_members_list_lateness(struct straggler_test *c, const struct verdict *v, bool ratios) {
  struct unnamed_members *unnamed = &c->unnamed;
  u32 n = 0;
  for (u32 i = 0; i < unnamed->n; i++) {
    const struct collective *one = tested_collective(c, unnamed->begin + i);
    u32 k = member_of(c, one, v->rank);
    if (k == INDEX_NONE || unnamed->ready[i].left < 2 || !is_in_late_steps(v, unnamed->begin + i))
      continue;
    double own = arrival_own_time(c, &members_of(c->a->model, one)[k]);
    double middle = ordered_values_median_without(&unnamed->ready[i], k);
    double late = ratios ? ratio_of_times(unnamed->from_ns[i], own, middle) : own - middle;
    if (!isnan(late))
      c->lateness[n++] = late;
  }
  return n;
}

static void order_computed(void *user, u32 step, unsigned worker) {
  (void)worker;
  const struct ordering *ordering = user;
  struct straggler_test *c = ordering->c;
  const struct collective *roster = tested_roster(c, c->unnamed.comm);
  SCOPED double *ms = memory_array(size_sum(roster->n_arrivals, 1), sizeof(*ms));
  u32 n = 0;
  FOR_EACH_MEMBER(c->a->model, roster, one)
    ms[n++] =
        c->named[one->rank] ? NAN : c->a->compute_ms[(size_t)one->rank * c->a->n_steps + step];
  ordered_values_fill(&c->unnamed.computed[step], ms, n);
}

static void order_all_computed(struct straggler_test *c) {
  struct unnamed_members *unnamed = &c->unnamed;
  u32 members = tested_roster(c, unnamed->comm)->n_arrivals, steps = c->a->n_steps;
  unnamed->computed = arena_array(&unnamed->arena, steps, sizeof(*unnamed->computed));
  FOR_EACH_CHANGED(unnamed->computed, steps, one)
    ordered_values_reserve(one, &unnamed->arena, members);
  parallel_for(steps, straggler_threads(c, (u64)members * steps), order_computed,
               &(struct ordering){c, unnamed->begin});
}

u32 unnamed_members_longer_compute(struct straggler_test *c, u32 rank, u32 *of) {
  const struct analysis *a = c->a;
  u32 k = member_of(c, tested_roster(c, c->unnamed.comm), rank), longer = 0;
  *of = 0;
  if (!a->ranks[rank].on_gpu)
    return 0;
  if (!c->unnamed.computed)
    order_all_computed(c);
  for (u32 step = 0; step < a->n_steps; step++) {
    const struct ordered_values *computed = &c->unnamed.computed[step];
    if (computed->left < 2 || computed->place[k] == INDEX_NONE)
      continue;
    ++*of;
    longer += a->compute_ms[(size_t)rank * a->n_steps + step] -
                  ordered_values_median_without(computed, k) >=
              WORTH_MENTIONING * a->results->step_median_ms;
  }
  return longer;
}
