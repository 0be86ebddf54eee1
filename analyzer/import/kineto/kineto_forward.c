/* SPDX-License-Identifier: MIT
 *
 * Forward passes that the program does not mark: the operators whose gradients a backward pass
 * computes, from the first to the last, with what lies between. PyTorch gives both the same
 * sequence number. Validation has no gradients and is in none.
 */
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/kineto/kineto.h"

/* An operator that has a gradient. Of those with one number it is the last. */
struct forward_call {
  u32 sequence, outer; /* outer: the operator that the program called, an item */
};

struct gradient {
  i64 start;
  u32 sequence, pass;
  u8 thread; /* of the forward, as PyTorch numbers them */
};

struct matched {
  u32 outer, pass;
};

struct lane_state {
  i64 outer_end, backward_end;
  u32 outer, pass;
};

struct forward_search {
  struct kineto_trace *trace;
  struct lane_state *lanes;
  VECTOR(struct forward_call) calls;
  VECTOR(struct gradient) gradients;
  VECTOR(struct matched) matched;
  u32 passes;
};

ORDER_BY(by_sequence, struct forward_call, UP(sequence) UP(outer))
ORDER_BY(by_sequence_and_time, struct gradient, UP(sequence) UP(start))
ORDER_BY(by_outer, struct matched, UP(outer) UP(pass))

static bool is_phase(const struct forward_search *s, const struct kineto_item *item) {
  return (item->kind == KINETO_ITEM_RANGE || item->kind == KINETO_ITEM_OP) &&
         kineto_item_name(s->trace, item)->phase;
}

/* A node of autograd's graph, and not one that another runs: recomputed activations have gradients
 * and numbers of their own. */
static void add_gradient(struct forward_search *s, struct lane_state *lane,
                         const struct kineto_item *item) {
  if (item->start > lane->backward_end + KINETO_BACKWARD_GAP_NS)
    lane->pass = s->passes++;
  lane->backward_end = item->end;
  if (item->what != INDEX_NONE && item->thread)
    VECTOR_PUSH(&s->gradients, (struct gradient){.start = item->start,
                                                 .sequence = item->what,
                                                 .pass = lane->pass,
                                                 .thread = item->thread});
}

static void list_operators(struct forward_search *s) {
  for (u32 i = 0; i < s->trace->items.n; i++) {
    const struct kineto_item *item = &s->trace->items.at[i];
    struct lane_state *lane = &s->lanes[item->lane];
    if (item->kind != KINETO_ITEM_OP || item->start < lane->backward_end)
      continue;
    if (kineto_item_name(s->trace, item)->backward) {
      add_gradient(s, lane, item);
      continue;
    }
    if (item->start >= lane->outer_end) {
      lane->outer = i;
      lane->outer_end = item->end;
    }
    if (item->what != INDEX_NONE && !item->thread)
      VECTOR_PUSH(&s->calls, (struct forward_call){item->what, lane->outer});
  }
}

/* The thread of which most gradients are. */
static void keep_one_thread(struct forward_search *s) {
  struct kineto_forward_lane lane_of[KINETO_FORWARD_THREADS];
  u32 of_thread[KINETO_FORWARD_THREADS] = {0};
  FOR_EACH(s->gradients.at, s->gradients.n, one)
    of_thread[one->thread]++;
  u8 thread = (u8)NUMBER_OF_LARGEST(0, KINETO_FORWARD_THREADS, i, of_thread[i]);
  kineto_find_forward_lanes(s->trace, lane_of);
  u32 lane = lane_of[thread].lane;
  s->gradients.n = KEEP_WHERE(s->gradients.at, s->gradients.n, one, one->thread == thread);
  s->calls.n =
      KEEP_WHERE(s->calls.at, s->calls.n, one, s->trace->items.at[one->outer].lane == lane);
}

static void match(struct forward_search *s) {
  SORT(s->calls.at, s->calls.n, by_sequence);
  SORT(s->gradients.at, s->gradients.n, by_sequence_and_time);
  u32 k = 0;
  for (u32 i = 0; i < s->calls.n; i++) {
    const struct forward_call *call = &s->calls.at[i];
    if (i + 1 < s->calls.n && call[1].sequence == call->sequence)
      continue;
    i64 end = s->trace->items.at[call->outer].end;
    while (k < s->gradients.n &&
           (s->gradients.at[k].sequence < call->sequence ||
            (s->gradients.at[k].sequence == call->sequence && s->gradients.at[k].start < end)))
      k++;
    if (k < s->gradients.n && s->gradients.at[k].sequence == call->sequence)
      VECTOR_PUSH(&s->matched, (struct matched){call->outer, s->gradients.at[k].pass});
  }
  SORT(s->matched.at, s->matched.n, by_outer);
}

/* Whether the program trains, or does anything else that has a name, between two of its operators.
 */
static bool is_parted(const struct forward_search *s, const struct matched *last, i64 end,
                      const struct matched *next) {
  return ANY_NUMBER(last->outer + 1, next->outer, i,
                    s->trace->items.at[i].start >= end && is_phase(s, &s->trace->items.at[i]));
}

static void add_pass(struct forward_search *s, u32 lane, struct interval pass) {
  struct kineto_item item = {.start = pass.start,
                             .end = pass.end,
                             .name = kineto_number_of(&s->trace->names, "forward"),
                             .what = INDEX_NONE,
                             .lane = (u16)lane,
                             .kind = KINETO_ITEM_RANGE};
  VECTOR_PUSH(&s->trace->items, item);
}

/* Operators of one backward pass are one forward pass, whatever the program does between them. A
 * backward pass that stops for a while counts as two: what follows closely belongs together too. */
static void add_passes(struct forward_search *s) {
  struct interval pass = {0};
  const struct matched *last = NULL;
  u32 lane = 0;
  FOR_EACH(s->matched.at, s->matched.n, next) {
    const struct kineto_item item = s->trace->items.at[next->outer];
    bool follows =
        last && (last->outer == next->outer ||
                 ((next->pass == last->pass || item.start - pass.end <= KINETO_BACKWARD_GAP_NS) &&
                  !is_parted(s, last, pass.end, next)));
    if (last && !follows)
      add_pass(s, lane, pass);
    pass = (struct interval){follows ? pass.start : item.start, item.end};
    lane = item.lane;
    last = next;
  }
  if (last)
    add_pass(s, lane, pass);
}

void kineto_find_forward_passes(struct kineto_trace *trace) {
  struct forward_search s = {.trace = trace};
  if (ANY(trace->items.at, trace->items.n, item,
          is_phase(&s, item) && kineto_item_name(trace, item)->phase == TSCOPE_PHASE_FORWARD))
    return;
  s.lanes = memory_zeroed(size_sum(trace->lanes.n, 1), sizeof(*s.lanes));
  FOR_EACH_CHANGED(s.lanes, trace->lanes.n, lane)
    lane->backward_end = INT64_MIN / 2;
  list_operators(&s);
  if (s.gradients.n) {
    keep_one_thread(&s);
    match(&s);
  }
  if (2 * s.matched.n >= s.gradients.n)
    add_passes(&s);
  FREE_EACH(&s, lanes, calls.at, gradients.at, matched.at);
}
