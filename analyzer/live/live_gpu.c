/* SPDX-License-Identifier: MIT
 *
 * How busy a GPU is, from the kernels of the newest ring chunks. Those that communicate do not
 * count: one that waits for another rank keeps its GPU busy without work.
 */
#include <math.h>

#include "base/intervals.h"
#include "live/live_process.h"

#define ENOUGH_NS 1000000000 /* windows are added up until they cover so much */

void live_gpu_window(struct live_process *process) {
  SCOPED_ARENA struct arena scratch = {0};
  struct intervals busy;
  u32 cursor = 0;
  intervals_unite(&scratch, process->spans.at, process->spans.n, &busy);
  if (busy.n == 0)
    return;
  i64 from = process->spans_to == NS_UNKNOWN ? busy.at[0].start : process->spans_to;
  i64 to = busy.at[busy.n - 1].end;
  if (to <= from)
    return;
  process->windows[process->n_windows++ % LIVE_WINDOWS] =
      (struct live_window){from, to, intervals_covered(&busy, &cursor, from, to)};
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
