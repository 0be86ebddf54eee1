/* SPDX-License-Identifier: MIT
 *
 * Waits of one stream for another that are recorded nowhere, but that some ranks show: what a kind
 * of work waited for there, it waits for everywhere. A rank whose launches come late never waits
 * for its own streams; with launches as fast as its peers', it would.
 *
 * A rule says: work of this key waits for what was launched last before it of another key, or on a
 * stream of another kind; or for what was launched just before that. It holds if waits that were
 * inferred show it, if it explains most of the waits of such work that nothing else does, and if no
 * such work, on any rank, began before what it should wait for had ended.
 */
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_graph.h"
#include "analyses/path/path_run.h"
#include "base/checked_memory.h"
#include "base/hash_index.h"
#include "base/sorting.h"

#define LEAST_SHOWN 3u    /* of all inferred waits of 100 samples at most one is wrong */
enum { LOOKED_BACK = 4 }; /* pieces of work of a key, or of a stream */

struct rule {
  u32 key, of, back; /* of: a key; from n_keys on, a kind of stream */
  u32 shown, left;   /* waits that it explains, or leaves without a reason */
  bool broken;
};

struct wait {
  u32 node, from;
};

struct shown {
  struct sample_graph *g;
  HASHED(struct rule) rules;
  VECTOR(struct wait) added;
  u32 *lane;                /* [n] of each node */
  u32 *stream;              /* [lane] its kind: the commonest key */
  u32 *launched;            /* [n] the work of each rank from its base on, in order of launches; */
  u32 *n_launched;          /* [n_ranks] and how much that is */
  u32 (*last)[LOOKED_BACK]; /* [2 * n_keys] what was launched last, the newest first */
};

static void number_lanes(struct shown *s) {
  const struct sample_graph *g = s->g;
  SCOPED u32 *count = memory_zeroed(size_sum(g->n_keys, 1), sizeof(*count));
  u32 lanes = 0;
  for (u32 first = 0, end; first < g->n; first = end, lanes++) {
    u32 best = g->nodes[first].key;
    for (end = first; end < g->n && (end == first || !g->nodes[end].alone); end++) {
      u32 key = g->nodes[end].key, n = ++count[key];
      best = n > count[best] || (n == count[best] && key < best) ? key : best;
      s->lane[end] = lanes;
    }
    s->stream[lanes] = best;
    for (u32 i = first; i < end; i++)
      count[g->nodes[i].key] = 0;
  }
}

struct launched {
  i64 at;
  u32 node;
};

ORDER_BY(by_launch, struct launched, UP(at) UP(node))

/* The work of a rank in order of launches: once, for all visits. */
static void list_launched(struct shown *s, u32 rank) {
  const struct sample_graph *g = s->g;
  u32 n = 0;
  SCOPED struct launched *all =
      memory_array(size_sum(g->base[rank + 1] - g->base[rank], 1), sizeof(*all));
  for (u32 i = g->base[rank]; i < g->base[rank + 1]; i++) {
    const struct node *node = &g->nodes[i];
    if (NODE_ON_DEVICE(node->kind) && node->launch != INDEX_NONE)
      all[n++] = (struct launched){g->nodes[node->launch].start, i};
    else if (node->queued && node->call != INDEX_NONE) /* before all others */
      all[n++] = (struct launched){INT64_MIN + node->call, i};
  }
  SORT(all, n, by_launch);
  for (u32 i = 0; i < n; i++)
    s->launched[g->base[rank] + i] = all[i].node;
  s->n_launched[rank] = n;
}

static u32 stream_of(const struct shown *s, u32 node) {
  return s->g->n_keys + s->stream[s->lane[node]];
}

static void put_first(u32 *last, u32 node) {
  memmove(last + 1, last, (LOOKED_BACK - 1) * sizeof(*last));
  *last = node;
}

/* Of each rank, in order of launches: visit() sees what was launched before. */
static void each_launched(struct shown *s, void (*visit)(struct shown *, u32)) {
  for (u32 rank = 0; rank < s->g->n_ranks; rank++) {
    memset(s->last, 0xff, 2 * (size_t)s->g->n_keys * sizeof(*s->last)); /* INDEX_NONE */
    for (u32 i = 0; i < s->n_launched[rank]; i++) {
      u32 node = s->launched[s->g->base[rank] + i];
      visit(s, node);
      put_first(s->last[s->g->nodes[node].key], node);
      put_first(s->last[stream_of(s, node)], node);
    }
  }
}

static void add_rule(struct shown *s, u32 key, u32 of, u32 from) {
  u32 back = INDEX_OF(s->last[of], LOOKED_BACK, one, *one == from);
  if (back >= LOOKED_BACK)
    return;
  u32 i = HASHED_OR_ADD(&s->rules, key, one, one->key == key && one->of == of && one->back == back,
                        (struct rule){.key = key, .of = of, .back = back});
  s->rules.at[i].shown++;
}

static void learn(struct shown *s, u32 n) {
  const struct sample_graph *g = s->g;
  const struct node *node = &g->nodes[n];
  if (!node->inferred || node->first_dep == node[1].first_dep)
    return;
  const u32 *from = LARGEST(&g->deps[node->first_dep], node[1].first_dep - node->first_dep, one,
                            true, (double)g->nodes[*one].end);
  add_rule(s, node->key, g->nodes[*from].key, *from);
  add_rule(s, node->key, stream_of(s, *from), *from);
}

/* Nothing that is recorded, or was inferred, held it up for so long. */
static bool waits_without_reason(const struct sample_graph *g, u32 n) {
  const struct node *node = &g->nodes[n];
  i64 launched = node->launch == INDEX_NONE ? g->slices[node->rank].begin : launched_at(g, node);
  return node->start - MAX(latest_end(g, n), launched) >= SHORTEST_WAIT;
}

static void doubt(struct shown *s, u32 n) {
  const struct node *nodes = s->g->nodes;
  bool waits = waits_without_reason(s->g, n);
  HASH_INDEX_EACH(&s->rules.index, nodes[n].key, i) {
    struct rule *rule = &s->rules.at[i];
    u32 from = s->last[rule->of][rule->back];
    bool explains = from != INDEX_NONE && nodes[from].end >= nodes[n].start - NEAR;
    rule->broken |= explains && nodes[from].end > nodes[n].start + ROUNDED;
    rule->shown += waits && explains;
    rule->left += waits && !explains;
  }
}

static bool holds(const struct rule *rule) {
  return !rule->broken && rule->shown >= LEAST_SHOWN && rule->shown > rule->left;
}

static bool waits_for(const struct shown *s, u32 n, u32 from) {
  const struct node *node = &s->g->nodes[n];
  if (s->lane[n] == s->lane[from])
    return true;
  for (u32 i = s->added.n; i-- > 0 && s->added.at[i].node == n;)
    if (s->added.at[i].from == from)
      return true;
  return ANY_NUMBER(node->first_dep, node[1].first_dep, i, s->g->deps[i] == from);
}

static void add_waits(struct shown *s, u32 n) {
  struct node *node = &s->g->nodes[n];
  HASH_INDEX_EACH(&s->rules.index, node->key, i) {
    const struct rule *rule = &s->rules.at[i];
    u32 from = s->last[rule->of][rule->back];
    if (!holds(rule) || from == INDEX_NONE || waits_for(s, n, from))
      continue;
    VECTOR_PUSH(&s->added, ((struct wait){n, from}));
    node->inferred |= !ANY_NUMBER(node->first_dep, node[1].first_dep, k,
                                  s->g->nodes[s->g->deps[k]].end > s->g->nodes[from].end);
  }
}

ORDER_BY(by_node, struct wait, UP(node) UP(from))

static void merge_deps(struct shown *s) {
  struct sample_graph *g = s->g;
  u32 n = g->nodes[g->n].first_dep, kept = 0, next = 0;
  u32 *deps = memory_array(size_sum(n, s->added.n), sizeof(*deps));
  SORT(s->added.at, s->added.n, by_node);
  for (u32 node = 0; node < g->n; node++) {
    u32 first = g->nodes[node].first_dep, end = g->nodes[node + 1].first_dep;
    g->nodes[node].first_dep = kept;
    for (u32 i = first; i < end; i++)
      deps[kept++] = g->deps[i];
    for (; next < s->added.n && s->added.at[next].node == node; next++)
      deps[kept++] = s->added.at[next].from;
  }
  g->nodes[g->n].first_dep = kept;
  free(g->deps);
  g->deps = deps;
}

void sample_graph_add_shown(struct sample_graph *g) {
  if (!ANY(g->nodes, g->n, one, one->inferred))
    return;
  SCOPED u32 *lane = memory_array(size_sum(g->n, 1), sizeof(*lane));
  SCOPED u32 *stream = memory_array(size_sum(g->n, 1), sizeof(*stream));
  SCOPED u32 *launched = memory_array(size_sum(g->n, 1), sizeof(*launched));
  SCOPED u32 *n_launched = memory_array(size_sum(g->n_ranks, 1), sizeof(*n_launched));
  SCOPED u32(*last)[LOOKED_BACK] = memory_array(size_product(2, g->n_keys), sizeof(*last));
  struct shown s = {.g = g,
                    .lane = lane,
                    .stream = stream,
                    .launched = launched,
                    .n_launched = n_launched,
                    .last = last};
  number_lanes(&s);
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    list_launched(&s, rank);
  each_launched(&s, learn);
  if (s.rules.n) {
    each_launched(&s, doubt);
    each_launched(&s, add_waits);
  }
  if (s.added.n)
    merge_deps(&s);
  FREE_EACH(&s, rules.at, rules.index.slots, added.at);
}
