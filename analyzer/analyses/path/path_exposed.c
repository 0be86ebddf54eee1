/* SPDX-License-Identifier: MIT
 *
 * How much communication a replay leaves that compute does not hide.
 */
#include <stdlib.h>

#include "analyses/path/path_run.h"
#include "base/checked_memory.h"
#include "base/intervals.h"
#include "base/sorting.h"
#include "model/phase_times.h"

static bool is_compute(const struct sample_graph *g, const struct node *node) {
  return node->kind == NODE_KERNEL ||
         (!g->slices[node->rank].on_gpu && node->kind == NODE_HOST && phase_computes(node->phase));
}

/* The union of a rank's work of one class, as it was replayed. */
static void unite(const struct run *run, u32 rank, bool compute, struct interval *scratch,
                  struct intervals *out) {
  const struct sample_graph *g = run->r->g;
  u32 n = LIST_WHERE(scratch, g->base[rank], g->base[rank + 1], i,
                     compute ? is_compute(g, &g->nodes[i]) : g->nodes[i].kind == NODE_COLLECTIVE,
                     ((struct interval){run_start(run, i), run_end(run, i)}));
  SORT(scratch, n, by_i64);
  out->n = 0;
  FOR_EACH(scratch, n, each)
    intervals_append(out, each->start, each->end);
}

i64 run_exposed_time(const struct run *run) {
  const struct sample_graph *g = run->r->g;
  u32 most = MOST_OF(u32, g->base, g->n_ranks, first, first[1] - *first);
  SCOPED struct interval *scratch = memory_array(size_sum(most, 1), sizeof(*scratch));
  SCOPED struct intervals compute = {memory_array(size_sum(most, 1), sizeof(*compute.at)), 0};
  SCOPED struct intervals comm = {memory_array(size_sum(most, 1), sizeof(*comm.at)), 0};
  i64 exposed = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    u32 cursor = 0;
    unite(run, rank, true, scratch, &compute);
    unite(run, rank, false, scratch, &comm);
    FOR_EACH(comm.at, comm.n, one)
      exposed += one->end - one->start - intervals_covered(&compute, &cursor, one->start, one->end);
  }
  return exposed;
}
