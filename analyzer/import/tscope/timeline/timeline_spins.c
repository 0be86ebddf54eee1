/* SPDX-License-Identifier: MIT
 *
 * Where the host waits for the device without a call that says so: see host_spin.h.
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

/* A wait of the thread that launched a device span, until that has ended. */
static void add_wait(struct timeline_build *build, u32 device, struct interval when, u32 name) {
  u32 launch = build->spans.at[device].launch;
  struct span wait = timeline_span(SPAN_SYNC, when, name, build->spans.at[launch].lane);
  wait.category = TSCOPE_SYNC_STREAM;
  wait.launch = device;
  timeline_add_span(build, &wait, &(struct span_facts){.stream = TSCOPE_NO_STREAM});
}

static void find_spin(struct timeline_build *build, u32 kernel) {
  const struct span *span = &build->spans.at[kernel];
  struct interval pause = pause_after(build, span->launch);
  if (host_spin_ends_with(&pause, span->end))
    add_wait(build, kernel, pause, vocabulary_name(build, NAMES_OF_CALLS + 5));
}

/* The call that launched the copy then is short, and the wait begins behind it. */
static void find_blocking_copy(struct timeline_build *build, u32 copy) {
  const struct span *device = &build->spans.at[copy];
  struct span *launch = &build->spans.at[device->launch];
  struct interval whole = {launch->start, launch->end};
  if (launch->kind != SPAN_LAUNCH || build->facts.at[device->launch].work != WORK_MEMCPY ||
      !host_copy_blocks(&whole, &(struct interval){device->start, device->end}))
    return;
  launch->end = whole.start + 1;
  add_wait(build, copy, (struct interval){launch->end, whole.end}, launch->name);
}

void timeline_add_spins(struct timeline_build *build) {
  u32 n = build->spans.n;
  for (u32 i = 0; i < n; i++) {
    const struct span *span = &build->spans.at[i];
    if (span->kind == SPAN_MEMCPY && span->launch != INDEX_NONE)
      find_blocking_copy(build, i);
    else if (notifies(span))
      find_spin(build, i);
  }
  if (build->spans.n > n)
    timeline_sort(build);
}
