/* SPDX-License-Identifier: MIT
 *
 * What slows a host slows its ranks together. Then they come last by turns, and none of them in
 * most steps: the host is tested as one.
 */
#include <math.h>

#include "analyses/ranks/straggler_test.h"
#include "analyses/thresholds.h"
#include "base/statistics.h"

static bool is_of_host(const struct straggler_test *c, const struct arrival *arrival, u32 host) {
  return c->a->model->ranks[arrival->rank].clock.domain == host;
}

/* How much later a host's last member without a name came than the median of other hosts' members;
 * not positive if it was not later than all of them. `one`: of this rank instead. NAN if the host
 * or the others have no member there. */
static double host_lateness(struct straggler_test *c, const struct collective *collective, u32 host,
                            u32 one) {
  const struct arrival *arrivals = &c->a->model->arrivals[collective->first_arrival];
  double latest = -INFINITY, others = -INFINITY;
  u32 n = 0;
  for (u32 i = 0; i < collective->n_arrivals; i++) {
    double own = arrival_own_time(c, collective->first_arrival + i);
    if (c->named[arrivals[i].rank])
      continue;
    if (!is_of_host(c, &arrivals[i], host)) {
      c->values[n++] = own;
      others = fmax(others, own);
    } else if (one == INDEX_NONE || arrivals[i].rank == one) {
      latest = fmax(latest, own);
    }
  }
  if (isinf(latest) || n == 0)
    return NAN;
  return one == INDEX_NONE && latest <= others ? 0 : latest - median_of(c->values, n);
}

static double typical_on_host(struct straggler_test *c, u32 comm, u32 host, u32 one) {
  u32 n = 0;
  for (u32 i = c->first[comm]; i < c->first[comm + 1]; i++)
    c->lateness[n++] =
        host_lateness(c, &c->a->model->collectives[c->tested[i].collective], host, one);
  return median_of(c->lateness, n);
}

/* What a host's last members without a name did, as one. */
static struct verdict host_verdict(struct straggler_test *c, u32 comm, u32 host, double error,
                                   double share) {
  double sum = 0;
  struct verdict v = {.tested = c->first[comm + 1] - c->first[comm]};
  for (u32 i = c->first[comm]; i < c->first[comm + 1]; i++) {
    double late =
        host_lateness(c, &c->a->model->collectives[c->tested[i].collective], host, INDEX_NONE);
    v.times += late > error;
    sum += late > error ? late : 0;
  }
  v.p = binomial_tail(v.times, v.tested, share);
  v.imposed_ns = sum / v.tested;
  return v;
}

/* Those of its members that are late themselves get the name. */
static int name_late_members(struct straggler_test *c, u32 comm, u32 host, double least,
                             struct verdict v) {
  const struct collective *roster = &c->a->model->collectives[c->tested[c->first[comm]].collective];
  const struct arrival *arrivals = &c->a->model->arrivals[roster->first_arrival];
  double *typical = arena_array(&c->scratch, roster->n_arrivals + 1u, sizeof(double));
  int error = 0;
  for (u32 i = 0; i < roster->n_arrivals; i++)
    typical[i] = c->named[arrivals[i].rank] || !is_of_host(c, &arrivals[i], host)
                     ? NAN
                     : typical_on_host(c, comm, host, arrivals[i].rank);
  for (u32 i = 0; i < roster->n_arrivals && !error; i++) {
    if (!(typical[i] >= least))
      continue;
    v.rank = arrivals[i].rank;
    v.typical_ns = typical[i];
    error = straggler_name(c, comm, &v);
    c->a->results->ranks[v.rank].last_by_host = true;
  }
  return error;
}

/* A host with several members without a name that comes last more often than chance explains: that
 * of a rank. */
int slow_host_test(struct straggler_test *c, u32 comm, u32 rank) {
  const struct model *model = c->a->model;
  const struct collective *roster = &model->collectives[c->tested[c->first[comm]].collective];
  const struct arrival *arrivals = &model->arrivals[roster->first_arrival];
  u32 host = model->ranks[rank].clock.domain, mine = 0, all = 0;
  for (u32 i = 0; i < roster->n_arrivals; i++) {
    all += !c->named[arrivals[i].rank];
    mine += !c->named[arrivals[i].rank] && is_of_host(c, &arrivals[i], host);
  }
  if (mine < 2 || all - mine < 2)
    return 0;
  double error = arrival_error(c, roster, rank);
  double least = fmax(WORTH_MENTIONING * c->a->results->step_median_ms * 1e6, error);
  struct verdict v = host_verdict(c, comm, host, error, (double)mine / all);
  v.members = all;
  if (v.p * c->tests >= STRAGGLER_SIGNIFICANCE || v.times <= STRAGGLER_MAJORITY * v.tested ||
      !(v.imposed_ns >= least))
    return 0;
  return name_late_members(c, comm, host, least, v);
}
