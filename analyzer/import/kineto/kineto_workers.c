/* SPDX-License-Identifier: MIT
 *
 * Collectives that a worker of the host runs, as gloo's do: which operator gave it to the worker,
 * and where the thread of the operator waits for it. PyTorch's profiler records neither.
 */
#include <errno.h>

#include "import/kineto/kineto.h"

/* A thread that does nothing while the collective runs, and goes on when it has ended, waits for
 * it. It goes on within this share of the pause, or this long after the end: it may get a core
 * late. */
#define WAKE_UP_SHARE 4
#define WAKE_UP_NS 200000

struct worker_search {
  struct kineto_trace *trace;
  u32 name;
  u32 next_op[UINT8_MAX + 1]; /* by kind of collective: item from which operators are looked for */
};

static const struct kineto_name *name_of(const struct worker_search *s, u32 item) {
  return &s->trace->names.list.at[s->trace->items.at[item].name];
}

static bool is_operator(const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_OP || item->kind == KINETO_ITEM_CALL;
}

/* Workers begin collectives of a kind in the order in which they got them. INDEX_NONE if it was
 * given to the worker before the recording began. */
static u32 find_operator(struct worker_search *s, u32 run) {
  u8 op = name_of(s, run)->op;
  u32 at = s->next_op[op];
  while (at < run && !(is_operator(&s->trace->items.at[at]) && name_of(s, at)->worker_op == op))
    at++;
  s->next_op[op] = at < run ? at + 1 : at;
  return at < run ? at : INDEX_NONE;
}

/* The time around the end of a collective in which the thread does nothing, or only waits. */
static bool find_pause(const struct worker_search *s, u32 caller, i64 ended,
                       struct interval *pause) {
  const struct kineto_item *first = &s->trace->items.at[caller];
  bool idle = true;
  *pause = (struct interval){first->end, INT64_MAX};
  for (u32 i = caller + 1; i < s->trace->items.n; i++) {
    const struct kineto_item *item = &s->trace->items.at[i];
    if (item->lane != first->lane || !(is_operator(item) || item->kind == KINETO_ITEM_RANGE))
      continue;
    if (item->start > ended) {
      pause->end = item->start < pause->end ? item->start : pause->end;
      break;
    }
    i64 known = item->end <= ended ? item->end : item->start;
    pause->start = known > pause->start ? known : pause->start;
    if (item->end <= ended)
      continue;
    pause->end = item->end < pause->end ? item->end : pause->end;
    idle = !is_operator(item) || name_of(s, i)->waits;
  }
  return idle && pause->end < INT64_MAX && pause->start < ended;
}

static void add_wait(struct worker_search *s, u32 run, u32 caller) {
  struct interval pause;
  i64 ended = s->trace->items.at[run].end;
  if (!find_pause(s, caller, ended, &pause))
    return;
  i64 late = pause.end - ended;
  if (late > WAKE_UP_NS && late > (pause.end - pause.start) / WAKE_UP_SHARE)
    return;
  VECTOR_PUSH(&s->trace->items,
              ((struct kineto_item){.start = pause.start,
                                    .end = pause.end,
                                    .name = s->name,
                                    .correlation = s->trace->items.at[run].correlation,
                                    .what = INDEX_NONE,
                                    .lane = s->trace->items.at[caller].lane,
                                    .kind = KINETO_ITEM_WORKER_WAIT}));
}

void kineto_find_worker_waits(struct kineto_trace *trace) {
  static const char text[] = "waiting for a collective";
  struct worker_search s = {.trace = trace};
  u32 n = trace->items.n, number = 0;
  for (u32 i = 0; i < n; i++) {
    const struct kineto_item *item = &trace->items.at[i];
    number = item->correlation > number ? item->correlation : number;
  }
  for (u32 i = 0; i < n; i++) {
    if (trace->items.at[i].kind != KINETO_ITEM_RANGE || !name_of(&s, i)->comm_worker)
      continue;
    u32 caller = find_operator(&s, i);
    if (caller == INDEX_NONE || number == UINT32_MAX)
      continue;
    s.name = kineto_name_of(&trace->names, (struct json_text){.at = text, .n = sizeof(text) - 1});
    trace->items.at[caller].kind = KINETO_ITEM_CALL;
    trace->items.at[caller].correlation = trace->items.at[i].correlation = ++number;
    add_wait(&s, i, caller);
  }
}
