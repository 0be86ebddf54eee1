/* SPDX-License-Identifier: MIT
 *
 * A rank, or the ranks of a host, that are late in some steps only, wherever these are: in every
 * fourth, or now and then. Of the steps in which anybody is late by so much they are last in most,
 * and in more than their share of the chances. By how much is read from the data: any of the
 * latenesses could have been the limit, and the probability of chance is multiplied by their
 * number. In few steps that is too much to ask. So steps that come at a fixed distance are asked
 * about for themselves: which these are is read from how late the last is, whoever that is. Ranks
 * that are late in turns are last in most steps together only.
 */
#include <math.h>
#include <string.h>

#include "analyses/ranks/straggler_test.h"
#include "analyses/steps/other_work.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define MOST_MEETINGS (2 / 3.0)
#define LONGEST_TURNS 4u /* of more ranks each is late by little: that is imbalance */

/* A tested collective at which it is known who came last, and that this was late. */
struct late_event {
  u32 tested, rank, host;
  double late_ns;
};

/* Whose events are counted: those of a rank, or of a host with several. Once it is chosen it is
 * what is in c->in_group. */
struct late_unit {
  u32 rank, host;
  bool is_host;
  double share; /* of the members without a name */
};

struct late_events {
  struct straggler_test *c;
  struct late_event *at; /* the latest first */
  u32 n, members;
  bool all; /* the limit is no choice: all of them count */
};

ORDER_BY(latest_first, struct late_event, DOWN(late_ns) UP(tested))

static void list_events(struct late_events *events, u32 comm) {
  struct straggler_test *c = events->c;
  double least = worth_mentioning_ns(c);
  u32 begin = c->first[comm], end = c->first[comm + 1];
  const struct rank *ranks = c->a->model->ranks;
  events->at = arena_array(&c->scratch, end - begin, sizeof(*events->at));
  events->n = LIST_WHERE(
      events->at, begin, end, i, c->last_of[i] != INDEX_NONE && c->late_of[i] >= least,
      ((struct late_event){i, c->last_of[i], ranks[c->last_of[i]].host_number, c->late_of[i]}));
  SORT(events->at, events->n, latest_first);
}

/* The members without a name on each host. */
static void count_members(const struct late_events *events, u32 comm) {
  const struct straggler_test *c = events->c;
  FOR_EACH_MEMBER(c->a->model, tested_roster(c, comm), member)
    c->on_host[c->a->model->ranks[member->rank].host_number] += !c->named[member->rank];
}

/* A run may have more communicators than ranks: nothing is cleared that was not touched. The last
 * of a collective need not be in the roster, which is that of the first. */
static void forget_counts(const struct late_events *events, u32 comm) {
  const struct straggler_test *c = events->c;
  FOR_EACH_MEMBER(c->a->model, tested_roster(c, comm), member)
    c->on_host[c->a->model->ranks[member->rank].host_number] = 0;
  FOR_EACH(events->at, events->n, event)
    c->events_of_rank[event->rank] = c->events_of_host[event->host] = 0;
}

static double chance_of(const struct late_events *events, const struct late_unit *unit, u32 times,
                        u32 of) {
  double chance = chance_of_count(times, of, unit->share, events->c->correlation);
  return chance * (events->all ? 1 : events->n);
}

static void keep_if_best(const struct late_events *events, const struct late_unit *unit, u32 times,
                         u32 of, struct late_unit *best, double *best_p) {
  double p = times > STRAGGLER_MAJORITY * of ? chance_of(events, unit, times, of) : 1;
  if (!(p < *best_p))
    return;
  *best_p = p;
  *best = *unit;
}

/* Whose events chance explains least, with any limit. */
static double find_unit(const struct late_events *events, u32 comm, struct late_unit *best) {
  const struct straggler_test *c = events->c;
  double p = 1;
  count_members(events, comm);
  for (u32 i = 0; i < events->n; i++) {
    const struct late_event *event = &events->at[i];
    u32 mine = c->on_host[event->host];
    u32 of_rank = ++c->events_of_rank[event->rank], of_host = ++c->events_of_host[event->host];
    struct late_unit rank = {event->rank, event->host, false, 1.0 / events->members};
    struct late_unit host = {event->rank, event->host, true, (double)mine / events->members};
    u32 of = events->all ? events->n : i + 1;
    keep_if_best(events, &rank, of_rank, of, best, &p);
    if (mine > 1 && mine < events->members)
      keep_if_best(events, &host, of_host, of, best, &p);
  }
  forget_counts(events, comm);
  return p;
}

static void choose_unit(struct straggler_test *c, const struct late_unit *unit) {
  for (u32 rank = 0; rank < c->a->model->n_ranks; rank++)
    c->in_group[rank] =
        unit->is_host ? c->a->model->ranks[rank].host_number == unit->host : rank == unit->rank;
}

/* The median lateness of the unit's events up to that at which it was found. */
static double typical_lateness(const struct late_events *events, const struct late_unit *unit,
                               double p) {
  u32 n = 0;
  for (u32 i = 0; i < events->n; i++) {
    if (!events->c->in_group[events->at[i].rank])
      continue;
    events->c->lateness[n++] = events->at[i].late_ns;
    if (chance_of(events, unit, n, i + 1) <= p)
      break;
  }
  return median_of(events->c->lateness, n);
}

/* The chance of the limit that chance explains least, for those in c->in_group. */
static double least_chance(const struct late_events *events, const struct late_unit *unit) {
  double best = 1;
  for (u32 i = 0, n = 0; i < events->n; i++) {
    n += events->c->in_group[events->at[i].rank];
    if (n > STRAGGLER_MAJORITY * (i + 1))
      best = fmin(best, chance_of(events, unit, n, i + 1));
  }
  return best;
}

/* The unit's events of at least so much: when they are, and how late it is there. */
static struct verdict verdict_on(const struct late_events *events, const struct late_unit *unit,
                                 u32 comm, double least_ns) {
  struct straggler_test *c = events->c;
  u32 n = 0, *steps = arena_array(&c->scratch, events->n, sizeof(u32));
  double sum = 0;
  struct verdict v = {.rank = unit->rank, .members = events->members, .at_times = true};
  for (u32 i = 0; i < events->n && events->at[i].late_ns >= least_ns; i++) {
    v.tested++;
    if (!c->in_group[events->at[i].rank])
      continue;
    sum += c->lateness[n] = events->at[i].late_ns;
    steps[n++] = events->at[i].tested;
  }
  v.times = n;
  v.p = chance_of(events, unit, v.times, v.tested);
  v.imposed_ns = sum / (c->first[comm + 1] - c->first[comm]);
  lateness_measure(c, n, &v);
  v.late = arena_array(&c->scratch, n, sizeof(*v.late));
  SORT(steps, n, by_u32);
  FOR_EACH(steps, n, each)
    if (v.n_late && v.late[v.n_late - 1].end == *each)
      v.late[v.n_late - 1].end++;
    else
      v.late[v.n_late++] = (struct stretch){*each, *each + 1, 0};
  FOR_EACH_CHANGED(steps, n, one)
    *one = (u32)tested_collective(c, *one)->step;
  /* Where ranks meet in every tenth step only, who is late in most meetings is so at no period. */
  bool in_most = n > MOST_MEETINGS * (c->first[comm + 1] - c->first[comm]);
  v.period = n && !in_most ? period_of_steps(steps, n, c->a->n_steps, &c->scratch, NULL) : 0;
  return v;
}

static bool is_no_chance(const struct late_events *events, u32 comm, const struct verdict *v) {
  struct straggler_test *c = events->c;
  double step_ns = c->a->results->step_median_ms * 1e6;
  const struct collective *roster = tested_roster(c, comm);
  return v->p * c->tests < STRAGGLER_SIGNIFICANCE &&
         v->times >= AT_TIMES_LEAST * (c->first[comm + 1] - c->first[comm]) &&
         v->imposed_ns >= STRETCH_OF_RUN * step_ns &&
         v->typical_ns >= arrival_error(c, roster, v->rank);
}

/* Also of the steps in which anybody is late by half as much it must be last in most: what is as
 * late as the scatter of all is no other kind of step. */
static bool is_late_at_times(const struct late_events *events, u32 comm, const struct verdict *v) {
  return v->times > STRAGGLER_MAJORITY * v->tested && is_no_chance(events, comm, v);
}

/* Of the collectives that are so many after another, those at which somebody is late, and those at
 * which it is who was late at the other. */
struct repeated {
  u32 late, same;
};

static struct repeated repeated_after(const u32 *who, u32 n, u32 distance) {
  struct repeated r = {0};
  for (u32 i = distance; i < n; i++) {
    r.late += who[i] != INDEX_NONE;
    r.same += who[i] != INDEX_NONE && who[i] == who[i - distance];
  }
  return r;
}

/* The chance that the same rank is late at two of them, wherever they are. */
static double chance_of_same(const struct late_events *events) {
  const u32 *times = events->c->events_of_rank;
  return TOTAL(double, events->at, events->n, one, times[one->rank]) / events->n / events->n;
}

/* After how many collectives the same rank is late again, more often than by chance, and than from
 * one to the next; 0 for none. Sets the chance. */
static u32 period_of_turns(const struct late_events *events, u32 comm, double *chance) {
  struct straggler_test *c = events->c;
  u32 begin = c->first[comm], n = c->first[comm + 1] - begin, best = 0;
  u32 *who = arena_array(&c->scratch, n, sizeof(*who));
  FILL(who, n, INDEX_NONE);
  FOR_EACH(events->at, events->n, event)
    who[event->tested - begin] = event->rank;
  struct repeated next = repeated_after(who, n, 1);
  double each = fmax(chance_of_same(events), next.late ? (double)next.same / next.late : 1);
  *chance = 1;
  for (u32 period = 2; period <= LONGEST_TURNS; period++) {
    struct repeated r = repeated_after(who, n, period);
    double p = chance_of_count(r.same, r.late, each, 0) * LONGEST_TURNS;
    if (r.same < STRETCH_INSIDE * r.late || !(p < *chance))
      continue;
    *chance = p;
    best = period;
  }
  return best;
}

/* Ranks that are late in turns, and together in most of the steps in which anybody is late. */
struct turns {
  struct verdict at[LONGEST_TURNS];
  double chance;
  u32 period, n, times;
};

static void add_turn(struct late_events *events, u32 comm, u32 rank, struct turns *turns) {
  struct straggler_test *c = events->c;
  struct late_unit unit = {.rank = rank, .share = 1.0 / events->members};
  choose_unit(c, &unit);
  u32 n =
      LIST_WHERE(c->lateness, 0, events->n, i, events->at[i].rank == rank, events->at[i].late_ns);
  struct verdict v = verdict_on(events, &unit, comm, median_of(c->lateness, n) / 2);
  v.period = turns->period;
  v.p = turns->chance;
  if (!is_no_chance(events, comm, &v))
    return;
  turns->at[turns->n++] = v;
  turns->times += v.times;
}

static void find_turns(struct late_events *events, u32 comm, struct turns *turns) {
  struct straggler_test *c = events->c;
  u32 least = (u32)ceil(AT_TIMES_LEAST * (c->first[comm + 1] - c->first[comm]));
  FOR_EACH(events->at, events->n, event)
    c->events_of_rank[event->rank]++;
  turns->period = period_of_turns(events, comm, &turns->chance);
  for (u32 i = 0; i < events->n; i++) {
    u32 *times = &c->events_of_rank[events->at[i].rank];
    if (turns->period && *times >= least && turns->n < LONGEST_TURNS)
      add_turn(events, comm, events->at[i].rank, turns);
    *times = 0;
  }
}

bool late_in_turns_name(struct straggler_test *c, u32 comm, u32 members) {
  struct late_events events = {.c = c, .members = members};
  struct turns turns = {.n = 0};
  list_events(&events, comm);
  if (events.n)
    find_turns(&events, comm, &turns);
  bool few = turns.n <= 2 || 2 * turns.n <= members; /* else it is the usual thing there */
  if (turns.n < 2 || !few || turns.times < STRETCH_INSIDE * events.n)
    return false;
  FOR_EACH(turns.at, turns.n, turn)
    straggler_name(c, comm, turn);
  return true;
}

static u32 step_of_event(const struct late_events *events, u32 i) {
  return (u32)tested_collective(events->c, events->at[i].tested)->step;
}

/* Whether the latest of all come at a fixed distance. Then only those events stay that do, late or
 * not so late. Where ranks meet in every tenth step only, that these come so says nothing. */
static bool keep_recurring(struct late_events *events, u32 comm) {
  const struct analysis *a = events->c->a;
  struct recurrence found, best = {.chance = 1};
  u32 *steps = arena_array(&events->c->scratch, events->n, sizeof(u32));
  for (u32 period = 2; period <= 1 / AT_TIMES_LEAST; period++) {
    u32 n = MIN(a->n_steps / period, events->n);
    for (u32 i = 0; i < n; i++)
      steps[i] = step_of_event(events, i);
    if (n && period_of_steps(steps, n, a->n_steps, &events->c->scratch, &found) == period &&
        found.chance < best.chance)
      best = found;
  }
  events->n =
      LIST_WHERE(events->at, 0, events->n, i,
                 best.period && recurrence_has(&best, step_of_event(events, i)), events->at[i]);
  events->all = true;
  const struct straggler_test *c = events->c;
  return events->n > 0 && events->n <= MOST_MEETINGS * (c->first[comm + 1] - c->first[comm]);
}

/* Who of the events is late more often than by chance. */
static bool name_unit(struct late_events *events, u32 comm) {
  struct straggler_test *c = events->c;
  struct late_unit unit = {.rank = INDEX_NONE};
  u32 named = c->n_named;
  double p = find_unit(events, comm, &unit);
  if (unit.rank == INDEX_NONE || p * c->tests >= STRAGGLER_SIGNIFICANCE)
    return false;
  choose_unit(c, &unit);
  double least = typical_lateness(events, &unit, p) / 2;
  struct verdict v = verdict_on(events, &unit, comm, least);
  if (!is_late_at_times(events, comm, &v))
    return false;
  if (unit.is_host)
    late_group_name(c, comm, least, v, "another of its host");
  else
    straggler_name(c, comm, &v);
  return c->n_named > named;
}

bool late_at_times_name(struct straggler_test *c, u32 comm, u32 members) {
  struct late_events events = {.c = c, .members = members};
  list_events(&events, comm);
  return name_unit(&events, comm) || (keep_recurring(&events, comm) && name_unit(&events, comm));
}

bool late_at_times_narrow(struct straggler_test *c, u32 comm, double share, struct verdict *v) {
  struct late_events events = {.c = c, .members = v->members};
  struct late_unit unit = {.rank = v->rank, .share = share};
  list_events(&events, comm);
  double least = typical_lateness(&events, &unit, least_chance(&events, &unit)) / 2;
  struct verdict narrow = verdict_on(&events, &unit, comm, least);
  if ((!narrow.period && v->typical_ns >= least) || !is_late_at_times(&events, comm, &narrow))
    return false;
  narrow.p = fmin(narrow.p, v->p);
  *v = narrow;
  return true;
}
