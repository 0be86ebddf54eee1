/* SPDX-License-Identifier: MIT
 *
 * Which line gives a rank's GPU more to do than its peers'.
 */

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "base/checked_memory.h"
#include "base/statistics.h"

/* A line may have several sums, one for each way in which the trace names it. */
static double gpu_ms(const struct analysis *a, u32 rank, const struct line_sum *line) {
  const struct line_sums *sums = &a->line_sums[rank];
  double ns =
      TOTAL(double, sums->at, sums->n, one, line_sums_by_line(one, line) == 0 ? one->gpu_ns : 0);
  return ns_to_ms(ns) / line_steps_of(a, rank);
}

const char *line_of_longer_gpu_work(struct analysis *a, u32 rank, double least_ms,
                                    double *more_ms) {
  const struct line_sums *sums = &a->line_sums[rank];
  const struct line_sum *best = NULL;
  SCOPED double *peers = memory_array(size_sum(a->model->n_ranks, 1), sizeof(*peers));
  *more_ms = least_ms;
  FOR_EACH(sums->at, sums->n, sum) {
    double own = gpu_ms(a, rank, sum);
    if (!(own >= *more_ms))
      continue;
    u32 n = LIST_WHERE(peers, 0, a->model->n_ranks, peer, peer != rank && a->line_sums[peer].n,
                       gpu_ms(a, peer, sum));
    if (!n || !(own - median_of(peers, n) >= *more_ms))
      continue;
    best = sum;
    *more_ms = own - median_of(peers, n);
  }
  return best ? line_place(a, best->file, best->line, best->function) : NULL;
}
