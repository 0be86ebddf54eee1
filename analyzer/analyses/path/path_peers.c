/* SPDX-License-Identifier: MIT */
#include "analyses/path/path_peers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define COMMON_WORK 0.9 /* of a rank's, for ranks that do the same */

struct comparison {
  const struct peers *p;
  const struct sample_graph *g;
  const bool *late_in;        /* like peers.late_in */
  const bool *group;          /* these are as fast as the others; NULL: each is */
  const bool *like;           /* others: those that call as some of the group do; NULL: all */
  bool of_all;                /* each is as fast as the median of all */
  double *total, *net, *more; /* [class * n_ranks + rank] its work; how much more that is than what
                                 is usual; and by what it is more alone */
  bool *unshared;             /* [n_keys] kernels that only the group runs, or only the others */
  double *sorted;             /* work of one key, of the peers */
  double median;              /* of it, where a group is compared */
  u32 n, first, last;         /* how many that are; two of them */
};

/* Whether a step counts where a rank is compared that is late in some of them; any rank if it is
 * INDEX_NONE. */
static bool counts(const struct peers *p, const bool *late_in, u32 late, u32 step) {
  return late == INDEX_NONE || late_in[(size_t)late * p->sample.n + step];
}

/* How many of the steps that count the sample has for each that the rank has of it. */
static double steps_for_one(const struct peers *p, const bool *late_in, u32 rank, u32 late) {
  u32 own = 0, all = 0;
  struct window window;
  for (u32 i = 0; i < p->sample.n; i++) {
    all += counts(p, late_in, late, i);
    own += counts(p, late_in, late, i) && analysis_window(p->a, rank, p->sample.first + i, &window);
  }
  return own ? (double)all / own : 1;
}

/* Ranks are compared by all of their time for a kind of work: one may do it more often than its
 * peers, and calls divide a host's time differently on each rank. Of a rank that lacks steps it is
 * what it would be in all. */
static void sum_work(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                     u32 late, double *work) {
  for (u32 n = 0; n < g->n; n++) {
    const struct node *node = &g->nodes[n];
    if (late != INDEX_NONE && !peers_late_in(p, late_in, n, late))
      continue;
    if (node->kind != NODE_BLOCKED && node->kind != NODE_COLLECTIVE)
      work[(size_t)node->key * g->n_ranks + node->rank] += (double)(node->end - node->start);
    if (!NODE_ON_DEVICE(node->kind))
      work[(size_t)phase_of_gap(node) * g->n_ranks + node->rank] += (double)gap_ns(g, n);
  }
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    double for_one = steps_for_one(p, late_in, rank, late);
    for (u32 key = 0; key < g->n_keys && for_one > 1; key++)
      work[(size_t)key * g->n_ranks + rank] *= for_one;
  }
}

/* Ranks do the same if half of them do hardly anything that not all do. */
static bool do_the_same(const struct peers *p, const struct sample_graph *g, double *scratch) {
  u32 n = NUMBER_OF(g->slices, g->n_ranks, one, one->present);
  double *common = scratch, *all = scratch + g->n_ranks;
  memset(scratch, 0, 2 * (size_t)g->n_ranks * sizeof(double));
  for (u32 key = HOST_KEYS; key < g->n_keys; key++) {
    const double *work = &p->work[(size_t)key * g->n_ranks];
    u32 have = NUMBER_OF(work, g->n_ranks, one, *one > 0);
    for (u32 rank = 0; rank < g->n_ranks; rank++) {
      all[rank] += work[rank];
      common[rank] += have == n ? work[rank] : 0;
    }
  }
  u32 the_same = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    the_same += all[rank] > 0 && common[rank] >= COMMON_WORK * all[rank];
  return n > 1 && 2 * the_same >= n;
}

/* A host that spends no time in a phase is a peer all the same. A rank without a kernel does other
 * work, unless the ranks do the same: then that kernel is what others do in addition. */
static bool is_peer(const struct peers *p, const struct sample_graph *g, u32 key, u32 rank) {
  return p->work[(size_t)key * g->n_ranks + rank] > 0 ||
         ((key < HOST_KEYS || p->alike) && g->slices[rank].present);
}

/* Host time outside the phases can be waiting that no record shows, and so can that in calls of
 * collectives that the host runs. So nothing is known from a rank that has less of it. */
static bool is_open(const struct sample_graph *g, u32 key) {
  u32 n = g->node_of_key[key];
  return key == 0 || key == TSCOPE_PHASE_USER ||
         (n != INDEX_NONE && g->nodes[n].kind == NODE_LAUNCH &&
          !g->slices[g->nodes[n].rank].on_gpu);
}

enum work_class work_class_of(const struct sample_graph *g, u32 key) {
  u32 n = g->node_of_key[key];
  if (is_open(g, key))
    return CLASS_OPEN;
  if (n == INDEX_NONE || !NODE_ON_DEVICE(g->nodes[n].kind))
    return CLASS_HOST;
  return g->nodes[n].kind == NODE_KERNEL ? CLASS_KERNELS : CLASS_COPIES;
}

/* Whether the group is compared with a rank. */
static bool is_other(const struct comparison *c, u32 rank) {
  return !c->group || (!c->group[rank] && (!c->like || c->like[rank]));
}

static void list_peers(struct comparison *c, u32 key) {
  const double *work = &c->p->work[(size_t)key * c->g->n_ranks];
  c->n = 0;
  for (u32 rank = 0; rank < c->g->n_ranks; rank++) {
    if (!is_other(c, rank) || !is_peer(c->p, c->g, key, rank))
      continue;
    c->first = c->n ? c->first : rank;
    c->last = rank;
    c->sorted[c->n++] = work[rank];
  }
  if (c->group)
    c->median = median_of(c->sorted, c->n);
  else
    SORT(c->sorted, c->n, by_double);
}

/* What work of a key takes on others; NAN if there are none. Of two ranks the one that has less to
 * do in all is the median. */
static double usual_work(const struct comparison *c, u32 key, u32 rank, enum work_class class) {
  const double *work = &c->p->work[(size_t)key * c->g->n_ranks];
  const double *total = &c->total[(size_t) class * c->g->n_ranks];
  if (c->group)
    return c->group[rank] ? c->median : NAN;
  if (c->n < 2 || !is_peer(c->p, c->g, key, rank))
    return NAN;
  if (!c->of_all)
    return median_of_others(c->sorted, c->n, work[rank]);
  if (c->n == 2 && class != CLASS_OPEN)
    return work[total[c->first] <= total[c->last] ? c->first : c->last];
  return c->sorted[(c->n - 1) / 2];
}

static bool group_has(const struct comparison *c, const double *work) {
  return ANY_NUMBER(0, c->g->n_ranks, rank, c->group[rank] && work[rank] > 0);
}

static bool others_have(const struct comparison *c, const double *work) {
  return ANY_NUMBER(0, c->g->n_ranks, rank, is_other(c, rank) && work[rank] > 0);
}

/* The stages of a pipeline may run kernels that the others do not: an embedding, a loss, other
 * layers. In other jobs who runs other kernels has another part, and is no slower for it. */
static void find_unshared(const struct comparison *c) {
  for (u32 key = HOST_KEYS; key < c->g->n_keys && c->group && !c->p->alike; key++) {
    const double *work = &c->p->work[(size_t)key * c->g->n_ranks];
    c->unshared[key] =
        work_class_of(c->g, key) == CLASS_KERNELS && group_has(c, work) != others_have(c, work);
  }
}

static void compare_key(struct comparison *c, u32 key, float *left) {
  u32 n_ranks = c->g->n_ranks;
  enum work_class class = work_class_of(c->g, key);
  list_peers(c, key);
  for (u32 rank = 0; rank < n_ranks; rank++) {
    size_t at = (size_t)key * n_ranks + rank, of_class = (size_t) class * n_ranks + rank;
    double own = c->p->work[at], usual = usual_work(c, key, rank, class);
    left[at] = usual < own ? (float)(usual / own) : 1;
    if (isnan(usual) || c->unshared[key])
      continue;
    c->net[of_class] += class == CLASS_OPEN ? fmax(0, own - usual) : own - usual;
    c->more[of_class] += fmax(0, own - usual);
  }
}

/* What only the group runs is compared with what only the others run, each in all. */
static void compare_unshared(struct comparison *c, float *left) {
  u32 n_ranks = c->g->n_ranks;
  SCOPED double *unshared = memory_zeroed(size_sum(n_ranks, 1), sizeof(*unshared));
  for (u32 key = 0; key < c->g->n_keys; key++)
    for (u32 rank = 0; rank < n_ranks && c->unshared[key]; rank++)
      unshared[rank] += c->p->work[(size_t)key * n_ranks + rank];
  u32 n =
      LIST_WHERE(c->sorted, 0, n_ranks, rank,
                 is_other(c, rank) && c->total[CLASS_KERNELS * n_ranks + rank] > 0, unshared[rank]);
  double usual = median_of(c->sorted, n);
  for (u32 rank = 0; rank < n_ranks; rank++) {
    size_t of_class = (size_t)CLASS_KERNELS * n_ranks + rank;
    if (!c->group[rank] || !n)
      continue;
    c->net[of_class] += unshared[rank] - usual;
    c->more[of_class] += fmax(0, unshared[rank] - usual);
    for (u32 key = 0; key < c->g->n_keys && unshared[rank] > usual; key++)
      if (c->unshared[key])
        left[(size_t)key * n_ranks + rank] = (float)(usual / unshared[rank]);
  }
}

/* Of what a rank has more by key, only as much goes as it has more in all; or as it comes late by,
 * since what it does faster than its peers after these have waited makes up for nothing. Sets
 * `more` to the share of itself that goes. */
static void find_share_that_goes(struct comparison *c, u32 rank) {
  u32 n_ranks = c->g->n_ranks;
  double net_of_all = 0, more_of_all = 0;
  for (u32 class = 0; class < CLASSES; class ++) {
    size_t at = (size_t) class * n_ranks + rank;
    c->net[at] = fmin(fmax(0, c->net[at]), c->more[at]);
    net_of_all += c->net[at];
    more_of_all += c->more[at];
  }
  double beyond = fmax(0, c->p->late[rank] - net_of_all), room = more_of_all - net_of_all;
  double of_room = room > 0 ? fmin(1, beyond / room) : 0;
  for (u32 class = 0; class < CLASSES; class ++) {
    size_t at = (size_t) class * n_ranks + rank;
    double goes = c->net[at] + of_room * (c->more[at] - c->net[at]);
    c->more[at] = c->more[at] > 0 ? goes / c->more[at] : 1;
  }
}

static void keep_the_rest(const struct comparison *c, u32 key, float *left) {
  u32 n_ranks = c->g->n_ranks;
  const double *share = &c->more[(size_t)work_class_of(c->g, key) * n_ranks];
  for (u32 rank = 0; rank < n_ranks; rank++) {
    float *of_key = &left[(size_t)key * n_ranks + rank];
    *of_key = 1 - (1 - *of_key) * (float)share[rank];
  }
}

/* Who has the same part in the job as some of a group, by what it calls: of the same stage, or a
 * worker as they. False: nobody else has. */
static bool find_like(const struct comparison *c, bool *like) {
  u32 n_ranks = c->g->n_ranks;
  const struct calls *calls = c->p->calls;
  SCOPED u32 *group = memory_array(size_sum(n_ranks, 1), sizeof(*group));
  u32 n = LIST_WHERE(group, 0, n_ranks, i, c->group && c->group[i] && calls[2 * i + 1].n, i);
  for (u32 rank = 0; rank < n_ranks && n; rank++)
    like[rank] = c->g->slices[rank].present && !c->group[rank] &&
                 ANY(group, n, one, calls_alike(calls[2 * *one + 1], calls[2 * rank + 1]));
  return ANY(like, n_ranks, one, *one);
}

static float *compare_in_all(struct comparison c) {
  u32 n_ranks = c.g->n_ranks;
  SCOPED bool *like = memory_zeroed(size_sum(n_ranks, 1), sizeof(*like));
  c.like = find_like(&c, like) ? like : NULL;
  size_t of_classes = (size_t)CLASSES * n_ranks + 1;
  float *left = memory_array(size_product(c.g->n_keys, n_ranks), sizeof(*left));
  double *sums = memory_zeroed(size_sum(3 * of_classes, n_ranks), sizeof(*sums));
  SCOPED bool *unshared = memory_zeroed(size_sum(c.g->n_keys, 1), sizeof(*unshared));
  c.unshared = unshared;
  find_unshared(&c);
  c.total = sums;
  c.net = sums + of_classes;
  c.more = sums + 2 * of_classes;
  c.sorted = sums + 3 * of_classes;
  for (u32 key = 0; key < c.g->n_keys; key++)
    for (u32 rank = 0; rank < n_ranks; rank++)
      c.total[(size_t)work_class_of(c.g, key) * n_ranks + rank] +=
          c.p->work[(size_t)key * n_ranks + rank];
  for (u32 key = 0; key < c.g->n_keys; key++)
    compare_key(&c, key, left);
  if (c.group && c.p->a->results->n_pipeline_stage)
    compare_unshared(&c, left);
  for (u32 rank = 0; rank < n_ranks; rank++)
    find_share_that_goes(&c, rank);
  for (u32 key = 0; key < c.g->n_keys; key++)
    keep_the_rest(&c, key, left);
  free(sums);
  return left;
}

static bool same_steps(const struct comparison *c, u32 a, u32 b) {
  u32 n = c->p->sample.n;
  return memcmp(&c->late_in[(size_t)a * n], &c->late_in[(size_t)b * n], n * sizeof(bool)) == 0;
}

static bool is_late_in_all(const struct comparison *c, u32 rank) {
  return ALL(&c->late_in[(size_t)rank * c->p->sample.n], c->p->sample.n, one, *one);
}

/* Ranks that are late in some steps only are compared in those. */
static float *compare(struct comparison c) {
  const struct peers *p = c.p;
  float *left = compare_in_all(c);
  u32 n_ranks = c.g->n_ranks;
  for (u32 rank = 0; rank < n_ranks && c.late_in; rank++) {
    bool done = ANY_NUMBER(0, rank, i, same_steps(&c, i, rank));
    if (done || is_late_in_all(&c, rank) || (c.group && !c.group[rank]))
      continue;
    struct peers in_late = *p;
    SCOPED double *work = memory_zeroed(size_product(c.g->n_keys, n_ranks), sizeof(*work));
    sum_work(p, c.g, c.late_in, rank, work);
    in_late.work = work;
    struct comparison of_late = c;
    of_late.p = &in_late;
    SCOPED float *some = compare_in_all(of_late);
    for (u32 other = 0; other < n_ranks; other++)
      for (u32 key = 0; key < c.g->n_keys && same_steps(&c, rank, other); key++)
        left[(size_t)key * n_ranks + other] = some[(size_t)key * n_ranks + other];
  }
  return left;
}

float *peers_compare_group(const struct peers *p, const struct sample_graph *g, const bool *group,
                           const bool *late_in) {
  return compare((struct comparison){.p = p, .g = g, .late_in = late_in, .group = group});
}

u32 peers_choose(const struct sample_graph *g, const bool *of, u32 peers[PEERS_ASKED]) {
  u32 all = NUMBER_OF(g->slices, g->n_ranks, one, one->present && of[one - g->slices]);
  u32 each = all / PEERS_ASKED ? all / PEERS_ASKED : 1, passed = 0, n = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    if (g->slices[rank].present && of[rank] && passed++ % each == 0 && n < PEERS_ASKED)
      peers[n++] = rank;
  return n;
}

bool *peers_late_since(const struct peers *p, u32 n_ranks, const u32 *since) {
  u32 n = p->sample.n;
  bool *late_in = memory_array(size_product(n_ranks, n), sizeof(*late_in));
  for (u32 rank = 0; rank < n_ranks; rank++)
    for (u32 i = 0; i < n; i++)
      late_in[(size_t)rank * n + i] =
          p->sample.first + i >= since[rank] && (!p->late_in || p->late_in[(size_t)rank * n + i]);
  return late_in;
}

/* Fills in late_in, if any rank is late in some steps only. */
static void find_late_steps(struct peers *p) {
  const struct results *r = p->a->results;
  if (p->sample.n < 2 || !ANY(r->ranks, r->n_ranks, one, one->n_late))
    return;
  p->late_in = memory_array(size_product(r->n_ranks, p->sample.n), sizeof(*p->late_in));
  for (u32 rank = 0; rank < r->n_ranks; rank++) {
    bool *in = &p->late_in[(size_t)rank * p->sample.n], any = false;
    for (u32 i = 0; i < p->sample.n; i++)
      any |= in[i] = straggler_is_late_in(&r->ranks[rank],
                                          (double)p->a->model->steps.first + p->sample.first + i);
    for (u32 i = 0; i < p->sample.n && !any; i++)
      in[i] = true;
  }
}

void peers_compare(struct peers *p, const struct sample_graph *g, const struct analysis *a,
                   const struct sample *sample) {
  const struct results *r = a->results;
  SCOPED double *scratch = memory_array(size_product(2, g->n_ranks), sizeof(double));
  p->a = a;
  p->sample = *sample;
  find_late_steps(p);
  p->work = memory_zeroed(size_product(g->n_keys, g->n_ranks), sizeof(double));
  p->late = memory_zeroed(size_sum(g->n_ranks, 1), sizeof(double));
  for (u32 rank = 0; rank < r->n_ranks; rank++)
    p->late[rank] = sample->n * fmax(0, r->ranks[rank].imposed_wait_ms) * 1e6;
  sum_work(p, g, p->late_in, INDEX_NONE, p->work);
  even_steps_new(&p->even, g, sample->n, p->work);
  peers_find_calls(p, g);
  p->alike = do_the_same(p, g, scratch);
  p->as_peers = compare((struct comparison){.p = p, .g = g, .late_in = p->late_in});
  p->as_median = compare_in_all((struct comparison){.p = p, .g = g, .of_all = true});
}

void peers_free(struct peers *p) {
  FREE_EACH(p, late_in, work, late, as_peers, as_median, calls);
  even_steps_free(&p->even);
}
