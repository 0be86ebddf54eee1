/* SPDX-License-Identifier: MIT
 *
 * Hosts whose clocks are not known well enough to tell who comes last. The replay would take what a
 * clock is off for work, or for a wait that is none. So such hosts are put where their collectives
 * end together, as far as the errors of their clocks allow. The search for stragglers rests on the
 * same (ranks/arrival_times.c): all leave a collective for the same reason.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_graph.h"
#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

enum { MOST_ROUNDS = 8 };
#define SETTLED_NS 1000

/* By how much the hosts of one clock ended one collective before the mean. */
struct end_difference {
  u32 domain;
  double ns;
};

struct settling {
  const struct model *model;
  struct sample_graph *g;
  u32 n_domains;
  double *move;              /* [n_domains] to be added to its times, so far */
  double *sum;               /* [n_domains] of the ends in one join */
  u32 *count, *domains, n;   /* its members by clock; its clocks */
  struct end_difference *of; /* of all joins */
  size_t n_differences;
};

ORDER_BY(by_domain_and_ns, struct end_difference, UP(domain) UP(ns))

static u32 domain_of(const struct settling *s, u32 node) {
  return s->model->ranks[s->g->nodes[node].rank].clock.domain;
}

static void compare_ends(struct settling *s, const struct collective_join *join) {
  const u32 *members = &s->g->members[join->first];
  double mean = 0;
  s->n = 0;
  FOR_EACH(members, join->n, member) {
    u32 domain = domain_of(s, *member);
    if (!s->count[domain]++)
      s->domains[s->n++] = domain;
    s->sum[domain] += (double)(s->g->nodes[*member].end - s->g->begin);
  }
  FOR_EACH(s->domains, s->n, each) {
    u32 domain = *each;
    s->sum[domain] = s->sum[domain] / s->count[domain] + s->move[domain];
    mean += s->sum[domain] / s->n;
  }
  FOR_EACH(s->domains, s->n, one) {
    u32 domain = *one;
    if (s->n > 1)
      s->of[s->n_differences++] = (struct end_difference){domain, mean - s->sum[domain]};
    s->sum[domain] = s->count[domain] = 0;
  }
}

/* One round; returns the largest move. */
static double move_domains(struct settling *s) {
  double largest = 0;
  s->n_differences = 0;
  FOR_EACH(s->g->joins, s->g->n_joins, join)
    if (join->barrier)
      compare_ends(s, join);
  SORT(s->of, s->n_differences, by_domain_and_ns);
  for (size_t i = 0, n; i < s->n_differences; i += n) {
    n = ROW_OF_EQUALS(&s->of[i], s->n_differences - i, first, one, one->domain == first->domain);
    double ns = s->of[i + n / 2].ns;
    s->move[s->of[i].domain] += ns;
    largest = fmax(largest, fabs(ns));
  }
  return largest;
}

/* The axis is a host's clock. That host stays where it is, the others within their errors. */
static void keep_to_errors(struct settling *s) {
  const struct model *model = s->model;
  double axis = 0;
  for (u32 rank = model->n_ranks; rank-- > 0;)
    if (model->ranks[rank].clock.error_us == 0)
      axis = s->move[model->ranks[rank].clock.domain];
  double *error = s->sum; /* which is free again */
  FOR_EACH(model->ranks, model->n_ranks, one)
    error[one->clock.domain] = 1e3 * one->clock.error_us;
  for (u32 domain = 0; domain < s->n_domains; domain++)
    s->move[domain] = fmax(-error[domain], fmin(error[domain], s->move[domain] - axis));
}

static void move_rank(struct sample_graph *g, u32 rank, i64 ns) {
  struct slice *slice = &g->slices[rank];
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++) {
    g->nodes[n].start += ns;
    g->nodes[n].end += ns;
  }
  slice->begin += ns;
  slice->end += ns;
  slice->host_end += ns;
}

static bool is_needed(const struct analysis *a, u32 *n_domains) {
  *n_domains = MOST_OF(u32, a->model->ranks, a->model->n_ranks, one, one->clock.domain + 1);
  return *n_domains > 1 && a->model->clock_aligned &&
         ANY_NUMBER(0, a->model->n_comms, i, !clocks_tell_who_is_late(a, i));
}

bool path_settle_hosts(const struct analysis *a, struct sample_graph *g) {
  struct settling s = {.model = a->model, .g = g};
  if (!is_needed(a, &s.n_domains))
    return false;
  size_t n = TOTAL(size_t, g->joins, g->n_joins, one, one->n);
  s.move = memory_zeroed(s.n_domains, sizeof(double));
  s.sum = memory_zeroed(s.n_domains, sizeof(double));
  s.count = memory_zeroed(s.n_domains, sizeof(u32));
  s.domains = memory_array(s.n_domains, sizeof(u32));
  s.of = memory_array(size_sum(n, 1), sizeof(*s.of));
  for (int i = 0; i < MOST_ROUNDS && move_domains(&s) > SETTLED_NS; i++)
    ;
  keep_to_errors(&s);
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    if (g->slices[rank].present)
      move_rank(g, rank, (i64)s.move[a->model->ranks[rank].clock.domain]);
  sample_graph_find_limits(g);
  FREE_EACH(&s, move, sum, count, domains, of);
  return true;
}
