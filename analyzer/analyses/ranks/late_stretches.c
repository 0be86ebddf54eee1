/* SPDX-License-Identifier: MIT
 *
 * When a rank is late. It is last in most collectives of a stretch of steps if these have the
 * largest sum, where one at which it is last counts 1 and any other -1 [Bentley 1984: maximum
 * subarray]. Either that is more often than by chance, or it is later than members vary outside of
 * the stretch. Any of n (n + 1) / 2 stretches could have been found: the probability of chance is
 * multiplied by that. To be last by little does not count: by half of what is typical in the
 * stretch.
 */
#include <math.h>

#include "analyses/ranks/straggler_test.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "base/statistics.h"

#define MEMBERS_ASKED 256u /* more say no more about how one step follows another */

static bool is_late(const struct straggler_test *c, u32 i, u32 rank, double least_ns) {
  return c->last_of[i] == rank && c->late_of[i] >= least_ns;
}

/* The stretch of [begin, end) with the largest sum; empty if the rank is never last. */
static struct stretch densest(const struct straggler_test *c, u32 begin, u32 end, u32 rank,
                              double least_ns) {
  struct stretch best = {begin, begin, 0};
  u32 from = begin;
  i64 sum = 0, most = 0;
  for (u32 i = begin; i < end; i++) {
    if (sum <= 0) {
      sum = 0;
      from = i;
    }
    sum += is_late(c, i, rank, least_ns) ? 1 : -1;
    if (sum > most) {
      most = sum;
      best = (struct stretch){from, i + 1, 0};
    }
  }
  for (u32 i = best.begin; i < best.end; i++)
    best.times += is_late(c, i, rank, least_ns);
  return best;
}

static double typical_in(struct straggler_test *c, struct stretch s, u32 rank) {
  u32 n = LIST_WHERE(c->lateness, s.begin, s.end, i, c->last_of[i] == rank, c->late_of[i]);
  return median_of(c->lateness, n);
}

u32 list_lateness_of(struct straggler_test *c, u32 begin, u32 end, u32 rank) {
  return LIST_KNOWN(c->lateness, begin, end, i,
                    member_own_time(c, tested_collective(c, i), rank) - c->middle_of[i]);
}

static void add_part(struct straggler_test *c, struct persistence *p, u32 begin, u32 end,
                     u32 rank) {
  persistence_add(p, c->lateness, list_lateness_of(c, begin, end, rank));
}

/* How the lateness of members varies outside of a stretch: of the one that varies most. */
struct usual {
  double variance, freedom, follows;
};

static struct usual usual_outside(struct straggler_test *c, u32 comm, struct stretch s) {
  u32 begin = c->first[comm], end = c->first[comm + 1];
  const struct collective *roster = tested_roster(c, comm);
  const struct arrival *arrivals = members_of(c->a->model, roster);
  u32 stride = 1 + roster->n_arrivals / MEMBERS_ASKED;
  struct persistence all = {0};
  struct usual usual = {0};
  for (u32 k = 0; k < roster->n_arrivals; k += stride) {
    struct persistence p = {0};
    if (c->named[arrivals[k].rank])
      continue;
    add_part(c, &p, begin, s.begin, arrivals[k].rank);
    add_part(c, &p, s.end, end, arrivals[k].rank);
    persistence_join(&all, &p, 1);
    usual.variance =
        fmax(usual.variance, p.values > p.series ? p.squares / (p.values - p.series) : 0);
  }
  usual.follows = persistence_of(&all);
  usual.freedom = (end - begin - (s.end - s.begin)) * independent_share(usual.follows) - 1;
  return usual;
}

/* The probability that steps which vary as those outside of the stretch are as late in it. */
static double chance_of_size(struct straggler_test *c, u32 comm, struct stretch s, u32 rank) {
  struct usual usual = usual_outside(c, comm, s);
  u32 n = list_lateness_of(c, s.begin, s.end, rank);
  double late = median_of(c->lateness, n);
  double error = sqrt(usual.variance / (n * independent_share(usual.follows)));
  if (usual.freedom < 3 || !(late > 0))
    return 1;
  return error > 0 ? student_tails(late / error, usual.freedom) / 2 : 0;
}

/* Steps that follow each other are fewer independent ones, so there are fewer stretches of them. */
static double chance_of(struct straggler_test *c, u32 comm, struct stretch s, u32 rank,
                        u32 members) {
  double n = (c->first[comm + 1] - c->first[comm]) * independent_share(c->correlation);
  double by_count = chance_of_count(s.times, s.end - s.begin, 1.0 / members, c->correlation);
  return 2 * fmin(by_count, chance_of_size(c, comm, s, rank)) * c->tests * n * (n + 1) / 2;
}

static bool is_stretch(struct straggler_test *c, u32 comm, struct stretch s, u32 rank,
                       u32 members) {
  u32 length = s.end - s.begin;
  return length >= STRETCH_MIN_STEPS && s.times >= STRETCH_INSIDE * length &&
         chance_of(c, comm, s, rank, members) < STRAGGLER_SIGNIFICANCE;
}

/* All stretches of [begin, end), in order. */
static void list_stretches(struct straggler_test *c, u32 comm, u32 begin, u32 end, double least_ns,
                           struct verdict *v) {
  struct stretch s = densest(c, begin, end, v->rank, least_ns);
  if (v->n_late == MOST_STRETCHES || !is_stretch(c, comm, s, v->rank, v->members))
    return;
  list_stretches(c, comm, begin, s.begin, least_ns, v);
  if (v->n_late < MOST_STRETCHES)
    v->late[v->n_late++] = s;
  list_stretches(c, comm, s.end, end, least_ns, v);
}

double lateness_correlation(struct straggler_test *c, u32 comm, const struct verdict *parts) {
  u32 begin = c->first[comm], end = c->first[comm + 1], members = 0;
  const struct collective *roster = tested_roster(c, comm);
  const struct arrival *arrivals = members_of(c->a->model, roster);
  u32 stride = 1 + roster->n_arrivals / MEMBERS_ASKED;
  struct persistence p = {0};
  for (u32 k = 0; k < roster->n_arrivals; k += stride) {
    u32 rank = arrivals[k].rank, from = begin;
    if (c->named[rank])
      continue;
    if (members++ && roster->n_arrivals == 2)
      break; /* of two, the second says the same */
    for (u32 s = 0; parts && s < parts->n_late; s++) {
      add_part(c, &p, from, parts->late[s].begin, rank);
      add_part(c, &p, parts->late[s].begin, parts->late[s].end, rank);
      from = parts->late[s].end;
    }
    add_part(c, &p, from, end, rank);
  }
  return persistence_of(&p);
}

/* Lists a rank's stretches: what they are if steps were independent says how far they are, which
 * says what they are. */
static void find_stretches(struct straggler_test *c, u32 comm, double least_ns, struct verdict *v) {
  v->late = arena_array(&c->scratch, MOST_STRETCHES, sizeof(*v->late));
  c->correlation = v->n_late = 0;
  list_stretches(c, comm, c->first[comm], c->first[comm + 1], least_ns, v);
  if (v->n_late == 0)
    return;
  c->correlation = lateness_correlation(c, comm, v);
  v->n_late = 0;
  list_stretches(c, comm, c->first[comm], c->first[comm + 1], least_ns, v);
}

/* Lists a rank's stretches, those in which it is late by half of `typical_ns`, and counts in them
 * alone. False if there are none, or if it is late outside of them too. */
static bool judge_stretches(struct straggler_test *c, u32 comm, double typical_ns,
                            struct verdict *v) {
  u32 begin = c->first[comm], end = c->first[comm + 1], times = 0, inside = 0, n = 0;
  double least = fmax(typical_ns / 2, worth_mentioning_ns(c));
  double sum = 0;
  find_stretches(c, comm, least, v);
  if (v->n_late)
    v->p = fmin(v->p, chance_of(c, comm, v->late[0], v->rank, v->members) / c->tests);
  FOR_EACH(v->late, v->n_late, one) {
    times += one->times;
    inside += one->end - one->begin;
    for (u32 i = one->begin; i < one->end; i++)
      if (is_late(c, i, v->rank, least))
        sum += c->lateness[n++] = c->late_of[i];
  }
  u32 outside = end - begin - inside, late_outside = 0;
  for (u32 i = begin; i < end && c->missed[v->rank]; i++)
    outside -=
        !is_in_late_steps(v, i) && member_of(c, tested_collective(c, i), v->rank) == INDEX_NONE;
  for (u32 i = begin; i < end; i++)
    late_outside += is_late(c, i, v->rank, least);
  late_outside -= times;
  if (!n || outside < STRETCH_MIN_STEPS || late_outside > STRETCH_OUTSIDE * outside) {
    v->n_late = 0;
    return false;
  }
  v->times = times;
  v->tested = inside;
  v->imposed_ns = sum / (end - begin);
  v->typical_ns = median_of(c->lateness, n);
  return true;
}

void late_stretches_narrow(struct straggler_test *c, u32 comm, struct verdict *v) {
  struct stretch s = densest(c, c->first[comm], c->first[comm + 1], v->rank,
                             fmin(v->typical_ns, worth_mentioning_ns(c)));
  judge_stretches(c, comm, typical_in(c, s, v->rank), v);
}

bool late_stretches_find(struct straggler_test *c, u32 comm, u32 members, struct verdict *found) {
  const struct collective *roster = tested_roster(c, comm);
  double step_ns = c->a->results->step_median_ms * 1e6;
  struct verdict best = {.rank = INDEX_NONE};
  for (u32 k = 0; members >= 2 && k < c->unnamed.n_last; k++) {
    u32 rank = c->unnamed.last[k];
    struct verdict v = {.rank = rank, .members = members, .p = 1};
    c->correlation = 0;
    struct stretch s =
        densest(c, c->first[comm], c->first[comm + 1], rank, WORTH_MENTIONING * step_ns);
    if (!is_stretch(c, comm, s, rank, members) ||
        !judge_stretches(c, comm, typical_in(c, s, rank), &v) ||
        v.imposed_ns < STRETCH_OF_RUN * step_ns || v.typical_ns < arrival_error(c, roster, rank))
      continue;
    if (best.rank == INDEX_NONE || v.imposed_ns > best.imposed_ns)
      best = v;
  }
  c->correlation = 0;
  if (best.rank != INDEX_NONE)
    *found = best;
  return best.rank != INDEX_NONE;
}
