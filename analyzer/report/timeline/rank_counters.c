/* SPDX-License-Identifier: MIT
 *
 * Numbers over time beside a rank's lanes: what its allocator holds, how many launches are ahead of
 * each stream, how fast it copies, and in how many collectives it waits for others. A value is
 * given where it changes, and at the beginning of each chosen step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "report/timeline/rank_lanes.h"

const char *const shown_unit_words[] = {
#define U(name, text) text,
    SHOWN_UNITS(U)
#undef U
};

struct change {
  i64 time;
  double by;
};

/* A counter in the making: values come in order of time. */
struct counting {
  const struct rank_lanes *lanes;
  VECTOR(struct shown_value) values;
  u32 window;
  double before; /* the value until now */
  bool known, inside;
};

/* Of several values at one instant the last stays. */
static void put_value(struct counting *c, i64 time, double value) {
  struct shown_value *last = c->values.n ? &c->values.at[c->values.n - 1] : NULL;
  if (last && last->time >= time) {
    last->value = value;
    return;
  }
  VECTOR_PUSH(&c->values, (struct shown_value){time, value});
}

/* Goes on to the window that an instant is in, or that is next after it. */
static void advance_to(struct counting *c, i64 time) {
  const struct rank_lanes *l = c->lanes;
  while (c->window < l->n_windows) {
    const struct rank_window *window = &l->windows[c->window];
    if (!c->inside && time >= rank_window_begin(window)) {
      c->inside = true;
      if (c->known)
        put_value(c, rank_window_begin(window), c->before);
    }
    if (time < rank_window_end(window))
      return;
    c->inside = false;
    c->window++;
  }
}

static void count_value(struct counting *c, i64 time, double value) {
  if (c->known && value == c->before)
    return;
  advance_to(c, time);
  if (c->inside)
    put_value(c, time, value);
  c->before = value;
  c->known = true;
}

/* Hands the counter over, if it has any value. */
static void finish_counter(struct rank_lanes *l, struct counting *c, struct shown_counter counter) {
  advance_to(c, INT64_MAX);
  counter.at = VECTOR_KEPT(&c->values, &l->arena);
  counter.n = c->values.n;
  if (counter.n)
    VECTOR_PUSH(&l->counters, counter);
  free(c->values.at);
}

/* Up first, so that it never falls below 0. */
ORDER_BY(by_time, struct change, UP(time) DOWN(by))

/* Changes in order of time. */
static void count_changes(struct rank_lanes *l, struct change *changes, u32 n,
                          struct shown_counter counter) {
  struct counting c = {.lanes = l};
  double value = 0;
  count_value(&c, INT64_MIN, 0);
  for (u32 i = 0; i < n; i++) {
    value += changes[i].by;
    if (i + 1 == n || changes[i + 1].time != changes[i].time)
      count_value(&c, changes[i].time, value);
  }
  finish_counter(l, &c, counter);
}

/* Queues: calls begun, less their work begun. */

static bool reaches_a_window(const struct rank_lanes *l, i64 from, i64 to) {
  /* the first that ends later */
  u32 low = FIRST_NOT(0, l->n_windows, i, rank_window_end(&l->windows[i]) <= from);
  return low < l->n_windows && rank_window_begin(&l->windows[low]) < to;
}

/* When work of one lane was called, and when it began. */
struct queue {
  i64 *called, *begun;
  u32 n;
};

/* Work that was queued at any time in the chosen steps: without the rest, the depth there is the
 * same. NS_UNKNOWN for all other. */
static i64 queued_since(const struct rank_lanes *l, const struct span *span) {
  if (!SPAN_ON_DEVICE(span->kind) || span->launch == INDEX_NONE)
    return NS_UNKNOWN;
  i64 called = l->timeline->spans[span->launch].start;
  bool queued = called < span->start && reaches_a_window(l, called, span->start);
  return queued ? called : NS_UNKNOWN;
}

/* Of each lane, in the order in which work began; in `times`, which has room for all. */
static void fill_queues(const struct rank_lanes *l, struct queue *queues, i64 *times) {
  const struct timeline *t = l->timeline;
  FOR_EACH(t->spans, t->n_spans, one)
    queues[one->lane].n += SPAN_ON_DEVICE(one->kind);
  FOR_EACH_CHANGED(queues, t->n_lanes, item) {
    item->called = times;
    item->begun = times + item->n;
    times += 2 * (size_t)item->n;
    item->n = 0;
  }
  FOR_EACH(t->spans, t->n_spans, span) {
    struct queue *queue = &queues[span->lane];
    i64 called = queued_since(l, span);
    if (called == NS_UNKNOWN)
      continue;
    queue->called[queue->n] = called;
    queue->begun[queue->n++] = span->start;
  }
}

/* Up first, so that it never falls below 0. */
static u32 merge_queue(const struct queue *queue, struct change *changes) {
  u32 n = 0, up = 0;
  FOR_EACH(queue->begun, queue->n, one) {
    for (; up < queue->n && queue->called[up] <= *one; up++)
      changes[n++] = (struct change){queue->called[up], 1};
    changes[n++] = (struct change){*one, -1};
  }
  return n;
}

static void count_queues(struct rank_lanes *l) {
  const struct timeline *t = l->timeline;
  if (!t->on_gpu)
    return;
  SCOPED struct queue *queues = memory_zeroed(size_sum(t->n_lanes, 1), sizeof(*queues));
  SCOPED i64 *times = memory_array(size_sum(size_product(2, t->n_spans), 1), sizeof(*times));
  SCOPED struct change *changes =
      memory_array(size_sum(size_product(2, t->n_spans), 1), sizeof(*changes));
  fill_queues(l, queues, times);
  for (u32 lane = 0; lane < t->n_lanes; lane++) {
    u32 shown = l->lane_of[2 * lane] ? l->lane_of[2 * lane] : l->lane_of[2 * lane + 1];
    if (!queues[lane].n)
      continue;
    SORT(queues[lane].called, queues[lane].n, by_i64);
    struct shown_counter counter = {.name =
                                        arena_printf(&l->arena, "queue of %s", t->lanes[lane].name),
                                    .unit = SHOWN_UNIT_LAUNCHES,
                                    .lane = shown ? shown - 1 : INDEX_NONE};
    count_changes(l, changes, merge_queue(&queues[lane], changes), counter);
  }
}

/* Waiting for the other ranks of a collective. */

static void count_waits(struct rank_lanes *l) {
  const struct shown_rank *shown = &l->shown;
  const struct model *model = l->analysis->model;
  SCOPED struct change *changes =
      memory_array(size_sum(size_product(2, shown->n_spans), 1), sizeof(*changes));
  u32 n = 0;
  FOR_EACH(shown->spans, shown->n_spans, span) {
    i64 transfer = span->arrival < model->n_arrivals
                       ? arrival_transfer_begin(l->analysis, &model->arrivals[span->arrival])
                       : NS_UNKNOWN;
    if (transfer == NS_UNKNOWN || transfer <= span->start)
      continue;
    changes[n++] = (struct change){span->start, 1};
    changes[n++] = (struct change){transfer, -1};
  }
  struct shown_counter counter = {
      .name = "waiting for other ranks", .unit = SHOWN_UNIT_CALLS, .lane = INDEX_NONE};
  SORT(changes, n, by_time);
  if (n)
    count_changes(l, changes, n, counter);
}

/* Of one direction: the bytes of each copy, spread evenly over the time that it took. */
static void count_bandwidth(struct rank_lanes *l, const char *direction, struct change *changes) {
  const struct shown_rank *shown = &l->shown;
  u32 n = 0;
  FOR_EACH(shown->spans, shown->n_spans, span) {
    if (span->kind != SPAN_MEMCPY || span->bytes <= 0 || span->end <= span->start ||
        strcmp(span->category, direction) != 0)
      continue;
    double rate = round((double)span->bytes / (double)(span->end - span->start) * 1e9);
    changes[n++] = (struct change){span->start, rate};
    changes[n++] = (struct change){span->end, -rate};
  }
  struct shown_counter counter = {.name = arena_printf(&l->arena, "copying, %s", direction),
                                  .unit = SHOWN_UNIT_SPEED,
                                  .lane = INDEX_NONE};
  SORT(changes, n, by_time);
  count_changes(l, changes, n, counter);
}

static void count_memcpys(struct rank_lanes *l) {
  const struct shown_rank *shown = &l->shown;
  SCOPED VECTOR(const char *) directions = {NULL};
  u32 copies = 0;
  FOR_EACH(shown->spans, shown->n_spans, span) {
    if (span->kind != SPAN_MEMCPY || span->bytes <= 0)
      continue;
    u32 at = 0;
    while (at < directions.n && strcmp(directions.at[at], span->category) != 0)
      at++;
    if (at == directions.n)
      VECTOR_PUSH(&directions, span->category);
    copies++;
  }
  SCOPED struct change *changes =
      memory_array(size_sum(size_product(2, copies), 1), sizeof(*changes));
  FOR_EACH(directions.at, directions.n, direction)
    count_bandwidth(l, *direction, changes);
}

static void count_history(struct rank_lanes *l, const struct memory_history *history) {
  struct counting allocated = {.lanes = l}, reserved = {.lanes = l};
  FOR_EACH(history->events, history->n_events, event) {
    if (event->time == NS_UNKNOWN)
      continue;
    if (event->allocated >= 0)
      count_value(&allocated, event->time, (double)event->allocated);
    if (event->reserved >= 0)
      count_value(&reserved, event->time, (double)event->reserved);
  }
  struct shown_counter counter = {.unit = SHOWN_UNIT_BYTES, .lane = INDEX_NONE};
  const char *where =
      history->device < 0 ? "host" : arena_printf(&l->arena, "device %d", history->device);
  counter.name = arena_printf(&l->arena, "memory allocated, %s", where);
  finish_counter(l, &allocated, counter);
  counter.name = arena_printf(&l->arena, "memory reserved, %s", where);
  finish_counter(l, &reserved, counter);
}

/* Recordings on a clock of their own cannot be put beside the rest; shown_choose() reports that.
 * What cannot be read is left out here, as in the analysis. */
static void count_memory(struct rank_lanes *l) {
  const struct model *model = l->analysis->model;
  FOR_EACH(model->memories, model->n_memories, origin) {
    SCOPED_ARENA struct arena arena = {0};
    struct memory_history history = {0};
    if (origin->on_axis && origin->rank == l->shown.number &&
        origin->read(model, origin, &arena, &history) == 0)
      count_history(l, &history);
  }
}

static void hand_over_counters(struct rank_lanes *l) {
  l->shown.counters = l->counters.at;
  l->shown.n_counters = l->counters.n;
}

void rank_counters_build(struct rank_lanes *l) {
  count_memory(l);
  count_queues(l);
  count_memcpys(l);
  count_waits(l);
  hand_over_counters(l);
}

int rank_counters_of_memory(struct rank_lanes *l, const struct memory_origin *origin) {
  SCOPED_ARENA struct arena arena = {0};
  struct memory_history history = {0};
  int error = origin->read(l->analysis->model, origin, &arena, &history);
  l->windows = arena_alloc(&l->arena, sizeof(*l->windows));
  if (!error) {
    struct rank_window whole = {INT64_MIN + 1, INT64_MAX, INT64_MIN + 1, INT64_MAX, -1};
    l->windows[l->n_windows++] = whole;
    count_history(l, &history);
    hand_over_counters(l);
  }
  return error;
}
