/* SPDX-License-Identifier: MIT
 *
 * Where the host waits for a kernel without a call: see host_spin.h.
 */
#include <stdlib.h>

#include "base/checked_memory.h"
#include "import/kineto/kineto.h"
#include "model/host_spin.h"

static bool is_host(const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_OP || item->kind == KINETO_ITEM_RANGE ||
         item->kind == KINETO_ITEM_CALL || item->kind == KINETO_ITEM_COMMS;
}

/* The longest pause of a thread between a call and its next call of the runtime. False if it makes
 * no further call. */
static bool find_pause(const struct kineto_trace *trace, u32 call, struct interval *pause) {
  const struct kineto_item *launch = &trace->items.at[call];
  i64 last = launch->end;
  *pause = (struct interval){last, last};
  for (u32 i = call + 1; i < trace->items.n; i++) {
    const struct kineto_item *item = &trace->items.at[i];
    if (item->lane != launch->lane || !is_host(item))
      continue;
    if (item->start - last > pause->end - pause->start)
      *pause = (struct interval){last, item->start};
    last = item->start > last ? item->start : last;
    if (item->kind == KINETO_ITEM_CALL)
      return true;
  }
  return false;
}

static bool notifies(const struct kineto_trace *trace, const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_COMM_KERNEL &&
         comm_op_part(trace->names.list.at[item->name].communication.op) == COMM_PART_NOTIFICATION;
}

void kineto_find_spins(struct kineto_trace *trace) {
  static const char text[] = "waiting for what a kernel writes";
  const struct json_text words = {.at = text, .n = sizeof(text) - 1};
  SCOPED kineto_calls calls = kineto_calls_index(trace);
  u32 n = trace->items.n;
  for (u32 i = 0; i < n; i++) {
    if (!notifies(trace, &trace->items.at[i]))
      continue;
    struct kineto_item kernel = trace->items.at[i];
    struct interval pause;
    u32 call = kineto_call_of(&calls, kernel.correlation);
    if (call == INDEX_NONE || !find_pause(trace, call, &pause) ||
        !host_spin_ends_with(&pause, kernel.end))
      continue;
    u32 name = kineto_name_of(&trace->names, words);
    VECTOR_PUSH(&trace->items, ((struct kineto_item){.start = pause.start,
                                                     .end = pause.end,
                                                     .name = name,
                                                     .correlation = kernel.correlation,
                                                     .what = INDEX_NONE,
                                                     .lane = trace->items.at[call].lane,
                                                     .kind = KINETO_ITEM_SPIN}));
  }
}
