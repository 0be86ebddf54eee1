/* SPDX-License-Identifier: MIT
 *
 * Where in its steps the host of a rank takes longer than those of its peers: between two of the
 * collectives of a step, or of its messages. Shortened all alike, what is slow would stay too long,
 * and the rest would get too short, wherever ranks wait for each other in between.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_run.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/persistence.h"
#include "base/sorting.h"
#include "base/statistics.h"

/* Calls of a step, where before each is a place of its own. */
#define MOST_PLACES 512u

/* The chance that a rank takes longer at any of its places where it does not. */
#define DOUBT 0.01

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
  u32 *first;    /* [steps + 1] */
  bool messages; /* it has any, in the list or not */
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
                         memory_array(size_sum(steps, 1), sizeof(*of.first)), false};
  u32 n = 0;
  FOR_EACH(nodes, room, node) {
    enum call call = call_of(p, node);
    of.messages |= call > CALL_COLLECTIVE;
    if (call == CALL_COLLECTIVE || (messages && call != CALL_NONE))
      of.at[n++] = (struct call_at){node_called_at(g, node), call};
  }
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

/* What most steps call; if there is no such thing, nothing. */
static struct calls usual_calls(const struct call_list *of, u32 steps) {
  SCOPED struct calls *calls = memory_array(steps, sizeof(*calls));
  for (u32 i = 0; i < steps; i++)
    calls[i] = calls_of_step(of, i);
  u32 n, usual = MAJORITY(steps, i, k, calls_alike(calls[i], calls[k]), n);
  return 2 * n > steps ? calls[usual] : (struct calls){0};
}

static struct calls find_usual(const struct peers *p, const struct sample_graph *g, u32 rank,
                               bool with_messages, bool *messages) {
  struct call_list of = list_calls(p, g, rank, with_messages);
  struct calls usual = usual_calls(&of, p->sample.n);
  *messages = of.messages;
  FREE_EACH(&of, at, ends, first);
  return usual;
}

void peers_find_calls(struct peers *p, const struct sample_graph *g) {
  const struct calls *first = NULL; /* with messages */
  p->calls = memory_zeroed(size_product(2, g->n_ranks), sizeof(*p->calls));
  p->call_alike = true;
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    struct calls *calls = &p->calls[2 * rank];
    bool messages = false;
    if (!g->slices[rank].present)
      continue;
    calls[1] = calls[0] = find_usual(p, g, rank, true, &messages);
    if (messages)
      calls[0] = find_usual(p, g, rank, false, &messages);
    first = first ? first : &calls[1];
    p->call_alike &= calls_alike(*first, calls[1]);
  }
}

/* What a rank's host does at its places in the steps in which it calls what it usually does, and
 * those who are compared are late. */
struct place_times {
  u32 n, steps;
  double *mean; /* [key * n + place] */
  double *all;  /* [place * steps + step] of all keys; NAN in other steps */
};

static void free_times(struct place_times *times) {
  FREE_EACH(times, mean, all);
}

/* `of_node`: the places of its nodes, where they are asked for. */
static struct place_times find_times(const struct peers *p, const struct sample_graph *g,
                                     const bool *late_in, u32 rank, bool messages, u16 *of_node) {
  u32 steps = p->sample.n, first = g->base[rank], call = 0, step = 0, told = 0;
  struct calls usual = p->calls[2 * rank + messages];
  struct call_list of = list_calls(p, g, rank, messages);
  struct place_times times = {usual.n, steps,
                              memory_zeroed(size_product(HOST_KEYS, usual.n), sizeof(double)),
                              memory_zeroed(size_product(steps, usual.n), sizeof(double))};
  for (u32 i = 0; i < steps; i++) {
    bool tells = calls_alike(usual, calls_of_step(&of, i)) && (!late_in || late_in[i]);
    told += tells;
    for (u32 place = 0; place < usual.n && !tells; place++)
      times.all[place * steps + i] = NAN;
  }
  for (u32 i = 0; i < HOST_KEYS * usual.n && !told; i++)
    times.mean[i] = NAN;
  for (u32 n = first; n < g->base[rank + 1]; n++) {
    const struct node *node = &g->nodes[n];
    step = FIRST_NOT_NEAR(step, 0, steps - 1, i, of.ends[i] < node->end);
    call = FIRST_NOT_NEAR(call, of.first[step], of.first[step + 1], i, of.at[i].at < node->start);
    bool alike = calls_alike(usual, calls_of_step(&of, step));
    u32 place = alike ? (call - of.first[step]) % usual.n : NO_PLACE;
    if (of_node)
      of_node[n - first] = (u16)place;
    if (NODE_ON_DEVICE(node->kind) || !alike || (late_in && !late_in[step]))
      continue;
    bool own = node->kind != NODE_BLOCKED && node->key < HOST_KEYS;
    double ns = own ? (double)(node->end - node->start) : 0, gap = (double)gap_ns(g, n);
    times.mean[(own ? node->key : 0) * usual.n + place] += ns / told;
    times.mean[phase_of_gap(node) * usual.n + place] += gap / told;
    times.all[place * steps + step] += ns + gap;
  }
  FREE_EACH(&of, at, ends, first);
  return times;
}

/* A rank, and the peers that it is compared with, [n]. */
struct compared_times {
  struct place_times own, peers[PEERS_ASKED];
  u32 n;
  u32 *group_of; /* [place] places that no wait for all others parts are one group */
  double *slow;  /* [group] beyond doubt: the share that goes of what it has more by key and place,
                  * so that it has no more in all; else 0 */
};

/* Of one the only, of two the longer. */
static double usual_of(const double values[PEERS_ASKED], u32 n) {
  return middle_of(values[0], n > 1 ? values[1] : -INFINITY, n > 2 ? values[2] : INFINITY);
}

static double usual_mean(const struct compared_times *c, size_t at) {
  double values[PEERS_ASKED] = {0};
  u32 known = LIST_KNOWN(values, 0, c->n, i, c->peers[i].mean[at]);
  return known ? usual_of(values, known) : c->own.mean[at];
}

/* By the rows of the graph, which lie between two such waits, in the first step that tells. */
static void find_groups(struct compared_times *c, const struct peers *p,
                        const struct sample_graph *g, u32 rank, const u16 *of_node) {
  u32 first = g->base[rank], least = INDEX_NONE;
  FILL(c->group_of, c->own.n, INDEX_NONE);
  for (u32 n = first; n < g->base[rank + 1] && p->even.row_of_node; n++) {
    u32 place = of_node[n - first], row = p->even.row_of_node[n];
    if (place == NO_PLACE)
      continue;
    c->group_of[place] = MIN(row, c->group_of[place]);
    least = MIN(row, least);
  }
  for (u32 place = 0; place < c->own.n; place++) {
    u32 row = c->group_of[place];
    c->group_of[place] = row == INDEX_NONE ? 0 : MIN(row - least, place);
  }
}

/* From here on `all` has times of groups. */
static void join_groups(const struct compared_times *c, struct place_times *times) {
  u32 steps = times->steps;
  for (u32 place = 0; place < times->n; place++)
    for (u32 step = 0; step < steps && c->group_of[place] < place; step++) {
      times->all[c->group_of[place] * steps + step] += times->all[place * steps + step];
      times->all[place * steps + step] = 0;
    }
}

static double more_at(const struct compared_times *c, size_t at) {
  return fmax(0, c->own.mean[at] - usual_mean(c, at));
}

static double more_of_group(const struct compared_times *c, u32 group) {
  double ns = 0;
  for (size_t at = 0; at < (size_t)HOST_KEYS * c->own.n; at++)
    ns += c->group_of[at % c->own.n] == group ? more_at(c, at) : 0;
  return ns;
}

/* What a rank does faster between two waits for all others makes up for nothing that it does more
 * slowly between two others. */
static void find_slow_groups(struct compared_times *c) {
  u32 steps = c->own.steps;
  SCOPED double *more = memory_array(size_product(2, steps), sizeof(*more));
  for (u32 group = 0; group < c->own.n; group++) {
    u32 n = 0;
    for (u32 step = 0; step < steps; step++) {
      double values[PEERS_ASKED] = {0}, own = c->own.all[group * steps + step];
      u32 known = LIST_KNOWN(values, 0, c->n, i, c->peers[i].all[group * steps + step]);
      if (known && !isnan(own))
        more[n++] = own - usual_of(values, known);
    }
    struct persistence persistence = {0};
    persistence_add(&persistence, more, n);
    double mean = MEAN_KNOWN(0, n, i, more[i]);
    if (mean > 0 &&
        chance_of_mean(more, n, persistence_of(&persistence), &more[steps]) * c->own.n <= DOUBT)
      c->slow[group] = fmin(1, mean / more_of_group(c, group));
  }
}

/* Takes what a rank has more of a key, such a share of it, from the places where it has more: of
 * groups that are slow beyond doubt all, and first. */
static void take_from_places(const struct compared_times *c, u32 key, double left, float *out) {
  size_t first = (size_t)key * c->own.n;
  double all = 0, more[2] = {0}, taken[2], of_slow = 0;
  for (u32 place = 0; place < c->own.n; place++) {
    all += c->own.mean[first + place];
    double slow = c->slow[c->group_of[place]];
    more[slow > 0] += more_at(c, first + place);
    of_slow += slow * more_at(c, first + place);
  }
  double goes = fmax((1 - left) * all, of_slow);
  taken[1] = more[1] > 0 ? fmin(1, goes / more[1]) : 0;
  taken[0] = more[0] > 0 ? fmin(1, fmax(0, goes - more[1]) / more[0]) : 0;
  for (u32 place = 0; place < c->own.n; place++) {
    double own = c->own.mean[first + place];
    out[first + place] =
        !(more[0] + more[1] > 0) ? (float)left
        : own > 0
            ? (float)(1 - taken[c->slow[c->group_of[place]] > 0] * more_at(c, first + place) / own)
            : 1;
  }
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
  with.n = peers_choose(g, alike, with.peers);
  return with;
}

/* What is left of a rank's host by place. */
static void compare_places(const struct peers *p, const struct sample_graph *g, const bool *late_in,
                           u32 rank, const struct compared *with, const float *factor,
                           const struct places *out) {
  const bool *late = late_in ? &late_in[(size_t)rank * p->sample.n] : NULL;
  struct compared_times c = {.own = find_times(p, g, late, rank, with->messages, out->of_node),
                             .n = with->n};
  SCOPED u32 *group_of = c.group_of = memory_array(out->n, sizeof(*group_of));
  SCOPED double *slow = c.slow = memory_zeroed(out->n, sizeof(*slow));
  for (u32 i = 0; i < with->n; i++)
    c.peers[i] = find_times(p, g, late, with->peers[i], with->messages, NULL);
  find_groups(&c, p, g, rank, out->of_node);
  join_groups(&c, &c.own);
  FOR_EACH_CHANGED(c.peers, with->n, each)
    join_groups(&c, each);
  find_slow_groups(&c);
  for (u32 key = 0; key < HOST_KEYS; key++)
    take_from_places(&c, key, factor[(size_t)key * g->n_ranks + rank], out->left);
  free_times(&c.own);
  FOR_EACH_CHANGED(c.peers, with->n, one)
    free_times(one);
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
