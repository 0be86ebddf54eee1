/* SPDX-License-Identifier: MIT
 *
 * Where the host waits for the device without a call that says so: see host_spin.h.
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
    last = MAX(item->start, last);
    if (item->kind == KINETO_ITEM_CALL)
      return true;
  }
  return false;
}

static bool notifies(const struct kineto_trace *trace, const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_COMM_KERNEL &&
         comm_op_part(kineto_item_name(trace, item)->communication.op) == COMM_PART_NOTIFICATION;
}

/* A wait of the thread that launched an item, until that has ended. */
static void add_wait(struct kineto_trace *trace, u32 call, const struct interval *wait, u32 name) {
  const struct kineto_item *launch = &trace->items.at[call];
  struct kineto_item item = {.name = name,
                             .what = INDEX_NONE,
                             .kind = KINETO_ITEM_SPIN,
                             SAME(wait, start, end),
                             SAME(launch, lane, correlation)};
  VECTOR_PUSH(&trace->items, item);
}

static void find_spin(struct kineto_trace *trace, u32 call, i64 kernel_end) {
  struct interval pause;
  if (find_pause(trace, call, &pause) && host_spin_ends_with(&pause, kernel_end))
    add_wait(trace, call, &pause, kineto_number_of(&trace->names, HOST_SPIN_NAME));
}

/* The call that launched the copy then is short, and the wait begins behind it. */
static void find_blocking_copy(struct kineto_trace *trace, u32 call, struct interval copy) {
  struct kineto_item *launch = &trace->items.at[call];
  struct interval whole = {launch->start, launch->end};
  if (launch->kind != KINETO_ITEM_CALL ||
      kineto_item_name(trace, launch)->call != KINETO_CALL_MEMCPY ||
      !host_copy_blocks(&whole, &copy))
    return;
  launch->end = whole.start + 1;
  add_wait(trace, call, &(struct interval){launch->end, whole.end}, launch->name);
}

void kineto_find_spins(struct kineto_trace *trace) {
  SCOPED kineto_calls calls = kineto_calls_index(trace);
  u32 n = trace->items.n;
  FOR_EACH(trace->items.at, n, one) {
    const struct kineto_item item = *one;
    bool copies = item.kind == KINETO_ITEM_MEMCPY;
    u32 call =
        copies || notifies(trace, &item) ? kineto_call_of(&calls, item.correlation) : INDEX_NONE;
    if (call == INDEX_NONE)
      continue;
    if (copies)
      find_blocking_copy(trace, call, (struct interval){item.start, item.end});
    else
      find_spin(trace, call, item.end);
  }
}
