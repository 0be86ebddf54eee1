/* SPDX-License-Identifier: MIT
 *
 * When members of a collective were ready, for the search for stragglers.
 *
 * Where the hosts' clocks are not known well enough to compare ranks by them, each rank is measured
 * by its own clock: its arrival is the time since it left the collective before, of the same
 * communicator. A collective ends for all members together, so these times begin at one instant.
 * Where a slow link lets some members leave later, their time begins later too: the link's delay
 * is not held against them.
 */
#include <math.h>

#include "analyses/queries.h"
#include "analyses/ranks/straggler_test.h"
#include "analyses/thresholds.h"
#include "base/sorting.h"
#include "model/clock_error.h"

double arrival_time(const struct straggler_test *c, const struct arrival *member) {
  const struct model *model = c->a->model;
  if (!c->by_clock[model->collectives[member->collective].comm])
    return c->busy_ns[member - model->arrivals];
  if (c->unwaited[member->collective])
    return 0;
  i64 ready = model_arrival_ready(model, member);
  return ready == NS_UNKNOWN ? NAN : (double)(ready - model->begin);
}

double arrival_own_time(const struct straggler_test *c, const struct arrival *member) {
  i64 others = c->a->time_in_other_comms[member - c->a->model->arrivals];
  return arrival_time(c, member) - (c->unwaited[member->collective] ? 0 : (double)others);
}

u32 member_of(const struct straggler_test *c, const struct collective *collective, u32 rank) {
  const struct arrival *arrivals = members_of(c->a->model, collective);
  if (rank < collective->n_arrivals && arrivals[rank].rank == rank)
    return rank; /* of all ranks */
  return SORTED_INDEX(collective->n_arrivals, i, arrivals[i].rank, rank);
}

double member_own_time(const struct straggler_test *c, const struct collective *collective,
                       u32 rank) {
  u32 k = member_of(c, collective, rank);
  return k == INDEX_NONE ? NAN : arrival_own_time(c, &members_of(c->a->model, collective)[k]);
}

double own_work_begin(const struct straggler_test *c, const struct collective *collective) {
  double first = INFINITY, busy = NAN;
  FOR_EACH_MEMBER(c->a->model, collective, member) {
    double own = arrival_own_time(c, member);
    busy = own < first ? c->busy_ns[member - c->a->model->arrivals] : busy;
    first = fmin(first, own);
  }
  /* What is too short to be worth mentioning makes no ratio large. */
  return isnan(busy) ? NAN : first - fmax(busy, worth_mentioning_ns(c));
}

double ratio_of_times(double begin, double time, double other) {
  return log((time - begin) / (other - begin));
}

/* The clock decides unless its error could hide what is worth mentioning. */
bool clocks_tell_who_is_late(const struct analysis *a, u32 comm) {
  const struct comm *of = &a->model->comms[comm];
  double step_ns = a->results->step_median_ms * 1e6;
  return a->model->clock_aligned &&
         !(widest_clock_error_ns(a->model, of->members, of->size) > WORTH_MENTIONING * step_ns);
}

static void measure_busy(struct straggler_test *c) {
  const struct model *model = c->a->model;
  u32 comm = INDEX_NONE;
  i64 *left = arena_array(&c->scratch, model->n_ranks, sizeof(i64));
  FOR_EACH(c->by_comm, model->n_collectives, one) {
    const struct collective *collective = &model->collectives[*one];
    for (u32 r = 0; r < model->n_ranks && collective->comm != comm; r++)
      left[r] = NS_UNKNOWN;
    comm = collective->comm;
    bool kept = analysis_times_of(c->a, collective->step) != TIMES_LEFT_OUT;
    FOR_EACH_MEMBER(model, collective, member) {
      i64 ready = model_arrival_ready(model, member), before = left[member->rank];
      bool known = kept && ready != NS_UNKNOWN && before != NS_UNKNOWN;
      c->busy_ns[member - model->arrivals] = known ? fmax(0, (double)ready - (double)before) : NAN;
      if (op_is_barrier_like(collective->op))
        left[member->rank] = kept ? member->end : NS_UNKNOWN;
    }
  }
}

/* Of a broadcast nobody need wait for a member that only receives; but all wait for one that sends
 * late, and some for one that hands on to them. So those count as met in which somebody who had
 * come before the last member left after it. */
static void find_unwaited(struct straggler_test *c) {
  const struct model *model = c->a->model;
  for (u32 i = 0; i < model->n_collectives; i++) {
    const struct collective *collective = &model->collectives[i];
    i64 last = INT64_MIN;
    FOR_EACH_MEMBER(model, collective, member) {
      i64 ready = model_arrival_ready(model, member);
      last = MAX(ready, last);
    }
    c->unwaited[i] = !op_is_barrier_like(collective->op) &&
                     !ANY(members_of(model, collective), collective->n_arrivals, one,
                          model_arrival_ready(model, one) < last && one->end > last);
  }
}

/* Of the difference between a member's arrival and the others': that of the clocks, or that of
 * reading a rank's own. */
double arrival_error(const struct straggler_test *c, const struct collective *collective,
                     u32 rank) {
  const struct model *model = c->a->model;
  return c->by_clock[collective->comm] ? model_collective_error_ns(model, collective, rank)
                                       : 2e3 * model->ranks[rank].clock.reading_us;
}

void arrival_times_prepare(struct straggler_test *c) {
  c->tested_in = arena_array(&c->scratch, c->a->model->n_comms, sizeof(*c->tested_in));
  c->by_clock = arena_array(&c->scratch, c->a->model->n_comms, sizeof(bool));
  c->unwaited = arena_array(&c->scratch, c->a->model->n_collectives, sizeof(bool));
  c->busy_ns = arena_array(&c->scratch, c->a->model->n_arrivals, sizeof(double));
  c->by_comm = arena_array(&c->scratch, c->a->model->n_collectives, sizeof(u32));
  model_list_by_comm(c->a->model, c->by_comm);
  for (u32 i = 0; i < c->a->model->n_comms; i++)
    c->by_clock[i] = clocks_tell_who_is_late(c->a, i);
  measure_busy(c);
  find_unwaited(c);
}
