/* SPDX-License-Identifier: MIT
 *
 * Who makes the others wait, and whether that can be chance.
 *
 * For each step and communicator one collective is tested (tested_collectives.c). A rank's arrival
 * there is the time when it really started, less its own time in other communicators during the
 * step: a rank that one group, or its link, made late is not to blame in the next. If all ranks
 * were alike, each would be last in 1/n of the tested collectives; base/persistence.h says how
 * probable it then is to be last so often, or so late, where one step is as the step before. That
 * is multiplied by the number of tests made (Bonferroni). Where that may be chance, a line at
 * which the rank alone is can still tell. A straggler must also be last in most of the tested
 * collectives, and cause a wait that is larger than the error of the clocks. A straggler
 * that was found is left out and the others are tested again, so several can be named. Ranks that
 * are late in fewer steps are found by late_at_times.c.
 */
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/ranks/straggler_test.h"
#include "analyses/steps/series.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/statistics.h"

/* For the series: how long after the first each member came to the tested collective of a step. */
static void add_lateness(struct straggler_test *c) {
  for (u32 i = 0; i < c->n_tested; i++) {
    const struct collective *collective = tested_collective(c, i);
    double earliest = INFINITY;
    FOR_EACH_MEMBER(c->a->model, collective, member)
      earliest = fmin(earliest, arrival_own_time(c, member));
    FOR_EACH_MEMBER(c->a->model, collective, member)
      series_add_lateness(c->a, member->rank, collective->step,
                          ns_to_ms(arrival_own_time(c, member) - earliest));
  }
}

static struct verdict last_count(const struct straggler_test *c, u32 comm, u32 rank, u32 members) {
  u32 tested = c->first[comm + 1] - c->first[comm] - c->missed[rank], times = c->times_last[rank];
  return (struct verdict){.rank = rank,
                          .times = times,
                          .tested = tested,
                          .members = members,
                          .p = chance_of_count(times, tested, 1.0 / members, c->correlation),
                          .imposed_ns = times ? c->imposed_ns[rank] / tested : 0};
}

/* Training steps for each in which the members of a communicator wait for one another. Where ranks
 * meet only in every tenth step, they come as late as ten steps made them; if they meet once, as
 * all steps until then. */
static double steps_between_meetings(struct straggler_test *c, u32 comm) {
  u32 met = c->first[comm + 1] - c->first[comm], trained = 0;
  if (c->meeting == comm)
    return c->meeting_steps;
  i32 last = met ? tested_collective(c, c->first[comm + 1] - 1)->step : -1;
  for (i32 step = met > 1 ? tested_collective(c, c->first[comm])->step + 1 : (i32)c->a->first_step;
       step <= last; step++)
    trained += analysis_is_training(c->a, (u32)step) &&
               (c->tested_in[comm] == TESTED_IN_ALL || analysis_times_of(c->a, step) == TIMES_KEPT);
  c->meeting = comm;
  c->meeting_steps = trained ? (double)trained / (met > 1 ? met - 1 : 1) : 1;
  return c->meeting_steps;
}

/* How often the rank was last, and what that says. */
static void set_counts(struct straggler_test *c, u32 comm, const struct verdict *v) {
  struct rank_result *out = &c->a->results->ranks[v->rank];
  double expected = (double)v->tested / v->members;
  c->best_comm[v->rank] = comm;
  out->slowest_count = v->times;
  out->slowest_fraction = (double)v->times / v->tested;
  out->met_steps = c->first[comm + 1] - c->first[comm] - c->missed[v->rank];
  out->met_members = v->members;
  out->met_correlation = c->correlation;
  out->z = (v->times - expected) / sqrt(expected * (1 - 1.0 / v->members));
  out->p_value = fmin(1, v->p * c->tests);
  out->imposed_wait_ms = ns_to_ms(v->imposed_ns / steps_between_meetings(c, comm));
}

/* What the first round says of a rank in the communicator in which chance explains it least. */
static void keep_count(struct straggler_test *c, u32 comm, u32 rank, u32 members) {
  struct verdict v = last_count(c, comm, rank, members);
  if (c->named[rank] || !(v.p < c->best_p[rank]))
    return;
  c->best_p[rank] = v.p;
  set_counts(c, comm, &v);
}

/* The first member without a name that is never last; INDEX_NONE. */
static u32 never_last(struct straggler_test *c, u32 comm) {
  const struct collective *roster = tested_roster(c, comm);
  const struct arrival *arrivals = members_of(c->a->model, roster);
  u32 k = c->unnamed.passed;
  while (k < roster->n_arrivals && c->named[arrivals[k].rank])
    k++;
  c->unnamed.passed = k;
  while (k < roster->n_arrivals && (c->named[arrivals[k].rank] || c->times_last[arrivals[k].rank]))
    k++;
  return k < roster->n_arrivals ? arrivals[k].rank : INDEX_NONE;
}

/* One round over a communicator: counts, then finds the rank for which chance explains the count
 * least. Those that are never last are all alike. */
static struct verdict test_members(struct straggler_test *c, u32 comm, bool first_round) {
  struct verdict best = {.rank = INDEX_NONE, .p = 2};
  u32 members = unnamed_members_find_last(c);
  if (members < 2)
    return best;
  c->correlation = lateness_correlation(c, comm, NULL);
  if (first_round)
    FOR_EACH_MEMBER(c->a->model, tested_roster(c, comm), member)
      keep_count(c, comm, member->rank, members);
  u32 other = never_last(c, comm);
  for (u32 k = 0; k <= c->unnamed.n_last; k++) {
    u32 rank = k < c->unnamed.n_last ? c->unnamed.last[k] : other;
    struct verdict of_rank = rank == INDEX_NONE ? best : last_count(c, comm, rank, members);
    if (of_rank.p < best.p || (of_rank.p == best.p && rank < best.rank))
      best = of_rank;
  }
  return best;
}

/* Lateness in the tested collectives in which the rank was last. */
static u32 list_lateness_when_last(struct straggler_test *c, u32 comm, u32 rank) {
  return LIST_WHERE(c->lateness, c->first[comm], c->first[comm + 1], i, c->last_of[i] == rank,
                    c->late_of[i]);
}

bool is_in_late_steps(const struct verdict *v, u32 i) {
  u32 low = FIRST_NOT(0, v->n_late, k, v->late[k].end <= i);
  return v->n_late == 0 || (low < v->n_late && v->late[low].begin <= i);
}

void lateness_measure(const struct straggler_test *c, u32 n, struct verdict *v) {
  v->typical_ns = median_of(c->lateness, n);
  u32 ends = n / 20; /* what may be noise */
  SORT(c->lateness, n, by_double);
  v->skew_ns = fabs(mean_of(c->lateness + ends, n - 2 * ends) - v->typical_ns);
  v->error_ns = error_of_median(c->lateness, n, n * independent_share(c->correlation));
}

bool straggler_counts_tell(const struct straggler_test *c, u32 tested, double share, double tests) {
  return chance_of_count(tested, tested, share, c->correlation) * c->tests * tests <
         STRAGGLER_SIGNIFICANCE;
}

/* Whose hosts get no core come late by turns, so that a slow device may not be last in most steps.
 * But what a device computes takes as long however its host fares. */
static bool has_slow_device(struct straggler_test *c, u32 comm, struct verdict *v) {
  if (v->rank == INDEX_NONE || !(v->imposed_ns > 0))
    return false;
  u32 of, longer = unnamed_members_longer_compute(c, v->rank, &of);
  c->correlation = lateness_correlation(c, comm, NULL);
  double p = chance_of_count(longer, of, 1.0 / v->members, c->correlation);
  if (longer <= STRAGGLER_MAJORITY * of || p * c->tests >= STRAGGLER_SIGNIFICANCE)
    return false;
  v->p = fmin(v->p, p);
  v->longer = longer;
  return true;
}

/* However steps are like their neighbours, chance puts no rank at a line at which its peers never
 * are: the probability of that, if the line explains at least half of what the peers wait. */
static double chance_of_own_line(struct straggler_test *c, const struct verdict *v) {
  const struct lone_line *lone = &lone_lines(c->a)[v->rank];
  return lone->line && lone->run_ns >= REASON_SHARE * v->imposed_ns * v->tested ? lone->chance : 1;
}

static bool is_often_last(struct straggler_test *c, u32 comm, struct verdict *v) {
  double step_ns = c->a->results->step_median_ms * 1e6;
  if (v->rank != INDEX_NONE && !straggler_counts_tell(c, v->tested, 1.0 / v->members, 1))
    v->p = fmin(v->p, chance_of_mean(c->lateness, unnamed_members_list_lateness(c, v, true),
                                     c->correlation, c->sizes));
  if (v->rank != INDEX_NONE && v->p * c->tests >= STRAGGLER_SIGNIFICANCE &&
      v->times > STRAGGLER_MAJORITY * v->tested)
    v->p = fmin(v->p, chance_of_own_line(c, v));
  if (v->rank != INDEX_NONE && c->best_comm[v->rank] == comm)
    c->a->results->ranks[v->rank].p_value = fmin(1, v->p * c->tests);
  if (v->rank == INDEX_NONE || v->p * c->tests >= STRAGGLER_SIGNIFICANCE ||
      v->times <= STRAGGLER_MAJORITY * v->tested)
    return false;
  v->typical_ns = median_of(c->lateness, list_lateness_when_last(c, comm, v->rank));
  double sure = fmin(v->imposed_ns, v->typical_ns * v->times / v->tested);
  const struct collective *one = tested_roster(c, comm);
  return sure >= WORTH_MENTIONING * step_ns * steps_between_meetings(c, comm) &&
         sure >= arrival_error(c, one, v->rank);
}

/* Similar collectives, counted where a rank came last. */
struct kind {
  const struct collective *one;
  u32 times;
  double lateness_ns;
};
#define MOST_KINDS 32u

static void count_kind(struct kind *kinds, u32 *n, const struct collective *one, double lateness) {
  struct kind *kind =
      FIND(kinds, *n, known, known->one->op == one->op && known->one->bytes == one->bytes);
  if (!kind && *n == MOST_KINDS)
    return;
  if (!kind) {
    kind = &kinds[(*n)++];
    *kind = (struct kind){.one = one};
  }
  kind->times++;
  kind->lateness_ns += lateness;
}

/* The kind of collective at which the rank is last most often; of two such kinds, the one at which
 * it is later. Not the kind that cost most: another rank may have been last there once. */
static char *describe_collective(struct straggler_test *c, u32 comm, u32 rank) {
  struct kind kinds[MOST_KINDS];
  u32 n = 0, best = 0;
  for (u32 i = c->first[comm]; i < c->first[comm + 1]; i++)
    if (c->last_of[i] == rank)
      count_kind(kinds, &n, tested_collective(c, i), c->late_of[i]);
  for (u32 i = 1; i < n; i++)
    if (kinds[i].times > kinds[best].times ||
        (kinds[i].times == kinds[best].times && kinds[i].lateness_ns > kinds[best].lateness_ns))
      best = i;
  if (!n)
    return arena_text(c->a->arena, "no one kind of collective");
  const struct collective *typical = kinds[best].one;
  const struct comm *on = &c->a->model->comms[comm];
  const char *size =
      typical->bytes ? say(c->a, " of %s", byte_size((double)typical->bytes).text) : "";
  if (on->name)
    return say(c->a, "%s%s on %s", op_name(typical->op), size, on->name);
  return say(c->a, "%s%s among %u ranks", op_name(typical->op), size, typical->n_arrivals);
}

/* The steps of the stretches: all that are analysed if there are none. */
static void set_late_steps(struct straggler_test *c, const struct verdict *v,
                           struct rank_result *out) {
  const struct model *model = c->a->model;
  out->late_from = arena_array(c->a->arena, v->n_late, sizeof(double));
  out->late_to = arena_array(c->a->arena, v->n_late, sizeof(double));
  for (u32 i = 0; i < v->n_late; i++) {
    u32 first = c->tested[v->late[i].begin], last = c->tested[v->late[i].end - 1];
    out->late_from[i] = model->steps.first + (u32)model->collectives[first].step;
    out->late_to[i] = model->steps.first + (u32)model->collectives[last].step;
  }
  out->n_late = v->n_late;
  out->late_at_times = v->at_times;
  out->late_every = v->period ? v->period : (double)NAN;
}

bool straggler_is_late_in(const struct rank_result *rank, double step) {
  u32 at = FIRST_NOT(0, rank->n_late, i, rank->late_to[i] < step);
  return rank->n_late == 0 || (at < rank->n_late && rank->late_from[at] <= step);
}

void straggler_name(struct straggler_test *c, u32 comm, const struct verdict *v) {
  struct rank_result *out = &c->a->results->ranks[v->rank];
  out->collective = describe_collective(c, comm, v->rank);
  c->named[v->rank] = true;
  c->n_named++;
  set_counts(c, comm, v);
  out->straggler = true;
  double steps = steps_between_meetings(c, comm);
  out->lateness_ms = ns_to_ms(v->typical_ns);
  out->lateness_error_ms = ns_to_ms(v->error_ns);
  out->late_a_step_ms = ns_to_ms(v->typical_ns / steps);
  out->late_a_step_error_ms = ns_to_ms(v->error_ns / steps);
  out->late_skew_ms = ns_to_ms(v->skew_ns / steps);
  out->longer_compute_steps = v->longer ? v->longer : (double)NAN;
  set_late_steps(c, v, out);
  unnamed_members_take_out(c, v->rank);
}

static bool any_is_named(const struct straggler_test *c, u32 comm) {
  const struct collective *roster = tested_roster(c, comm);
  return ANY(members_of(c->a->model, roster), roster->n_arrivals, one, c->named[one->rank]);
}

static void name_straggler(struct straggler_test *c, u32 comm, struct verdict v) {
  bool always = !v.n_late && !v.longer;
  if (always)
    late_stretches_narrow(c, comm, &v);
  lateness_measure(c,
                   v.longer ? list_lateness_when_last(c, comm, v.rank)
                            : unnamed_members_list_lateness(c, &v, false),
                   &v);
  memset(c->in_group, 0, c->a->model->n_ranks * sizeof(*c->in_group));
  c->in_group[v.rank] = true;
  if (always && !v.n_late)
    late_at_times_narrow(c, comm, 1.0 / v.members, &v);
  straggler_name(c, comm, &v);
}

/* `again`: after ranks have got a name; the figures of the others are those of the first time. */
static void test_in_rounds(struct straggler_test *c, u32 comm, bool again) {
  struct verdict v = test_members(c, comm, !again);
  /* Of three, two may be late: then the median of the others is not that of a healthy rank. */
  u32 named = c->n_named;
  if (v.members == 3)
    late_group_test(c, comm);
  if (c->n_named > named)
    return;
  if (v.members > 1 && late_in_turns_name(c, comm, v.members))
    v = test_members(c, comm, false);
  /* Of two ranks one is always last. After the first straggler is named, at least three are needed
   * for a comparison. */
  while (is_often_last(c, comm, &v) || late_stretches_find(c, comm, v.members, &v) ||
         has_slow_device(c, comm, &v)) {
    name_straggler(c, comm, v);
    if (v.members < 4)
      return;
    v = test_members(c, comm, false);
  }
  c->correlation = lateness_correlation(c, comm, NULL);
  named = c->n_named;
  late_hosts_test(c, comm);
  if (v.rank != INDEX_NONE)
    late_host_test(c, comm, v.rank);
  if (!any_is_named(c, comm))
    late_group_test(c, comm);
  if (c->n_named > named)
    v = test_members(c, comm, false);
  while (v.members > 1 && late_at_times_name(c, comm, v.members))
    v = test_members(c, comm, false);
}

/* Who lacks some of the communicator's collectives, since its recording is of less, can come last
 * only in the others. */
static void count_missed(struct straggler_test *c, u32 comm) {
  const struct collective *roster = tested_roster(c, comm);
  FOR_EACH_MEMBER(c->a->model, roster, member)
    c->missed[member->rank] = 0;
  for (u32 i = c->first[comm]; i < c->first[comm + 1]; i++) {
    const struct collective *one = tested_collective(c, i);
    if (one->n_arrivals < roster->n_arrivals)
      FOR_EACH_MEMBER(c->a->model, roster, member)
        c->missed[member->rank] += member_of(c, one, member->rank) == INDEX_NONE;
  }
}

static void test_communicator(struct straggler_test *c, u32 comm, bool again) {
  if (c->first[comm] == c->first[comm + 1])
    return;
  count_missed(c, comm);
  unnamed_members_order(c, comm);
  test_in_rounds(c, comm, again);
  unnamed_members_forget(c);
}

unsigned straggler_threads(const struct straggler_test *c, u64 values) {
  enum { WORTH_A_THREAD = 1 << 14 };
  return values < WORTH_A_THREAD ? 1 : c->a->options->threads;
}

static void make_room(struct straggler_test *c) {
  u32 n = c->a->model->n_ranks + 1u;
  c->first = arena_array(&c->scratch, size_sum(c->a->model->n_comms, 2), sizeof(u32));
  c->roster = arena_array(&c->scratch, size_sum(c->a->model->n_comms, 1), sizeof(u32));
  c->missed = arena_array(&c->scratch, n, sizeof(u32));
  c->best_comm = arena_array(&c->scratch, n, sizeof(u32));
  c->best_p = arena_array(&c->scratch, n, sizeof(double));
  c->values = arena_array(&c->scratch, n, sizeof(double));
  c->named = arena_array(&c->scratch, n, sizeof(bool));
  c->in_group = arena_array(&c->scratch, n, sizeof(bool));
  c->times_last = arena_array(&c->scratch, n, sizeof(u32));
  c->imposed_ns = arena_array(&c->scratch, n, sizeof(double));
  c->events_of_rank = arena_array(&c->scratch, n, sizeof(u32));
  c->events_of_host = arena_array(&c->scratch, n, sizeof(u32));
  c->on_host = arena_array(&c->scratch, n, sizeof(u32));
  for (u32 i = 0; i < n; i++) {
    c->best_p[i] = 2;
    c->best_comm[i] = INDEX_NONE;
  }
}

static void make_room_for_tested(struct straggler_test *c) {
  size_t n = size_sum(c->n_tested, 1);
  c->lateness = arena_array(&c->scratch, n, sizeof(double));
  c->last_of = arena_array(&c->scratch, n, sizeof(u32));
  c->late_of = arena_array(&c->scratch, n, sizeof(double));
  c->middle_of = arena_array(&c->scratch, n, sizeof(double));
  c->sizes = arena_array(&c->scratch, n, sizeof(double));
}

/* Between first and last arrival at the deciding collectives: the median. */
static void fill_sync_skew(struct straggler_test *c) {
  for (u32 i = 0; i < c->n_tested; i++) {
    const struct collective *collective = tested_collective(c, i);
    double first = INFINITY, last = -INFINITY;
    FOR_EACH_MEMBER(c->a->model, collective, member) {
      double at = arrival_time(c, member);
      first = MIN(at, first);
      last = MAX(at, last);
    }
    c->lateness[i] = last - first;
  }
  c->a->results->sync_skew_ms = ns_to_ms(median_of(c->lateness, c->n_tested));
}

static u32 steps_tried(struct straggler_test *c) {
  const u32 *most = LARGEST(c->first, c->a->model->n_comms, one, true, one[1] - *one);
  return most ? most[1] - *most : 0;
}

void stragglers_analyse(struct analysis *a) {
  struct results *r = a->results;
  struct straggler_test c = {.a = a, .meeting = INDEX_NONE};
  make_room(&c);
  arrival_times_prepare(&c);
  if (!a->whole_run)
    choose_tested_collectives(&c);
  make_room_for_tested(&c);
  add_lateness(&c);
  if (c.n_tested)
    fill_sync_skew(&c);
  for (u32 comm = 0; comm < a->model->n_comms; comm++) {
    u32 named = c.n_named;
    test_communicator(&c, comm, false);
    while (c.n_named > named && choose_tested_again(&c, comm)) {
      named = c.n_named;
      test_communicator(&c, comm, true);
    }
  }
  work_compare(&c);
  imbalance_fill(&c);
  r->dist_steps = a->whole_run ? NAN : steps_tried(&c);
  r->dist_tests = c.tests;
  straggler_reasons_fill(a);
  arena_release(&c.scratch);
}
