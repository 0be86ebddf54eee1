/* SPDX-License-Identifier: MIT
 *
 * What a rank does more slowly than its peers only now and then: kernels and copies in one
 * micro-batch of three, in some layers; its host between two of the collectives of a step, or of
 * its messages. Shortened all alike, what is slow would stay too long, and the rest would get too
 * short, wherever ranks wait for each other in between.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define PEERS_ASKED 3u

/* Calls of a step, where before each is a place of its own. */
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

/* Of such ranks some, one each `each`: their numbers. */
static u32 choose_peers(const struct sample_graph *g, const bool *of, u32 peers[PEERS_ASKED]) {
  u32 all = NUMBER_OF(g->slices, g->n_ranks, one, one->present && of[one - g->slices]);
  u32 each = all / PEERS_ASKED ? all / PEERS_ASKED : 1, passed = 0, n = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    if (g->slices[rank].present && of[rank] && passed++ % each == 0 && n < PEERS_ASKED)
      peers[n++] = rank;
  return n;
}

float *peers_uneven(const struct peers *p, const struct sample_graph *g, const bool *ranks,
                    const bool *late_in, const float *factor) {
  struct uneven u = {.g = g, .p = p, .late_in = late_in};
  u32 peers[PEERS_ASKED];
  SCOPED bool *others = memory_array(size_sum(g->n_ranks, 1), sizeof(*others));
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    others[rank] = !ranks[rank];
  u.n_peers = choose_peers(g, others, peers);
  for (u32 i = 0; i < u.n_peers; i++)
    u.peers[i] = list_in_turn(g, peers[i]);
  for (u32 rank = 0; rank < g->n_ranks && u.n_peers; rank++)
    if (ranks[rank] && g->slices[rank].present)
      find_uneven(&u, rank, factor);
  for (u32 i = 0; i < u.n_peers; i++)
    FREE_EACH(&u.peers[i], begin, at);
  return u.left;
}

static i64 called_at(const struct sample_graph *g, const struct node *node) {
  return node->call == INDEX_NONE ? node->start : g->nodes[node->call].start;
}

/* By what the steps of a rank's host are parted. */
enum call { CALL_NONE, CALL_COLLECTIVE, CALL_SEND, CALL_RECEIVE };

struct call_at {
  i64 at;
  u32 call; /* enum call */
};

ORDER_BY(by_call_time, struct call_at, UP(at) UP(call))

/* Those of a rank in order; where its host ended its steps; and which is the first of each step. */
struct call_list {
  struct call_at *at;
  i64 *ends;
  u32 *first; /* [steps + 1] */
};

static enum call call_of(const struct peers *p, const struct node *node) {
  const struct model *model = p->a->model;
  bool known = node->kind == NODE_COLLECTIVE && node->arrival != INDEX_NONE;
  const struct arrival *arrival = known ? &model->arrivals[node->arrival] : NULL;
  if (!arrival || arrival->collective == INDEX_NONE)
    return CALL_NONE;
  if (!op_is_message(model->collectives[arrival->collective].op))
    return CALL_COLLECTIVE;
  return arrival->op == TSCOPE_OP_RECV ? CALL_RECEIVE : CALL_SEND;
}

static void list_host_ends(const struct sample_graph *g, u32 rank, u32 steps, i64 *ends) {
  const struct slice *slice = &g->slices[rank];
  const struct node *nodes = &g->nodes[g->base[rank]];
  for (u32 i = 0; i < steps; i++) {
    const struct step_end *last = &slice->last_of_step[i];
    bool decides = last->node != INDEX_NONE && !NODE_ON_DEVICE(nodes[last->node].kind);
    u32 of_host = decides ? last->node : last->other;
    ends[i] = i ? ends[i - 1] : slice->begin;
    if (of_host != INDEX_NONE && !NODE_ON_DEVICE(nodes[of_host].kind))
      ends[i] = nodes[of_host].end + (decides ? last->rest : 0);
  }
}

static struct call_list list_calls(const struct peers *p, const struct sample_graph *g, u32 rank,
                                   bool messages) {
  const struct node *nodes = &g->nodes[g->base[rank]];
  u32 steps = p->sample.n, room = g->base[rank + 1] - g->base[rank];
  struct call_list of = {memory_array(size_sum(room, 1), sizeof(*of.at)),
                         memory_array(size_sum(steps, 1), sizeof(*of.ends)),
                         memory_array(size_sum(steps, 1), sizeof(*of.first))};
  u32 n = LIST_WHERE(of.at, 0, room, i,
                     call_of(p, &nodes[i]) > CALL_NONE &&
                         (messages || call_of(p, &nodes[i]) == CALL_COLLECTIVE),
                     ((struct call_at){called_at(g, &nodes[i]), call_of(p, &nodes[i])}));
  SORT(of.at, n, by_call_time);
  list_host_ends(g, rank, steps, of.ends);
  of.first[0] = 0;
  for (u32 i = 0; i < steps; i++)
    of.first[i + 1] = FIRST_NOT(of.first[i], n, k, of.at[k].at < of.ends[i]);
  return of;
}

static struct calls calls_of_step(const struct call_list *of, u32 step) {
  struct calls calls = {of->first[step + 1] - of->first[step], 0};
  for (u32 i = of->first[step]; i < of->first[step + 1]; i++)
    calls.order = hash_number(calls.order, of->at[i].call);
  return calls;
}

/* What most steps call [Boyer and Moore 1991]; if there is no such thing, nothing. */
static struct calls usual_calls(const struct call_list *of, u32 steps) {
  struct calls usual = {0};
  for (u32 i = 0, lead = 0; i < steps; i++) {
    usual = lead ? usual : calls_of_step(of, i);
    lead += calls_alike(usual, calls_of_step(of, i)) ? 1 : -1u;
  }
  u32 n = 0;
  for (u32 i = 0; i < steps; i++)
    n += calls_alike(usual, calls_of_step(of, i));
  return 2 * n > steps ? usual : (struct calls){0};
}

void peers_find_calls(struct peers *p, const struct sample_graph *g) {
  const struct calls *first = NULL; /* with messages */
  p->calls = memory_zeroed(size_product(2, g->n_ranks), sizeof(*p->calls));
  p->call_alike = true;
  for (u32 i = 0; i < 2 * g->n_ranks; i++) {
    if (!g->slices[i / 2].present)
      continue;
    struct call_list of = list_calls(p, g, i / 2, i % 2);
    p->calls[i] = usual_calls(&of, p->sample.n);
    first = first ? first : &p->calls[i % 2 ? i : i + 1];
    p->call_alike &= i % 2 == 0 || calls_alike(*first, p->calls[i]);
    FREE_EACH(&of, at, ends, first);
  }
}

/* Its mean time by key and place, of the steps in which `late` is late and it calls what it usually
 * does; and its places, where they are asked for. */
static void find_places(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                        u32 late, u32 rank, bool messages, double *ns, u16 *of_node) {
  u32 steps = p->sample.n, first = g->base[rank], call = 0, step = 0;
  struct calls usual = p->calls[2 * rank + messages];
  struct call_list of = list_calls(p, g, rank, messages);
  SCOPED bool *told = memory_array(size_sum(steps, 1), sizeof(*told));
  for (u32 i = 0; i < steps; i++)
    told[i] = calls_alike(usual, calls_of_step(&of, i));
  for (u32 n = first; n < g->base[rank + 1]; n++) {
    const struct node *node = &g->nodes[n];
    step = FIRST_NOT_NEAR(step, 0, steps - 1, i, of.ends[i] < node->end);
    call = FIRST_NOT_NEAR(call, of.first[step], of.first[step + 1], i, of.at[i].at < node->start);
    u32 place = told[step] ? (call - of.first[step]) % usual.n : NO_PLACE;
    if (of_node)
      of_node[n - first] = (u16)place;
    if (NODE_ON_DEVICE(node->kind) || place == NO_PLACE ||
        (late_in && !late_in[(size_t)late * steps + step]))
      continue;
    if (node->kind != NODE_BLOCKED && node->key < HOST_KEYS)
      ns[node->key * usual.n + place] += (double)(node->end - node->start);
    ns[phase_of_gap(node) * usual.n + place] += (double)gap_ns(g, n);
  }
  u32 of_steps = NUMBER_OF(told, steps, one,
                           *one && (!late_in || late_in[(size_t)late * steps + (one - told)]));
  for (u32 i = 0; i < HOST_KEYS * usual.n; i++)
    ns[i] /= of_steps ? of_steps : 1;
  FREE_EACH(&of, at, ends, first);
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

/* Whose places a rank's are compared with: of peers that send and receive as it does, or else those
 * between collectives. */
struct compared {
  u32 peers[PEERS_ASKED], n;
  bool messages;
};

static struct compared choose_compared(const struct peers *p, const struct sample_graph *g,
                                       const bool *ranks, u32 rank, bool messages) {
  struct compared with = {.messages = messages};
  const struct calls *own = &p->calls[2 * rank + messages];
  if (!ranks[rank] || p->sample.n < 2 || own->n < 2 || own->n > MOST_PLACES)
    return with;
  SCOPED bool *alike = memory_array(size_sum(g->n_ranks, 1), sizeof(*alike));
  for (u32 peer = 0; peer < g->n_ranks; peer++)
    alike[peer] = !ranks[peer] && calls_alike(*own, p->calls[2 * peer + messages]);
  with.n = choose_peers(g, alike, with.peers);
  return with;
}

/* What is left of a rank's host by place. */
static void compare_places(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                           u32 rank, const struct compared *with, const float *factor,
                           const struct places *out) {
  size_t room = size_product(HOST_KEYS, out->n);
  SCOPED double *sums = memory_zeroed(size_product(1 + PEERS_ASKED, room), sizeof(*sums));
  double *of_peers[PEERS_ASKED] = {&sums[room], &sums[2 * room], &sums[3 * room]};
  find_places(p, g, late_in, rank, rank, with->messages, sums, out->of_node);
  for (u32 i = 0; i < with->n; i++)
    find_places(p, g, late_in, rank, with->peers[i], with->messages, of_peers[i], NULL);
  for (u32 key = 0; key < HOST_KEYS; key++)
    take_from_places(of_peers, with->n, sums, key * out->n, out->n,
                     factor[(size_t)key * g->n_ranks + rank], out->left);
}

struct places *peers_by_place(const struct peers *p, const struct sample_graph *g,
                              const bool *ranks, const bool *late_in, const float *factor) {
  SCOPED struct compared *with = memory_array(size_sum(g->n_ranks, 1), sizeof(*with));
  size_t nodes = 0, left = 0, of_list = size_product(g->n_ranks, sizeof(struct places));
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    with[rank] = choose_compared(p, g, ranks, rank, true);
    if (!with[rank].n)
      with[rank] = choose_compared(p, g, ranks, rank, false);
    nodes += with[rank].n ? g->base[rank + 1] - g->base[rank] : 0;
    left += with[rank].n ? HOST_KEYS * p->calls[2 * rank + with[rank].messages].n : 0;
  }
  if (!left)
    return NULL;
  size_t of_left = size_product(left, sizeof(float)), of_nodes = size_product(nodes, sizeof(u16));
  struct places *by_place = memory_zeroed(size_sum(size_sum(of_list, of_left), of_nodes), 1);
  float *next_left = (float *)&by_place[g->n_ranks];
  u16 *next_node = (u16 *)(next_left + left);
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    u32 places = p->calls[2 * rank + with[rank].messages].n;
    if (!with[rank].n)
      continue;
    by_place[rank] = (struct places){places, next_node, next_left};
    compare_places(p, g, late_in, rank, &with[rank], factor, &by_place[rank]);
    next_left += HOST_KEYS * places;
    next_node += g->base[rank + 1] - g->base[rank];
  }
  return by_place;
}
