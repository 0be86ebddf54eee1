/* SPDX-License-Identifier: MIT
 *
 * Which collective of each step is tested: one for each communicator, because those of one step are
 * correlated.
 *
 * It is that at the place in the step, counted from the step's beginning, at which a rank's
 * lateness repeats: of the places with much wait, its mean over steps, less twice the standard
 * error, is largest there. Where threads wait for a core, the longest wait of a step is wherever
 * chance put it. Once a rank is named, it is where others' lateness repeats: two may be late, each
 * at a place of its own. Only where no lateness repeats, and in steps without that place, the
 * collective with the most wait is tested.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "analyses/ranks/straggler_test.h"
#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "base/statistics.h"

static const double errors_below = 2;   /* a series of chance has such a mean once in 40 times */
static const double much_of_wait = 0.5; /* of that at the place with most */
static const double most_sizes = 2;     /* times the mean size: no single step decides */

struct candidate {
  u32 collective, place;
  double wait_ns;   /* all members together */
  double middle_ns; /* when the middle one was ready */
};

/* Of one communicator, in order of time. */
struct candidates {
  struct straggler_test *c;
  struct candidate *at;
  u32 n, steps, places;
  struct by_key by_place; /* in `at` */
  double *late;           /* [n] scratch */
  /* of each of so many threads: scratch of as many values as any has members, or of n */
  unsigned threads;
  u32 most_members;
  double *values, *lates;
};

static const struct collective *collective_of(const struct candidates *all, u32 i) {
  return &all->c->a->model->collectives[all->at[i].collective];
}

/* Of members without a name; of no collective if it is not known when all were ready. */
static void make_candidate(void *user, u32 index, unsigned worker) {
  const struct candidates *all = user;
  struct straggler_test *c = all->c;
  struct candidate *out = &all->at[index];
  const struct collective *collective = collective_of(all, index);
  double *values = &all->values[(size_t)worker * all->most_members];
  double last = -INFINITY, sum = 0;
  u32 n = 0;
  FOR_EACH_MEMBER(c->a->model, collective, member) {
    double at = arrival_time(c, member);
    if (isnan(at)) {
      out->collective = INDEX_NONE;
      return;
    }
    if (c->named[member->rank])
      continue;
    last = fmax(at, last);
    sum += at;
    values[n++] = arrival_own_time(c, member);
  }
  out->wait_ns = n ? last * n - sum : 0;
  out->middle_ns = median_of(values, n);
}

/* Numbers the candidates of each step, and orders all by that. */
static void find_places(struct candidates *all) {
  for (u32 i = 0; i < all->n; i++) {
    bool same = i > 0 && collective_of(all, i)->step == collective_of(all, i - 1)->step;
    all->at[i].place = same ? all->at[i - 1].place + 1 : 0;
    all->steps += !same;
    all->places = MAX(all->at[i].place + 1, all->places);
  }
  all->by_place = LISTED_BY_KEY(all->places, 0, all->n, i, true, all->at[i].place);
}

/* The mean of a series, less so many of its standard errors. */
static double sure_mean(const double *values, u32 n, double errors) {
  double size = 0, sum = 0, squares = 0;
  FOR_EACH(values, n, each)
    size += most_sizes * fabs(*each) / n;
  FOR_EACH(values, n, one) {
    double value = fmax(-size, fmin(*one, size));
    sum += value;
    squares += value * value;
  }
  double mean = sum / n;
  return n > 1 ? mean - errors * sqrt(fmax(0, squares / n - mean * mean) / (n - 1)) : 0;
}

/* How much wait there is at a place; 0 if few steps have it. */
static double wait_at(struct candidates *all, u32 place) {
  u32 begin = all->by_place.begin[place], n = all->by_place.begin[place + 1] - begin;
  for (u32 i = 0; i < n; i++)
    all->late[i] = all->at[all->by_place.at[begin + i]].wait_ns;
  return 2 * n > all->steps ? sure_mean(all->late, n, 0) : 0;
}

enum { MEMBERS_AT_ONCE = 256 };

/* The members of a place, and the latest for sure of those that each thread looked at. */
struct place_members {
  struct candidates *all;
  u32 place;
  double *most;
};

static void find_latest(void *user, u32 part, unsigned worker) {
  const struct place_members *members = user;
  const struct candidates *all = members->all;
  const struct straggler_test *c = all->c;
  u32 begin = all->by_place.begin[members->place], end = all->by_place.begin[members->place + 1];
  const struct collective *roster = collective_of(all, all->by_place.at[begin]);
  double *late = &all->lates[(size_t)worker * all->n], *most = &members->most[worker];
  u32 first = part * MEMBERS_AT_ONCE;
  for (u32 k = first; k < roster->n_arrivals && k < first + MEMBERS_AT_ONCE; k++) {
    u32 rank = members_of(c->a->model, roster)[k].rank;
    u32 n = LIST_KNOWN(late, begin, c->named[rank] ? begin : end, i,
                       member_own_time(c, collective_of(all, all->by_place.at[i]), rank) -
                           all->at[all->by_place.at[i]].middle_ns);
    *most = fmax(*most, n ? sure_mean(late, n, errors_below) : 0);
  }
}

/* Of the member that is latest for sure at a place. */
static double sure_lateness(struct candidates *all, u32 place) {
  u32 members = collective_of(all, all->by_place.at[all->by_place.begin[place]])->n_arrivals;
  double most = 0;
  SCOPED double *of_threads = memory_zeroed(all->threads, sizeof(*of_threads));
  parallel_for((members + MEMBERS_AT_ONCE - 1) / MEMBERS_AT_ONCE, all->threads, find_latest,
               &(struct place_members){all, place, of_threads});
  FOR_EACH(of_threads, all->threads, of_thread)
    most = fmax(most, *of_thread);
  return most;
}

/* INDEX_NONE if no lateness repeats at any place with much of the wait; *places: how many these
 * are. Who waits does not decide which these are. */
static u32 choose_place(struct candidates *all, u32 *places) {
  double most = 0, longest = 0;
  u32 best = INDEX_NONE;
  for (u32 place = 0; place < all->places; place++)
    longest = fmax(longest, wait_at(all, place));
  for (u32 place = 0; place < all->places; place++) {
    double wait = wait_at(all, place), late;
    if (!(wait > 0) || wait < much_of_wait * longest)
      continue;
    ++*places;
    late = sure_lateness(all, place);
    best = late > most ? place : best;
    most = fmax(late, most);
  }
  return best;
}

static void choose_of_comm(struct candidates *all, u32 comm) {
  struct straggler_test *c = all->c;
  find_places(all);
  u32 places = 0, place = choose_place(all, &places);
  for (u32 i = 0, end; i < all->n; i = end) {
    const struct candidate *best = &all->at[i];
    for (end = i; end < all->n && (end == i || all->at[end].place > 0); end++)
      if (best->place != place &&
          (all->at[end].place == place || all->at[end].wait_ns > best->wait_ns))
        best = &all->at[end];
    c->tested[c->n_tested++] = best->collective;
  }
  c->first[comm + 1] = c->n_tested;
  for (u32 i = c->roster[comm] = c->first[comm]; i < c->n_tested; i++)
    if (tested_collective(c, i)->n_arrivals > tested_collective(c, c->roster[comm])->n_arrivals)
      c->roster[comm] = i;
  /* The place was chosen by what is tested: any of them could have shown it. */
  if (all->n)
    c->tests += (double)collective_of(all, 0)->n_arrivals * (place == INDEX_NONE ? 1 : places);
  FREE_EACH(&all->by_place, begin, at);
}

static bool may_be_tested(const struct straggler_test *c, const struct collective *collective) {
  return (op_is_barrier_like(collective->op) ||
          (comm_op_like(collective->op) == TSCOPE_OP_BROADCAST && c->by_clock[collective->comm])) &&
         collective->n_arrivals >= 2 && !collective->mismatched &&
         analysis_includes(c->a, collective);
}

/* Of the steps whose times are all kept, or of all. */
static void make_candidates(struct candidates *all, u32 begin, u32 end, bool all_steps) {
  const struct straggler_test *c = all->c;
  u32 n = 0;
  u64 values = 0;
  for (u32 i = begin; i < end; i++) {
    const struct collective *collective = &c->a->model->collectives[c->by_comm[i]];
    if (!may_be_tested(c, collective) ||
        !(all_steps || analysis_times_of(c->a, collective->step) == TIMES_KEPT))
      continue;
    all->at[n++].collective = c->by_comm[i];
    values += collective->n_arrivals;
    all->most_members = MAX(collective->n_arrivals, all->most_members);
  }
  all->threads = parallel_threads(INDEX_NONE, straggler_threads(c, values));
  all->values = memory_array(size_product(all->threads, all->most_members + 1u), sizeof(double));
  all->lates = memory_array(size_product(all->threads, n + 1u), sizeof(double));
  parallel_for(n, all->threads, make_candidate, all);
  all->n = KEEP_WHERE(all->at, n, one, one->collective != INDEX_NONE);
}

static void free_candidates(struct candidates *all) {
  FREE_EACH(all, values, lates);
  all->values = all->lates = NULL;
  all->n = all->steps = all->places = all->most_members = 0;
}

/* Where times are kept of the first collective of each step, all steps are tested, unless the steps
 * of which more is kept show a lateness that repeats at another place. */
static bool first_of_step_tells(struct candidates *all, u32 comm, u32 begin, u32 end) {
  const struct straggler_test *c = all->c;
  u32 places = 0, place;
  if (!c->a->model->steps.times || !c->by_clock[comm])
    return !c->a->model->steps.times;
  make_candidates(all, begin, end, false);
  find_places(all);
  place = choose_place(all, &places);
  FREE_EACH(&all->by_place, begin, at);
  free_candidates(all);
  return place == 0 || place == INDEX_NONE;
}

static void choose(struct straggler_test *c, u32 comm) {
  const struct model *model = c->a->model;
  u32 begin = FIRST_NOT(0, model->n_collectives, i, model->collectives[c->by_comm[i]].comm < comm);
  u32 end =
      FIRST_NOT(begin, model->n_collectives, i, model->collectives[c->by_comm[i]].comm == comm);
  size_t room = size_sum(end - begin, 1);
  struct candidates all = {.c = c,
                           .at = memory_array(room, sizeof(*all.at)),
                           .late = memory_array(room, sizeof(*all.late))};
  u8 *in = &c->tested_in[comm];
  if (*in == 0)
    *in = first_of_step_tells(&all, comm, begin, end) ? TESTED_IN_ALL : TESTED_IN_KEPT;
  make_candidates(&all, begin, end, *in == TESTED_IN_ALL);
  choose_of_comm(&all, comm);
  free_candidates(&all);
  FREE_EACH(&all, at, late);
}

void choose_tested_collectives(struct straggler_test *c) {
  const struct model *model = c->a->model;
  c->tested = arena_array(&c->scratch, model->n_collectives, sizeof(*c->tested));
  for (u32 comm = 0; comm < model->n_comms; comm++)
    choose(c, comm);
}

bool choose_tested_again(struct straggler_test *c, u32 comm) {
  const struct collective *roster = tested_roster(c, comm);
  u32 in_all = c->n_tested;
  u32 n = NUMBER_OF(members_of(c->a->model, roster), roster->n_arrivals, one, !c->named[one->rank]);
  c->n_tested = c->first[comm];
  if (n > 2)
    choose(c, comm);
  c->n_tested = in_all;
  return n > 2;
}

const struct collective *tested_collective(const struct straggler_test *c, u32 i) {
  return &c->a->model->collectives[c->tested[i]];
}

const struct collective *tested_roster(const struct straggler_test *c, u32 comm) {
  return tested_collective(c, c->roster[comm]);
}
