/* SPDX-License-Identifier: MIT
 *
 * What a device does more slowly than its peers only now and then: kernels and copies in one
 * micro-batch of three, in some layers. Shortened all alike, what is slow would stay too long, and
 * the rest would get too short, wherever ranks wait for each other in between. path_places.c does
 * the same for hosts.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_run.h"
#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/statistics.h"

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
    FILL(u->left, g->n, -1);
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

float *peers_uneven(const struct peers *p, const struct sample_graph *g, const bool *ranks,
                    const bool *late_in, const float *factor) {
  struct uneven u = {.g = g, .p = p, .late_in = late_in};
  u32 peers[PEERS_ASKED];
  SCOPED bool *others = memory_array(size_sum(g->n_ranks, 1), sizeof(*others));
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    others[rank] = !ranks[rank];
  u.n_peers = peers_choose(g, others, peers);
  for (u32 i = 0; i < u.n_peers; i++)
    u.peers[i] = list_in_turn(g, peers[i]);
  for (u32 rank = 0; rank < g->n_ranks && u.n_peers; rank++)
    if (ranks[rank] && g->slices[rank].present)
      find_uneven(&u, rank, factor);
  FOR_EACH(u.peers, u.n_peers, peer)
    FREE_EACH(peer, begin, at);
  return u.left;
}
