/* SPDX-License-Identifier: MIT
 *
 * Operations: their order, their computed times, and their effects when they are due.
 */
#include <stdlib.h>

#include "clock.h"
#include "order.h"
#include "standin.h"

static const struct sim_activity *activity;
static uint64_t last_id;
int64_t sim_progressed_to;
uint64_t sim_node_launched;

void sim_activity_set(const struct sim_activity *table) {
  activity = table;
}

struct sim_op *sim_op_new(struct CUstream_st *stream, enum sim_kind kind,
                          const struct sim_work *work) {
  static const struct sim_work nothing;
  struct sim_op *op = calloc(1, sizeof(*op));
  if (!op)
    abort();
  op->stream = stream;
  op->kind = kind;
  op->work = work ? work : &nothing;
  op->references = 1;
  op->id = ++last_id;
  op->node = sim_node_launched;
  return op;
}

struct sim_op *sim_op_keep(struct sim_op *op) {
  if (op)
    op->references++;
  return op;
}

static void release_dependencies(struct sim_op *op) {
  for (unsigned i = 0; i < op->n_after; i++)
    sim_op_release(op->after[i]);
  free(op->after);
  op->after = NULL;
  op->n_after = 0;
}

void sim_op_release(struct sim_op *op) {
  if (!op || --op->references)
    return;
  release_dependencies(op);
  if (op->work->drop)
    op->work->drop(op);
  free(op->waits_for);
  free(op);
}

static void add_dependency(struct sim_op *op, struct sim_op *other) {
  if (!other || other->done)
    return;
  op->after = realloc(op->after, (op->n_after + 1) * sizeof(*op->after));
  if (!op->after)
    abort();
  op->after[op->n_after++] = sim_op_keep(other);
}

void sim_op_after(struct sim_op *op, struct sim_op *other) {
  if (!other)
    return;
  add_dependency(op, other);
  op->waits_for = realloc(op->waits_for, (op->n_waits_for + 1) * sizeof(*op->waits_for));
  if (!op->waits_for)
    abort();
  op->waits_for[op->n_waits_for++] = other->id;
}

/* The legacy default stream and the other streams of its device wait for each other, except for
 * non-blocking streams. */
static void order_against_default_stream(struct sim_op *op) {
  struct CUstream_st *own = op->stream;
  if (own->flags & cudaStreamNonBlocking)
    return;
  for (struct CUstream_st *other = sim_streams(); other; other = other->next)
    if (other != own && other->device == own->device && !(other->flags & cudaStreamNonBlocking) &&
        (own->legacy || other->legacy))
      sim_op_after(op, other->last);
}

void sim_enqueue(struct sim_op *op) {
  struct CUstream_st *stream = op->stream;
  op->launched = clock_now();
  order_against_default_stream(op);
  op->previous = stream->last ? stream->last->id : 0;
  add_dependency(op, stream->last);
  sim_op_release(stream->last);
  stream->last = sim_op_keep(op);
  if (stream->tail)
    stream->tail->next = op;
  else
    stream->head = op;
  stream->tail = op;
  if (!stream->unsettled)
    stream->unsettled = op;
  sim_progress();
  sim_scheduler_nudge();
}

/* False while an operation that it waits for is not settled. Events and waits have no launch
 * latency and no gap. */
static bool compute_start(struct sim_op *op) {
  bool runs = op->kind != SIM_EVENT && op->kind != SIM_WAIT;
  int64_t start = op->launched + (runs ? sim_settings.launch_ns : 0);
  for (unsigned i = 0; i < op->n_after; i++) {
    const struct sim_op *other = op->after[i];
    if (!other->settled)
      return false;
    int64_t ready = other->end + (runs ? sim_settings.gap_ns : 0);
    if (ready > start)
      start = ready;
  }
  op->start = start;
  return true;
}

static bool settle(struct sim_op *op) {
  if (!op->start && !compute_start(op))
    return false;
  if (op->work->settle) {
    if (!op->work->settle(op))
      return false;
  } else {
    op->end = op->start + op->duration;
  }
  op->settled = true;
  sim_log_op(op);
  return true;
}

static bool settle_stream(struct CUstream_st *stream) {
  bool changed = false;
  while (stream->unsettled && settle(stream->unsettled)) {
    stream->unsettled = stream->unsettled->next;
    changed = true;
  }
  return changed;
}

static bool dependencies_are_done(struct sim_op *op) {
  for (unsigned i = 0; i < op->n_after; i++)
    if (!op->after[i]->done)
      return false;
  return true;
}

/* Begins or finishes the head of a stream if it is due. True if it finished. */
static bool run_head(struct CUstream_st *stream, int64_t now) {
  struct sim_op *op = stream->head;
  if (!op->begun) {
    if (!op->start || now < op->start || !dependencies_are_done(op))
      return false;
    if (op->work->begin && !op->work->begin(op))
      return false;
    op->begun = true;
    release_dependencies(op);
  }
  if (!op->settled || now < op->end)
    return false;
  if (op->work->finish) {
    bool finished;
    if (op->work->unlocked) {
      stream->busy = true;
      sim_unlock();
      finished = op->work->finish(op);
      sim_lock();
      stream->busy = false;
    } else {
      finished = op->work->finish(op);
    }
    if (!finished)
      return false;
  }
  op->done = true;
  if (activity && activity->op)
    activity->op(op);
  stream->head = op->next;
  if (!stream->head)
    stream->tail = NULL;
  sim_op_release(op);
  return true;
}

bool sim_progress(void) {
  bool changed = false, again;
  int64_t now = sim_progressed_to = clock_now();
  do {
    again = false;
    for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next) {
      again |= settle_stream(stream);
      while (stream->head && !stream->busy && run_head(stream, now))
        again = true;
    }
    changed |= again;
  } while (again);
  if (changed)
    sim_wake_waiters();
  return changed;
}

/* Operations without effects need no wake-up of the thread: a query or wait completes them. */
int64_t sim_next_due(void) {
  int64_t due = SIM_FOREVER;
  for (struct CUstream_st *stream = sim_streams(); stream; stream = stream->next)
    for (struct sim_op *op = stream->busy ? NULL : stream->head; op; op = op->next) {
      int64_t at = SIM_FOREVER;
      if (op->work->begin && !op->begun && op->start)
        at = op->start;
      else if (op->work->finish && op->settled)
        at = op->end;
      if (at > sim_progressed_to && at < due)
        due = at;
      if (op->work->begin || op->work->finish || !op->settled)
        break;
    }
  return due;
}

const struct sim_activity *sim_activity(void) {
  return activity;
}
