/* SPDX-License-Identifier: MIT
 *
 * Where the host waits for a kernel without a call: see host_spin.h.
 */
#include "import/tscope/timeline/timeline_build.h"
#include "kernels/communication.h"
#include "model/host_spin.h"

static bool notifies(const struct span *span) {
  return span->kind == SPAN_COLLECTIVE && span->launch != INDEX_NONE &&
         comm_op_part(span->category) == COMM_PART_NOTIFICATION;
}

static bool is_call(const struct span *span) {
  return span->kind == SPAN_LAUNCH || span->kind == SPAN_COLL_CALL || span->kind == SPAN_SYNC ||
         span->kind == SPAN_COMM_WAIT;
}

/* From the end of a call to the thread's next call; empty if it makes none. */
static struct interval pause_after(const struct timeline_build *build, u32 call) {
  const struct span *spans = build->spans.at;
  i64 end = spans[call].end;
  for (u32 i = call + 1; i < build->spans.n; i++)
    if (spans[i].lane == spans[call].lane && is_call(&spans[i]) && spans[i].start >= end)
      return (struct interval){end, spans[i].start};
  return (struct interval){end, end};
}

void timeline_add_spins(struct timeline_build *build) {
  u32 n = build->spans.n;
  for (u32 i = 0; i < n; i++) {
    const struct span kernel = build->spans.at[i];
    if (!notifies(&kernel))
      continue;
    struct interval pause = pause_after(build, kernel.launch);
    if (!host_spin_ends_with(&pause, kernel.end))
      continue;
    struct span spin = timeline_span(SPAN_SYNC, pause, vocabulary_name(build, NAMES_OF_CALLS + 5),
                                     build->spans.at[kernel.launch].lane);
    spin.launch = i;
    timeline_add_span(build, &spin, &(struct span_facts){.stream = TSCOPE_NO_STREAM});
  }
  if (build->spans.n > n)
    timeline_sort(build);
}
