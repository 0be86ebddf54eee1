/* SPDX-License-Identifier: MIT
 *
 * How busy a GPU is, from the kernels of the newest ring chunks. Kernels of collectives do not
 * count: one that waits for another rank keeps its GPU busy without work.
 */
#include <math.h>

#include "base/sorting.h"
#include "live/live_process.h"

#define ENOUGH_NS 1000000000 /* windows are added up until they cover so much */

void live_gpu_window(struct live_process *process) {
  u32 n = process->spans.n;
  if (n == 0)
    return;
  struct interval *spans = process->spans.at;
  SORT(spans, n, by_i64);
  i64 from = process->spans_to == NS_UNKNOWN ? spans[0].start : process->spans_to;
  i64 to = from, busy = 0;
  FOR_EACH(spans, n, span) {
    i64 start = MAX(span->start, to);
    if (span->end <= start)
      continue;
    busy += span->end - start;
    to = span->end;
  }
  if (to <= from)
    return;
  process->windows[process->n_windows++ % LIVE_WINDOWS] = (struct live_window){from, to, busy};
  process->spans_to = to;
}

double live_gpu_share(const struct live_process *process, i64 *until) {
  i64 covered = 0, busy = 0;
  u32 kept = MIN(process->n_windows, LIVE_WINDOWS);
  *until = NS_UNKNOWN;
  for (u32 i = 0; i < kept && covered < ENOUGH_NS; i++) {
    const struct live_window *window =
        &process->windows[(process->n_windows - 1 - i) % LIVE_WINDOWS];
    *until = i == 0 ? window->to : *until;
    covered += window->to - window->from;
    busy += window->busy;
  }
  return covered > 0 ? (double)busy / (double)covered : NAN;
}
