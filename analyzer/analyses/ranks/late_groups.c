/* SPDX-License-Identifier: MIT
 *
 * Ranks that are late together. They come last by turns, and none of them in most steps: they are
 * tested as one. What slows a host slows its ranks; and where a few ranks or hosts are slow alike,
 * each for a reason of its own, a gap parts them from the others.
 */
#include <math.h>
#include <string.h>

#include "analyses/ranks/straggler_test.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define ERRORS_ALONE 2 /* of its lateness: chance goes beyond that once in 40 times */

/* A rank that was not named before, and how late it typically is after the middle one of these. */
struct late_member {
  u32 rank;
  double late_ns;
};

/* The median of the members without a name that are outside of the group; NAN if there are none.
 * *latest: the last of these. */
static double median_outside(struct straggler_test *c, const struct collective *collective,
                             double *latest) {
  const struct arrival *members = members_of(c->a->model, collective);
  u32 n = LIST_WHERE(c->values, 0, collective->n_arrivals, i,
                     !c->named[members[i].rank] && !c->in_group[members[i].rank],
                     arrival_own_time(c, &members[i]));
  *latest = -INFINITY;
  FOR_EACH(c->values, n, each)
    *latest = fmax(*latest, *each);
  return median_of(c->values, n);
}

/* How much later the group's last member without a name came than the median of the members outside
 * it; not positive if it was not later than all of them. NAN if the group or the others have no
 * member there. */
static double group_lateness(struct straggler_test *c, const struct collective *collective) {
  double latest = -INFINITY, others, outside = median_outside(c, collective, &others);
  FOR_EACH_MEMBER(c->a->model, collective, member)
    if (c->in_group[member->rank] && !c->named[member->rank])
      latest = fmax(latest, arrival_own_time(c, member));
  return isinf(latest) || isnan(outside) ? NAN : latest <= others ? 0 : latest - outside;
}

/* `outside`: of each tested collective. */
static void measure_member(struct straggler_test *c, u32 comm, const double *outside,
                           struct verdict *v) {
  u32 n = LIST_KNOWN(c->lateness, c->first[comm], c->first[comm + 1], i,
                     is_in_late_steps(v, i) ? member_own_time(c, tested_collective(c, i), v->rank) -
                                                  outside[i - c->first[comm]]
                                            : (double)NAN);
  lateness_measure(c, n, v);
}

/* By what ratio the group's members came later than the others, on average; NAN as above. */
static double ratio_of_means(const struct straggler_test *c, const struct collective *collective,
                             double begin) {
  double sum[2] = {0, 0}, n[2] = {0, 0};
  FOR_EACH_MEMBER(c->a->model, collective, member) {
    if (c->named[member->rank])
      continue;
    sum[c->in_group[member->rank]] += arrival_own_time(c, member);
    n[c->in_group[member->rank]]++;
  }
  return ratio_of_times(begin, sum[1] / n[1], sum[0] / n[0]);
}

/* What the group's last members did, as one; `share` of the members are in it, which was chosen of
 * so many `groups`. */
static struct verdict group_verdict(struct straggler_test *c, u32 comm, double error, double share,
                                    double groups) {
  double sum = 0;
  u32 n = 0;
  struct verdict v = {.tested = c->first[comm + 1] - c->first[comm]};
  for (u32 i = c->first[comm]; i < c->first[comm + 1]; i++) {
    double late = group_lateness(c, tested_collective(c, i)),
           ratio =
               ratio_of_means(c, tested_collective(c, i), c->unnamed.from_ns[i - c->first[comm]]);
    v.times += late > error;
    c->sizes[i - c->first[comm]] = isnan(late) ? 0 : late;
    sum += late > error ? late : 0;
    if (!isnan(ratio))
      c->lateness[n++] = ratio;
  }
  v.typical_ns = median_of(c->sizes, v.tested);
  /* Of a group with most of the chances, counts say less than how late it is. */
  v.p = groups * (share <= 0.5 && straggler_counts_tell(c, v.tested, share, groups)
                      ? chance_of_count(v.times, v.tested, share, c->correlation)
                      : chance_of_mean(c->lateness, n, c->correlation, c->sizes));
  v.imposed_ns = sum / v.tested;
  return v;
}

void late_group_name(struct straggler_test *c, u32 comm, double least, struct verdict v,
                     const char *together) {
  const struct collective *roster = tested_roster(c, comm);
  struct verdict *of = arena_array(&c->scratch, roster->n_arrivals, sizeof(*of));
  u32 begin = c->first[comm], end = c->first[comm + 1], n = 0;
  double latest, *outside = arena_array(&c->scratch, end - begin, sizeof(*outside));
  for (u32 i = begin; i < end; i++)
    outside[i - begin] = median_outside(c, tested_collective(c, i), &latest);
  FOR_EACH_MEMBER(c->a->model, roster, member) {
    v.rank = member->rank;
    if (c->named[v.rank] || !c->in_group[v.rank])
      continue;
    measure_member(c, comm, outside, &v);
    if (v.typical_ns >= least)
      of[n++] = v;
  }
  /* What shows that the group is late shows it of no member alone. */
  if (n == 1 && of[0].typical_ns - ERRORS_ALONE * of[0].error_ns < least)
    return;
  FOR_EACH(of, n, item) {
    straggler_name(c, comm, item);
    c->a->results->ranks[item->rank].last_together = together;
  }
}

/* `groups`: of how many this one was chosen. */
static void test_group(struct straggler_test *c, u32 comm, u32 mine, u32 all, double groups,
                       const char *together) {
  const struct collective *roster = tested_roster(c, comm);
  double error = 0;
  FOR_EACH_MEMBER(c->a->model, roster, one)
    error = c->in_group[one->rank] ? fmax(error, arrival_error(c, roster, one->rank)) : error;
  double least = fmax(worth_mentioning_ns(c), error);
  struct verdict v = group_verdict(c, comm, error, (double)mine / all, groups);
  v.members = all;
  if (v.p * c->tests >= STRAGGLER_SIGNIFICANCE || v.times <= STRAGGLER_MAJORITY * v.tested ||
      !(v.imposed_ns >= least))
    return;
  late_at_times_narrow(c, comm, (double)mine / all, &v);
  late_group_name(c, comm, least, v, together);
}

void late_host_test(struct straggler_test *c, u32 comm, u32 rank) {
  const struct model *model = c->a->model;
  u32 host = model->ranks[rank].host_number, mine = 0, all = 0;
  FOR_EACH_MEMBER(c->a->model, tested_roster(c, comm), one) {
    c->in_group[one->rank] = model->ranks[one->rank].host_number == host;
    all += !c->named[one->rank];
    mine += !c->named[one->rank] && c->in_group[one->rank];
  }
  if (mine >= 2 && all - mine >= 2)
    test_group(c, comm, mine, all, 1, "another of its host");
}

ORDER_BY(by_lateness, struct late_member, UP(late_ns) UP(rank))

/* Members without a name, the latest last. */
static u32 order_members(struct straggler_test *c, u32 comm, struct late_member *members) {
  u32 n = 0;
  FOR_EACH_MEMBER(c->a->model, tested_roster(c, comm), one) {
    u32 late = c->named[one->rank]
                   ? 0
                   : list_lateness_of(c, c->first[comm], c->first[comm + 1], one->rank);
    if (late)
      members[n++] = (struct late_member){one->rank, median_of(c->lateness, late)};
  }
  SORT(members, n, by_lateness);
  return n;
}

/* How many of the latest are parted from the others by the widest gap: two or more, at most a
 * quarter of all where that is more than two; and no further apart from one another than from the
 * others. */
static u32 latest_alike(const struct late_member *members, u32 n) {
  u32 most = MAX(n / 4, 2), best = 0;
  double widest = 0;
  for (u32 k = 1; k <= most && k < n; k++) {
    double gap = members[n - k].late_ns - members[n - k - 1].late_ns;
    best = gap > widest ? k : best;
    widest = fmax(gap, widest);
  }
  return best > 1 && widest > members[n - 1].late_ns - members[n - best].late_ns ? best : 0;
}

struct host_member {
  u32 host; /* its number */
  struct late_member member;
};

ORDER_BY(by_host, struct host_member, UP(host) UP(member.rank))

/* Of each host with ranks among these how late they are on average, the latest last; `rank` is one
 * of the host's. */
static u32 order_hosts(struct straggler_test *c, const struct late_member *members, u32 n,
                       struct late_member *hosts) {
  struct host_member *sorted = arena_array(&c->scratch, n, sizeof(*sorted));
  u32 n_hosts = 0;
  for (u32 i = 0; i < n; i++)
    sorted[i] = (struct host_member){c->a->model->ranks[members[i].rank].host_number, members[i]};
  SORT(sorted, n, by_host);
  for (u32 i = 0, of_host; i < n; i += of_host) {
    of_host = ROW_OF_EQUALS(&sorted[i], n - i, first, one, one->host == first->host);
    double sum = TOTAL(double, &sorted[i], of_host, one, one->member.late_ns);
    hosts[n_hosts++] = (struct late_member){sorted[i].member.rank, sum / of_host};
  }
  SORT(hosts, n_hosts, by_lateness);
  return n_hosts;
}

void late_hosts_test(struct straggler_test *c, u32 comm) {
  const struct model *model = c->a->model;
  u32 room = tested_roster(c, comm)->n_arrivals, mine = 0;
  struct late_member *members = arena_array(&c->scratch, room, sizeof(*members));
  struct late_member *hosts = arena_array(&c->scratch, room, sizeof(*hosts));
  u32 n = order_members(c, comm, members), n_hosts = order_hosts(c, members, n, hosts);
  u32 late = latest_alike(hosts, n_hosts);
  if (!late || n_hosts == n)
    return;
  memset(c->in_group, 0, (model->n_ranks + 1u) * sizeof(*c->in_group));
  FOR_EACH(members, n, member)
    for (u32 k = n_hosts - late; k < n_hosts; k++)
      if (model->ranks[member->rank].host_number == model->ranks[hosts[k].rank].host_number) {
        c->in_group[member->rank] = true;
        mine++;
      }
  test_group(c, comm, mine, n, exp(log_choose(n_hosts, late)), "another of the late hosts");
}

void late_group_test(struct straggler_test *c, u32 comm) {
  const struct collective *roster = tested_roster(c, comm);
  struct late_member *members = arena_array(&c->scratch, roster->n_arrivals, sizeof(*members));
  u32 n = order_members(c, comm, members), mine = latest_alike(members, n);
  if (!mine)
    return;
  memset(c->in_group, 0, (c->a->model->n_ranks + 1u) * sizeof(*c->in_group));
  for (u32 i = n - mine; i < n; i++)
    c->in_group[members[i].rank] = true;
  test_group(c, comm, mine, n, exp(log_choose(n, mine)), "another of the late ranks");
}
