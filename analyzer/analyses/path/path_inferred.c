/* SPDX-License-Identifier: MIT
 *
 * Waits of one stream for another for which no event was recorded, if the times leave no doubt:
 * work that was launched long before begins right after work on another stream has ended. If it had
 * begun at a random moment of the time in which it could begin, the chance that it lies so close
 * behind one of the k ends in that time would be k NEAR / (that time).
 */

#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_slice.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/statistics.h"

/* The chance that any dependency is inferred where there is none: for single waits in the whole
 * sample, and for a repeated pattern between two streams. */
#define DOUBT 0.01
#define MOST_LANES 64u

struct wait {
  u32 node, from, lane, from_lane;
  double chance;
};

/* How often work of a key on a lane began behind work of another lane; of INDEX_NONE: how often it
 * waited at all, and by what chance it began behind any. */
struct pattern {
  u32 key, lane, from_lane;
  u32 n;
  double chances;
};

struct inferring {
  struct slice_builder *c;
  HASHED(struct pattern) patterns;
  VECTOR(struct wait)
  waits; /* those that ended near an end; one after the other, of each such lane */
  u32 n_trials;
  u32 trials[MOST_LANES],
      hits[MOST_LANES][MOST_LANES]; /* by the lane that waits, and the lane that it waits for */
  double chances[MOST_LANES];
  i64 latency; /* typical */
};

/* The first node of a lane that ends after `time`: the work of a stream ends in order. */
static u32 first_ending_after(const struct slice_builder *c, u32 lane, i64 time) {
  return FIRST_NOT(c->lanes[lane].base, c->lanes[lane].next, i, c->slice->nodes[i].end <= time);
}

/* The time from which a node could have begun, as far as records say. */
static i64 earliest_start(const struct slice *slice, u32 n) {
  const struct node *node = &slice->nodes[n];
  i64 from = node->alone ? slice->begin : slice->nodes[n - 1].end;
  if (node->launch != INDEX_NONE && slice->nodes[node->launch].end > from)
    from = slice->nodes[node->launch].end;
  for (u32 i = node->first_dep; i < node[1].first_dep; i++)
    from = MAX(slice->nodes[slice->deps[i]].end, from);
  return from;
}

static struct pattern *pattern_of(struct inferring *in, u32 key, u32 lane, u32 from_lane) {
  u32 i = HASHED_OR_ADD(&in->patterns, hash_number(key, (u64)lane << 32 | from_lane), one,
                        one->key == key && one->lane == lane && one->from_lane == from_lane,
                        (struct pattern){.key = key, .lane = lane, .from_lane = from_lane});
  return &in->patterns.at[i];
}

static void check_node(struct inferring *in, u32 lane, u32 n) {
  const struct slice_builder *c = in->c;
  const struct node *node = &c->slice->nodes[n];
  i64 from = earliest_start(c->slice, n);
  if ((node->launch == INDEX_NONE && !node->queued) || node->start - from < SHORTEST_WAIT)
    return;
  if (node->launch != INDEX_NONE &&
      may_be_latency(node->start - c->slice->nodes[node->launch].end, in->latency))
    return; /* it was on its way so long */
  bool any = false;
  u32 ends = 0, first = in->waits.n;
  for (u32 other = 0; other < c->t->n_lanes; other++) {
    if (other == lane || !c->t->lanes[other].device)
      continue;
    u32 low = first_ending_after(c, other, from), high = first_ending_after(c, other, node->start);
    ends += high - low;
    any |= low < c->lanes[other].next && c->slice->nodes[low].start < node->start;
    if (high > low && c->slice->nodes[high - 1].end >= node->start - NEAR) {
      VECTOR_PUSH(&in->waits,
                  ((struct wait){.node = n, .from = high - 1, .lane = lane, .from_lane = other}));
      in->hits[lane][other]++;
      pattern_of(in, node->key, lane, other)->n++;
    }
  }
  c->slice->nodes[n].late = !any;
  double chance = fmin(1, (double)ends * NEAR / (double)(node->start - from));
  in->n_trials++;
  in->trials[lane]++;
  in->chances[lane] += chance;
  struct pattern *waits = pattern_of(in, node->key, lane, INDEX_NONE);
  waits->n++;
  waits->chances += chance;
  for (u32 i = first; i < in->waits.n; i++)
    in->waits.at[i].chance = chance;
}

/* Work of one key begins so behind one lane so often that chance makes it of fewer than one key in
 * a hundred samples. */
static bool is_pattern(struct inferring *in, const struct wait *wait) {
  u32 key = in->c->slice->nodes[wait->node].key;
  u32 hits = pattern_of(in, key, wait->lane, wait->from_lane)->n;
  const struct pattern *waits = pattern_of(in, key, wait->lane, INDEX_NONE);
  return binomial_tail(hits, waits->n, waits->chances / waits->n) * in->patterns.n <= DOUBT;
}

static bool is_certain(struct inferring *in, const struct wait *wait) {
  if (wait->chance * in->n_trials <= DOUBT || is_pattern(in, wait))
    return true;
  u32 trials = in->trials[wait->lane], lanes = in->c->t->n_lanes;
  double chance = in->chances[wait->lane] / trials;
  return binomial_tail(in->hits[wait->lane][wait->from_lane], trials, chance) * lanes * lanes <=
         DOUBT;
}

/* Of several streams whose work ended just then: the one that the stream waits for most often. */
static bool is_better(const struct inferring *in, const struct wait *wait,
                      const struct wait *other) {
  u32 hits = in->hits[wait->lane][wait->from_lane],
      others = in->hits[other->lane][other->from_lane];
  const struct node *nodes = in->c->slice->nodes;
  return hits > others || (hits == others && nodes[wait->from].end > nodes[other->from].end);
}

static void add_inferred(struct slice_builder *c, struct inferring *in) {
  c->inferred = arena_array(&c->scratch, in->waits.n, sizeof(*c->inferred));
  const struct wait *best = NULL;
  FOR_EACH(in->waits.at, in->waits.n, wait) {
    if (best && best->node != wait->node)
      best = NULL;
    if (!is_certain(in, wait) || (best && !is_better(in, wait, best)))
      continue;
    c->n_inferred -= best != NULL;
    best = wait;
    c->slice->nodes[wait->node].inferred = true;
    c->inferred[c->n_inferred++] = (struct dep){wait->node, wait->from};
  }
}

void slice_infer(struct slice_builder *c) {
  u32 n_lanes = c->t->n_lanes;
  c->n_inferred = 0;
  if (!c->t->on_gpu || n_lanes > MOST_LANES)
    return;
  SCOPED struct inferring *in = memory_zeroed(1, sizeof(*in));
  *in =
      (struct inferring){.c = c, .latency = typical_latency(c->slice->nodes, 0, c->slice->n_nodes)};
  for (u32 lane = 0; lane < n_lanes; lane++)
    for (u32 n = c->lanes[lane].base; c->t->lanes[lane].device && n < c->lanes[lane].next; n++)
      check_node(in, lane, n);
  add_inferred(c, in);
  FREE_EACH(in, waits.at, patterns.at, patterns.index.slots);
}
