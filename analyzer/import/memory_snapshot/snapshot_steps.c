/* SPDX-License-Identifier: MIT */
#include "import/memory_snapshot/memory_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/period.h"
#include "base/sorting.h"
#include "base/vector.h"

#define LEAST_STEPS 2u
#define MOST_KEPT 0.2 /* left by a step, as a share; layers of a forward pass leave more */

typedef VECTOR(i64) instants;

/* The times, in ns, of annotations of one stage whose names begin with that text. */
static void list_annotations(const struct value *annotations, const struct memory_history *history,
                             const char *stage, const char *name, instants *list) {
  for (u32 i = 0; i < value_count(annotations); i++) {
    const struct value *one = value_item(annotations, i);
    const char *its_stage = value_text(value_get(one, "stage"));
    const char *its_name = value_text(value_get(one, "name"));
    i64 device = history->device, time = 0;
    value_integer(value_get(one, "device"), &device);
    if (!its_stage || strcmp(its_stage, stage) != 0 || !text_starts_with(its_name, name) ||
        device != history->device || !value_integer(value_get(one, "time_us"), &time) ||
        time <= 0 || time > INT64_MAX / 1000)
      continue;
    VECTOR_PUSH(list, time * 1000);
  }
  SORT(list->at, list->n, by_i64);
}

/* How many of the instants, which ascend, are not later than `time`. */
static u32 count_passed(const instants *list, i64 time) {
  return FIRST_NOT(0, list->n, i, list->at[i] <= time);
}

/* Steps that begin or end at the instants. */
static void number_by_time(struct memory_history *history, const instants *list, bool begins) {
  FOR_EACH_CHANGED(history->events, history->n_events, event) {
    if (event->time == NS_UNKNOWN)
      continue;
    i32 step = (i32)count_passed(list, event->time) - (begins ? 1 : 0);
    event->step = step < (i32)list->n ? step : -1;
  }
  history->n_steps = list->n;
}

/* What a period of allocations leaves allocated, as a share of what it allocates. Layers of a
 * forward pass repeat like steps, but in training they leave most of it allocated: their
 * activations. */
static double kept_share(const struct memory_history *history) {
  double allocated = 0;
  i64 from = MEMORY_UNKNOWN, to = 0;
  FOR_EACH(history->events, history->n_events, event) {
    if (event->step < 0)
      continue;
    from = from == MEMORY_UNKNOWN ? event->allocated : from;
    to = event->allocated;
    allocated += event->kind == MEMORY_ALLOC ? (double)event->bytes : 0;
  }
  return allocated > 0 ? ((double)to - (double)from) / allocated : 0;
}

/* Whether training steps were recorded, and not only one pass: an optimizer and a backward pass
 * exist only in training. */
static bool has_training(const struct memory_history *history) {
  return ANY(history->sources, history->n_sources, one,
             one->category == ALLOCATION_OPTIMIZER || one->category == ALLOCATION_BACKWARD ||
                 one->category == ALLOCATION_GRADIENTS);
}

/* A step ends with the last allocation of an uninterrupted run of the optimizer's allocations. */
static void number_by_optimizer(struct memory_history *history) {
  i32 step = 0;
  bool optimizing = false;
  u32 last = 0; /* index of the event after the optimizer's last */
  for (u32 i = 0; i < history->n_events; i++) {
    struct memory_event *event = &history->events[i];
    if (event->kind == MEMORY_ALLOC) {
      bool optimizers = memory_source_of(history, event->source)->category == ALLOCATION_OPTIMIZER;
      step += optimizing && !optimizers;
      optimizing = optimizers;
      last = optimizing ? i + 1 : last;
    }
    event->step = step;
  }
  history->n_steps = (u32)step + optimizing;
  for (u32 i = last; i < history->n_events; i++)
    if (history->events[i].step >= (i32)history->n_steps)
      history->events[i].step = -1;
}

/* The outermost call of a module's forward() in which the event allocates, with its line; 0 if it
 * is in none. */
static u32 outermost_forward(const struct memory_history *history,
                             const struct memory_event *event) {
  u32 found = 0, frame = event->stack < history->n_frames ? event->stack : 0;
  for (; frame; frame = history->frames[frame].caller)
    if (text_ends_with(history->frames[frame].name, " (forward)"))
      found = frame;
  return found;
}

static bool is_allocation_of_step(const struct memory_event *event) {
  return event->kind == MEMORY_ALLOC && event->step >= 0;
}

/* Whether most of what repeats allocates at one line of a model's forward(): these are its layers,
 * whatever they leave allocated. A step also allocates elsewhere, for the input or for the loss. */
static bool repeats_inside_forward(const struct memory_history *history) {
  SCOPED u32 *counts = memory_zeroed(size_sum(history->n_frames, 1), sizeof(*counts));
  SCOPED bool *elsewhere = memory_zeroed(history->n_steps, sizeof(*elsewhere));
  u32 main = 0, within = 0;
  FOR_EACH(history->events, history->n_events, item)
    if (is_allocation_of_step(item)) {
      u32 frame = outermost_forward(history, item);
      main = ++counts[frame] > counts[main] ? frame : main;
    }
  FOR_EACH(history->events, history->n_events, event)
    if (is_allocation_of_step(event))
      elsewhere[event->step] |= outermost_forward(history, event) != main;
  FOR_EACH(elsewhere, history->n_steps, each)
    within += !*each;
  return main && within >= history->n_steps / 2;
}

static void clear_steps(struct memory_history *history) {
  history->n_steps = 0;
  history->steps_method = NULL;
  history->steps_are_certain = false;
  FOR_EACH_CHANGED(history->events, history->n_events, event)
    event->step = -1;
}

static void number_by_period(struct memory_history *history) {
  SCOPED u32 *tokens = memory_array(size_sum(history->n_events, 1), sizeof(*tokens));
  u32 n = 0;
  FOR_EACH(history->events, history->n_events, one)
    if (one->kind == MEMORY_ALLOC)
      tokens[n++] = hash_number(0, (u64)one->bytes);
  struct period period;
  if (!n || !find_period(tokens, n, &period))
    return;
  u32 allocations = 0;
  history->n_steps = (period.last - period.first) / period.length;
  FOR_EACH_CHANGED(history->events, history->n_events, event) {
    u32 at = allocations;
    allocations += event->kind == MEMORY_ALLOC;
    u32 step = at < period.first ? INDEX_NONE : (at - period.first) / period.length;
    event->step = step < history->n_steps ? (i32)step : -1;
  }
  if (has_training(history) ||
      (kept_share(history) <= MOST_KEPT && !repeats_inside_forward(history)))
    history->steps_method = "repeating allocations";
  else
    clear_steps(history);
}

void snapshot_steps(const struct value *root, struct memory_history *history) {
  const struct value *annotations = value_get(root, "external_annotations");
  SCOPED instants steps = {0};
  SCOPED instants optimizers = {0};
  list_annotations(annotations, history, "START", "ProfilerStep#", &steps);
  list_annotations(annotations, history, "END", "Optimizer.step#", &optimizers);
  if (steps.n >= LEAST_STEPS) {
    number_by_time(history, &steps, true);
    history->steps_method = "profiler's step ranges";
    history->steps_are_certain = true;
  } else if (optimizers.n >= LEAST_STEPS) {
    number_by_time(history, &optimizers, false);
    history->steps_method = "ends of optimizer steps";
    history->steps_are_certain = true;
  } else {
    number_by_optimizer(history);
    history->steps_method = "ends of the optimizer's allocations";
    history->steps_are_certain = true;
    if (history->n_steps < LEAST_STEPS) {
      clear_steps(history);
      number_by_period(history);
    }
  }
}
