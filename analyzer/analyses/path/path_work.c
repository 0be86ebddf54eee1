/* SPDX-License-Identifier: MIT
 *
 * Of what work the samples consist: by name, and by rank.
 */
#include "analyses/path/path_replay.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "base/sorting.h"
#include "base/vector.h"

ORDER_BY(by_name_and_kind, struct work_of_name, UP(label) UP(kind))

void replay_names(const struct analysis *a, struct work_of_name **works, u32 *n) {
  VECTOR(struct work_of_name) all = {0};
  FOR_EACH(a->graph->replays, a->graph->n_samples, replay) {
    const struct replay *r = *replay;
    for (u32 key = HOST_KEYS; r && key < r->g->n_keys; key++) {
      if (r->g->node_of_key[key] == INDEX_NONE)
        continue;
      const struct node *node = &r->g->nodes[r->g->node_of_key[key]];
      struct work_of_name work = {.label = node->label, .kind = node->kind};
      for (u32 rank = 0; rank < r->g->n_ranks; rank++)
        work.ns += r->peers.work[(size_t)key * r->g->n_ranks + rank];
      if (node->kind != NODE_BLOCKED)
        VECTOR_PUSH(&all, work);
    }
  }
  *n = SORT_AND_JOIN(all.at, all.n, by_name_and_kind, sum, more, sum->ns += more->ns);
  *works = all.at;
}

void replay_excess(const struct analysis *a, double *excess_ms) {
  const struct graph *graph = a->graph;
  u32 steps = 0;
  memset(excess_ms, 0, a->model->n_ranks * sizeof(double));
  for (u32 s = 0; graph && graph->replays && s < graph->n_samples; s++) {
    const struct replay *r = graph->replays[s];
    if (!r || !graph->outcomes[s].valid)
      continue;
    steps += graph->samples[s].n;
    for (u32 key = 0; key < r->g->n_keys; key++)
      for (u32 rank = 0; rank < r->g->n_ranks; rank++) {
        size_t at = (size_t)key * r->g->n_ranks + rank;
        excess_ms[rank] += (1 - r->peers.as_peers[at]) * r->peers.work[at] / 1e6;
      }
  }
  for (u32 rank = 0; steps && rank < a->model->n_ranks; rank++)
    excess_ms[rank] /= steps;
}
