/* SPDX-License-Identifier: MIT
 *
 * Collectives that a worker of the host runs, as gloo's do: which operator gave it to the worker,
 * and where the thread of the operator waits for it. PyTorch's profiler records neither.
 */

#include "import/kineto/kineto.h"

/* A thread that does nothing while the collective runs, and goes on when it has ended, waits for
 * it. It goes on within this share of the pause, or this long after the end: it may get a core
 * late. The worker may also get one late, and then records its end after the thread went on. */
#define WAKE_UP_SHARE 4
#define WAKE_UP_NS 200000

/* A pause that is so much shorter than the longest is none between two operators. */
#define SHORT_PAUSE 10

#define MOST_OPEN 16u
/* Items before a time: a function that began further back is not found. */
#define MOST_LOOKED_AT 4096u

struct worker_search {
  struct kineto_trace *trace;
  u32 name;
  u32 next_op[UINT8_MAX + 1]; /* by kind of collective: item from which operators are looked for */
};

static bool is_operator(const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_OP || item->kind == KINETO_ITEM_CALL;
}

/* Workers begin collectives of a kind in the order in which they got them. INDEX_NONE if it was
 * given to the worker before the recording began. */
static u32 find_operator(struct worker_search *s, u32 run) {
  u8 op = kineto_item_name(s->trace, &s->trace->items.at[run])->op;
  u32 at = s->next_op[op];
  while (at < run && !(is_operator(&s->trace->items.at[at]) &&
                       kineto_item_name(s->trace, &s->trace->items.at[at])->worker_op == op))
    at++;
  s->next_op[op] = at < run ? at + 1 : at;
  return at < run ? at : INDEX_NONE;
}

/* What a thread is known to do after it has called a collective. */
struct following {
  i64 ended;           /* the collective */
  i64 known;           /* until then the thread does something */
  i64 open[MOST_OPEN]; /* ends of ranges, which it then ends */
  u32 n_open;
  struct interval pause;
  struct interval around; /* the pause in which the collective ended, whenever the thread goes on */
};

/* Keeps the longest pause that ends when the collective does, but a later one that is not much
 * shorter. */
static void keep_pause(struct following *f, i64 start, i64 end) {
  if (start < f->ended && f->ended < end)
    f->around = (struct interval){start, end};
  i64 late = end > f->ended ? end - f->ended : f->ended - end, best = f->pause.end - f->pause.start;
  if (start < end && end - start > best / SHORT_PAUSE &&
      (late <= WAKE_UP_NS || late <= (end - start) / WAKE_UP_SHARE))
    f->pause = (struct interval){start, end};
}

static void pause_until(struct following *f, i64 time) {
  for (; f->n_open && f->open[f->n_open - 1] <= time; f->n_open--) {
    keep_pause(f, f->known, f->open[f->n_open - 1]);
    f->known = MAX(f->open[f->n_open - 1], f->known);
  }
  keep_pause(f, f->known, time);
  f->known = MAX(time, f->known);
}

/* Whether the innermost function at a time, which the item is later than, is one of PyTorch's that
 * does nothing but run operators and wait. */
static bool is_in_waiting_function(const struct worker_search *s, u32 lane, u32 before, i64 time) {
  u32 end = before > MOST_LOOKED_AT ? before - MOST_LOOKED_AT : 0;
  for (u32 i = before; i-- > end;) {
    const struct kineto_item *item = &s->trace->items.at[i];
    if (item->kind == KINETO_ITEM_PYTHON && item->lane == lane && item->start <= time &&
        item->end > time)
      return kineto_item_name(s->trace, &s->trace->items.at[i])->waits_inside;
  }
  return false;
}

/* When a thread goes on after the collective, at `end` at the latest: the next function of the
 * program's is something that it does. */
static i64 goes_on(const struct worker_search *s, u32 caller, i64 ended, i64 end) {
  const struct kineto_item *first = &s->trace->items.at[caller], *item = first,
                           *last = s->trace->items.at + s->trace->items.n;
  while (item < last && item->start < end &&
         !(item->lane == first->lane && item->kind == KINETO_ITEM_PYTHON && item->start > ended))
    item++;
  return item < last ? MIN(item->start, end) : end;
}

/* A time in which the thread does nothing, or only waits, after it has called a collective and
 * before that has ended. Where only PyTorch itself can wait, the thread may go on much later, as if
 * it had no core: until then it is no work of its own. */
static bool find_pause(const struct worker_search *s, u32 caller, i64 ended,
                       struct interval *pause) {
  const struct kineto_item *first = &s->trace->items.at[caller];
  struct following f = {.ended = ended, .known = first->end};
  u32 i = caller + 1;
  for (; i < s->trace->items.n && f.known < ended; i++) {
    const struct kineto_item *item = &s->trace->items.at[i];
    if (item->lane != first->lane || !(is_operator(item) || item->kind == KINETO_ITEM_RANGE))
      continue;
    pause_until(&f, item->start);
    if (item->kind == KINETO_ITEM_RANGE && f.n_open < MOST_OPEN)
      f.open[f.n_open++] = item->end;
    if (is_operator(item) && kineto_item_name(s->trace, &s->trace->items.at[i])->waits)
      pause_until(&f, item->end);
    if (is_operator(item) && item->end > f.known)
      f.known = item->end;
  }
  *pause = f.pause;
  while (i < s->trace->items.n && s->trace->items.at[i].start <= ended)
    i++;
  if (pause->end <= pause->start && f.around.end > ended &&
      is_in_waiting_function(s, first->lane, i, ended))
    *pause = (struct interval){f.around.start, goes_on(s, caller, ended, f.around.end)};
  return pause->end > pause->start;
}

/* The collective has ended when the thread goes on. */
static void add_wait(struct worker_search *s, u32 run, u32 caller) {
  struct interval pause;
  i64 ended = s->trace->items.at[run].end;
  if (!find_pause(s, caller, ended, &pause))
    return;
  if (pause.end < ended)
    s->trace->items.at[run].end = pause.end;
  VECTOR_PUSH(&s->trace->items,
              ((struct kineto_item){.start = pause.start,
                                    .end = pause.end,
                                    .name = s->name,
                                    .correlation = s->trace->items.at[run].correlation,
                                    .what = INDEX_NONE,
                                    .lane = s->trace->items.at[caller].lane,
                                    .kind = KINETO_ITEM_WORKER_WAIT}));
}

/* Once the worker has begun, a call has nothing to do but to return. The worker may take its core.
 */
static void give_over(struct kineto_item *call, const struct kineto_item *run) {
  call->end = MIN(run->start, call->end);
}

void kineto_find_worker_waits(struct kineto_trace *trace) {
  struct worker_search s = {.trace = trace};
  u32 n = trace->items.n, number = MOST_OF(u32, trace->items.at, n, item, item->correlation);
  for (u32 i = 0; i < n; i++) {
    if (trace->items.at[i].kind != KINETO_ITEM_RANGE ||
        !kineto_item_name(trace, &trace->items.at[i])->comm_worker)
      continue;
    u32 caller = find_operator(&s, i);
    if (caller == INDEX_NONE || number == UINT32_MAX)
      continue;
    s.name = kineto_number_of(&trace->names, "waiting for a collective");
    give_over(&trace->items.at[caller], &trace->items.at[i]);
    trace->items.at[caller].kind = KINETO_ITEM_CALL;
    trace->items.at[caller].correlation = trace->items.at[i].correlation = ++number;
    add_wait(&s, i, caller);
  }
}
