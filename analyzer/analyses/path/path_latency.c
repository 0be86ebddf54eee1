/* SPDX-License-Identifier: MIT */
#include "analyses/path/path_graph.h"
#include "analyses/thresholds.h"
#include "base/statistics.h"

/* The work of a launch, if nothing before it on its stream held it up. */
static bool is_on_its_way(const struct node *nodes, u32 n, i64 *took) {
  const struct node *node = &nodes[n];
  if (!NODE_ON_DEVICE(node->kind) || node->launch == INDEX_NONE ||
      node[1].first_dep > node->first_dep)
    return false;
  i64 called = nodes[node->launch].end;
  *took = node->start - called;
  return *took >= 0 && (node->alone || nodes[n - 1].end <= called);
}

i64 typical_latency(const struct node *nodes, u32 from, u32 to) {
  double all[LATENCIES_LOOKED_AT];
  u32 n = 0, each = (to - from) / LATENCIES_LOOKED_AT + 1;
  for (u32 i = from; i < to && n < LATENCIES_LOOKED_AT; i++) {
    i64 took;
    if (!is_on_its_way(nodes, i, &took) || took > LONGEST_LATENCY)
      continue;
    all[n++] = (double)took;
    i += each - 1;
  }
  return n ? (i64)median_of(all, n) : 0;
}
