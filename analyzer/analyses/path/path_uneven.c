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

/* Collectives of a step, where each is a place of its own. */
#define MOST_PLACES 512u

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

static bool is_late_step(const struct peers *p, const bool *late_in, u32 late, u32 n) {
  return !late_in || late_in[(size_t)late * p->sample.n + p->even.step_of_node[n]];
}

static i64 called_at(const struct sample_graph *g, const struct node *node) {
  return node->call == INDEX_NONE ? node->start : g->nodes[node->call].start;
}

/* A rank's collectives, but for messages, which are others on each rank. */
static bool is_common_call(const struct peers *p, const struct node *node) {
  const struct model *model = p->a->model;
  bool known = node->kind == NODE_COLLECTIVE && node->arrival != INDEX_NONE;
  u32 of = known ? model->arrivals[node->arrival].collective : INDEX_NONE;
  return of != INDEX_NONE && !op_is_message(model->collectives[of].op);
}

/* When a rank's host called them, in order. */
static u32 list_calls(const struct peers *p, const struct sample_graph *g, u32 rank, i64 *calls) {
  u32 n = LIST_WHERE(calls, 0, g->base[rank + 1] - g->base[rank], i,
                     is_common_call(p, &g->nodes[g->base[rank] + i]),
                     called_at(g, &g->nodes[g->base[rank] + i]));
  SORT(calls, n, by_i64);
  return n;
}

/* How many collectives each of a rank's steps has, if all have as many; else 0. */
static u32 count_places(const struct peers *p, const struct sample_graph *g, u32 rank) {
  u32 calls = 0;
  for (u32 n = g->base[rank]; n < g->base[rank + 1]; n++)
    calls += is_common_call(p, &g->nodes[n]);
  return calls % p->sample.n || calls / p->sample.n > MOST_PLACES ? 0 : calls / p->sample.n;
}

/* Its time by key and place, of all steps in which `late` is late; and its places, where they are
 * asked for. */
static void sum_places(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                       u32 late, u32 rank, u32 places, double *ns, u16 *of_node) {
  u32 first = g->base[rank], call = 0;
  SCOPED i64 *calls = memory_array(size_sum(g->base[rank + 1] - first, 1), sizeof(*calls));
  u32 n_calls = list_calls(p, g, rank, calls);
  for (u32 n = first; n < g->base[rank + 1]; n++) {
    const struct node *node = &g->nodes[n];
    call = FIRST_NOT_NEAR(call, 0, n_calls, i, calls[i] < node->start);
    u32 place = call % places;
    if (of_node)
      of_node[n - first] = (u16)place;
    if (NODE_ON_DEVICE(node->kind) || !is_late_step(p, late_in, late, n))
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

/* Peers that have the same places as the first of them. */
static u32 keep_alike(const struct peers *p, const struct sample_graph *g, u32 places, u32 *peers,
                      u32 n_peers) {
  return LIST_WHERE(peers, 0, n_peers, i, count_places(p, g, peers[i]) == places, peers[i]);
}

/* What is left of a rank's host by place. */
static void compare_places(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                           u32 rank, const u32 *peers, u32 n_peers, const float *factor,
                           const struct places *out) {
  size_t room = size_product(HOST_KEYS, out->n);
  SCOPED double *sums = memory_zeroed(size_product(1 + PEERS_ASKED, room), sizeof(*sums));
  double *of_peers[PEERS_ASKED] = {&sums[room], &sums[2 * room], &sums[3 * room]};
  sum_places(p, g, late_in, rank, rank, out->n, sums, out->of_node);
  for (u32 i = 0; i < n_peers; i++)
    sum_places(p, g, late_in, rank, peers[i], out->n, of_peers[i], NULL);
  for (u32 key = 0; key < HOST_KEYS; key++)
    take_from_places(of_peers, n_peers, sums, key * out->n, out->n,
                     factor[(size_t)key * g->n_ranks + rank], out->left);
}

struct places *peers_by_place(const struct peers *p, const struct sample_graph *g,
                              const bool *ranks, const bool *late_in, const float *factor) {
  u32 peers[PEERS_ASKED], n_peers = choose_peers(g, ranks, peers), n = 0;
  u32 places = n_peers && p->sample.n > 1 ? count_places(p, g, peers[0]) : 0;
  size_t nodes = 0, left = size_product(HOST_KEYS, places);
  if (places < 2)
    return NULL;
  n_peers = keep_alike(p, g, places, peers, n_peers);
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    if (ranks[rank]) {
      n++;
      nodes += g->base[rank + 1] - g->base[rank];
    }
  size_t of_list = size_product(g->n_ranks, sizeof(struct places)),
         of_left = size_product(size_product(n, left), sizeof(float));
  struct places *by_place =
      memory_zeroed(size_sum(size_sum(of_list, of_left), size_product(nodes, sizeof(u16))), 1);
  float *next_left = (float *)&by_place[g->n_ranks];
  u16 *next_node = (u16 *)(next_left + n * left);
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    if (!ranks[rank] || !g->slices[rank].present || count_places(p, g, rank) != places)
      continue;
    by_place[rank] = (struct places){places, next_node, next_left};
    compare_places(p, g, late_in, rank, peers, n_peers, factor, &by_place[rank]);
    next_left += left;
    next_node += g->base[rank + 1] - g->base[rank];
  }
  return by_place;
}
