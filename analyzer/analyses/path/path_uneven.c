/* SPDX-License-Identifier: MIT
 *
 * What a rank does more slowly than its peers only now and then: kernels and copies in one
 * micro-batch of three, in some layers; its host between two of the collectives of a step.
 * Shortened all alike, what is slow would stay too long, and the rest would get too short, wherever
 * ranks wait for each other in between.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define PEERS_ASKED 3u

/* Of logarithms of ratios, k-th piece of work by k-th piece: what scatters by less than some
 * percent, as clocks and other work on a device make equal kernels do, or by not twice as much as
 * two peers do between them, is slow alike. One peer does not tell what is usual: it takes more. */
#define SCATTER_LEAST 0.05
#define SCATTER_OF_ONE (4 * SCATTER_LEAST)

static bool has_turn(const struct node *node) {
  return NODE_ON_DEVICE(node->kind) && node->kind != NODE_COLLECTIVE && node->end > node->start;
}

/* What a rank does on its device, by key, in order. */
static struct by_key list_in_turn(const struct sample_graph *g, u32 rank) {
  return LISTED_BY_KEY(g->n_keys, g->base[rank], g->base[rank + 1], i, has_turn(&g->nodes[i]),
                       g->nodes[i].key);
}

struct uneven {
  const struct sample_graph *g;
  const struct peers *p;
  const bool *late_in;
  struct by_key peers[PEERS_ASKED];
  u32 n_peers;
  float *left; /* [g->n] of a node's time; NULL: nothing is uneven yet */
};

static double took(const struct sample_graph *g, u32 node) {
  return (double)(g->nodes[node].end - g->nodes[node].start);
}

static double of_peers(const struct uneven *u, u32 key, u32 k) {
  double values[PEERS_ASKED] = {0, -INFINITY, INFINITY}; /* of one the only, of two the longer */
  for (u32 i = 0; i < u->n_peers; i++)
    values[i] = took(u->g, u->peers[i].at[u->peers[i].begin[key] + k]);
  return middle_of(values[0], values[1], values[2]);
}

/* The variance of the logarithm of one's time by the other's; `other` NULL: by the peers'. */
static double scatter(const struct uneven *u, u32 key, const struct by_key *one,
                      const struct by_key *other) {
  u32 n = one->begin[key + 1] - one->begin[key];
  double sum = 0, squares = 0;
  for (u32 k = 0; k < n; k++) {
    double by = other ? took(u->g, other->at[other->begin[key] + k]) : of_peers(u, key, k);
    double ratio = log(took(u->g, one->at[one->begin[key] + k]) / by);
    sum += ratio;
    squares += ratio * ratio;
  }
  return squares / n - sum / n * (sum / n);
}

static bool as_often(const struct uneven *u, u32 key, const struct by_key *own) {
  u32 n = own->begin[key + 1] - own->begin[key];
  return n > 1 && ALL(u->peers, u->n_peers, one, one->begin[key + 1] - one->begin[key] == n);
}

static bool is_uneven(const struct uneven *u, u32 key, const struct by_key *own) {
  double usual = SCATTER_OF_ONE * SCATTER_OF_ONE;
  if (!as_often(u, key, own))
    return false;
  if (u->n_peers > 1)
    usual = 4 * scatter(u, key, &u->peers[0], &u->peers[1]) + SCATTER_LEAST * SCATTER_LEAST;
  return scatter(u, key, own, NULL) > usual;
}

/* Takes what a rank has more of a key, such a share of it, from where it takes longer than its
 * peers. */
static void take_from_slow(struct uneven *u, u32 rank, u32 key, const struct by_key *own,
                           double excess_share) {
  const struct sample_graph *g = u->g;
  u32 n = own->begin[key + 1] - own->begin[key];
  const u32 *nodes = &own->at[own->begin[key]];
  double all = 0, more = 0;
  for (u32 k = 0; k < n; k++)
    if (peers_late_in(u->p, u->late_in, nodes[k], rank)) {
      all += took(g, nodes[k]);
      more += fmax(0, took(g, nodes[k]) - of_peers(u, key, k));
    }
  if (!(more > 0))
    return;
  double taken = fmin(1, excess_share * all / more);
  if (!u->left) {
    u->left = memory_array(size_sum(g->n, 1), sizeof(*u->left));
    for (u32 i = 0; i < g->n; i++)
      u->left[i] = -1;
  }
  for (u32 k = 0; k < n; k++)
    u->left[nodes[k]] =
        (float)(1 - taken * fmax(0, took(g, nodes[k]) - of_peers(u, key, k)) / took(g, nodes[k]));
}

static void find_uneven(struct uneven *u, u32 rank, const float *factor) {
  struct by_key own = list_in_turn(u->g, rank);
  for (u32 key = HOST_KEYS; key < u->g->n_keys; key++) {
    double left = factor[(size_t)key * u->g->n_ranks + rank];
    if (left < 1 && is_uneven(u, key, &own))
      take_from_slow(u, rank, key, &own, 1 - left);
  }
  FREE_EACH(&own, begin, at);
}

/* Of ranks that are none of these, some, one each `each`: their numbers. */
static u32 choose_peers(const struct sample_graph *g, const bool *ranks, u32 peers[PEERS_ASKED]) {
  u32 others = NUMBER_OF(g->slices, g->n_ranks, one, one->present && !ranks[one - g->slices]);
  u32 each = others / PEERS_ASKED ? others / PEERS_ASKED : 1, passed = 0, n = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    if (g->slices[rank].present && !ranks[rank] && passed++ % each == 0 && n < PEERS_ASKED)
      peers[n++] = rank;
  return n;
}

float *peers_uneven(const struct peers *p, const struct sample_graph *g, const bool *ranks,
                    const bool *late_in, const float *factor) {
  struct uneven u = {.g = g, .p = p, .late_in = late_in};
  u32 peers[PEERS_ASKED];
  u.n_peers = choose_peers(g, ranks, peers);
  for (u32 i = 0; i < u.n_peers; i++)
    u.peers[i] = list_in_turn(g, peers[i]);
  for (u32 rank = 0; rank < g->n_ranks && u.n_peers; rank++)
    if (ranks[rank] && g->slices[rank].present)
      find_uneven(&u, rank, factor);
  for (u32 i = 0; i < u.n_peers; i++)
    FREE_EACH(&u.peers[i], begin, at);
  return u.left;
}

/* A rank's time by key and place, of all steps in which `late` is late. */
static void sum_places(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                       u32 late, u32 rank, double *ns) {
  u32 places = p->even.places;
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++) {
    const struct node *node = &g->nodes[n];
    u32 place = p->even.row_of_node[n] % places;
    u32 step = p->even.step_of_node[n];
    if (NODE_ON_DEVICE(node->kind) || (late_in && !late_in[(size_t)late * p->sample.n + step]))
      continue;
    if (node->kind != NODE_BLOCKED && node->key < HOST_KEYS)
      ns[node->key * places + place] += (double)(node->end - node->start);
    ns[phase_of_gap(node) * places + place] += (double)gap_ns(g, n);
  }
}

/* Of one the only, of two the longer. */
static double usual_of(double *const *peers, u32 n_peers, size_t at) {
  double values[PEERS_ASKED] = {0, -INFINITY, INFINITY};
  for (u32 i = 0; i < n_peers; i++)
    values[i] = peers[i][at];
  return middle_of(values[0], values[1], values[2]);
}

/* Takes what a rank has more of a key, such a share of it, from the places where it has more. */
static void take_from_places(double *const *peers, u32 n_peers, const double *own, size_t first,
                             u32 places, double left, float *out) {
  double all = 0, more = 0;
  for (size_t at = first; at < first + places; at++) {
    all += own[at];
    more += fmax(0, own[at] - usual_of(peers, n_peers, at));
  }
  double taken = more > 0 ? fmin(1, (1 - left) * all / more) : 0;
  for (size_t at = first; at < first + places; at++)
    out[at] = !(more > 0) ? (float)left
              : own[at] > 0
                  ? (float)(1 - taken * fmax(0, own[at] - usual_of(peers, n_peers, at)) / own[at])
                  : 1;
}

float **peers_by_place(const struct peers *p, const struct sample_graph *g, const bool *ranks,
                       const bool *late_in, const float *factor) {
  u32 places = p->even.row_of_node ? p->even.places : 1, peers[PEERS_ASKED], n_peers;
  size_t of_rank = size_product(HOST_KEYS, places);
  n_peers = choose_peers(g, ranks, peers);
  if (places < 2 || !n_peers)
    return NULL;
  u32 n = NUMBER_OF(ranks, g->n_ranks, one, *one);
  float **left = memory_zeroed(
      size_sum(size_product(g->n_ranks, sizeof(*left)), size_product(n * of_rank, sizeof(float))),
      1);
  float *next = (float *)&left[g->n_ranks];
  SCOPED double *sums = memory_array(size_product(1 + PEERS_ASKED, of_rank), sizeof(*sums));
  double *of_peers[PEERS_ASKED] = {&sums[of_rank], &sums[2 * of_rank], &sums[3 * of_rank]};
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    if (!ranks[rank] || !g->slices[rank].present)
      continue;
    memset(sums, 0, (1 + PEERS_ASKED) * of_rank * sizeof(*sums));
    sum_places(p, g, late_in, rank, rank, sums);
    for (u32 i = 0; i < n_peers; i++)
      sum_places(p, g, late_in, rank, peers[i], of_peers[i]);
    for (u32 key = 0; key < HOST_KEYS; key++)
      take_from_places(of_peers, n_peers, sums, key * places, places,
                       factor[(size_t)key * g->n_ranks + rank], next);
    left[rank] = next;
    next += of_rank;
  }
  return left;
}
