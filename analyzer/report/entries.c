/* SPDX-License-Identifier: MIT
 *
 * --format entries: the calls of every rank side by side, as they were recorded. One column for
 * each rank, as many as fit in the window, then the next ranks below. Collectives of one group with
 * the same number are on one line where the columns allow it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "base/vector.h"
#include "report/selection.h"
#include "report/text/pen.h"

enum { LEAST_COLUMN = 36, GAP = 2 };

static const char *const state_marks[] = {[FLIGHT_CALLED] = "?",
                                          [FLIGHT_SCHEDULED] = ".",
                                          [FLIGHT_STARTED] = ">",
                                          [FLIGHT_COMPLETED] = "+"};

struct listing {
  const struct flight_record *flight;
  const struct report_view *view;
  struct pen pen;
  VECTOR(const struct flight_stack *) stacks; /* shown so far; their number is the position */
  i64 first;                                  /* when the first call of all was made; NS_UNKNOWN */
};

/* The next selected call of a rank; the rank's end if there is none. */
static u32 next_call(const struct listing *l, const struct flight_rank *rank, u32 from) {
  u32 end = rank->first_call + rank->n_calls;
  while (from < end &&
         !selection_has_group(l->view, &l->flight->groups[l->flight->calls[from].group]))
    from++;
  return from;
}

static u32 stack_number(struct listing *l, const struct flight_stack *stack) {
  for (u32 i = 0; i < l->stacks.n; i++)
    if (l->stacks.at[i] == stack)
      return i;
  VECTOR_PUSH(&l->stacks, stack);
  return l->stacks.n - 1;
}

static void put_call(struct listing *l, const struct flight_call *call, unsigned columns) {
  const struct flight_group *group = &l->flight->groups[call->group];
  char text[500], peer[32] = "", stack[24] = "", sizes[160], since[32] = "";
  if (call->peer != INDEX_NONE)
    snprintf(peer, sizeof(peer), " %s %u", call->sends ? "to" : "from",
             l->flight->ranks[call->peer].rank);
  if (l->view->stacks && call->stack)
    snprintf(stack, sizeof(stack), " @%u", stack_number(l, call->stack));
  const char *mark = state_marks[call->state];
  bool both = call->in && call->out && strcmp(call->in, call->out) != 0;
  const char *type = call->in_type ? call->in_type : call->out_type;
  snprintf(sizes, sizeof(sizes), "%s%s%s%s%s",
           call->in    ? call->in
           : call->out ? call->out
                       : "",
           both ? " -> " : "", both ? call->out : "", type ? " " : "", text_or_empty(type));
  if (call->created != NS_UNKNOWN && l->first != NS_UNKNOWN)
    snprintf(since, sizeof(since), " +%.3f", ns_to_ms(call->created - l->first));
  snprintf(text, sizeof(text), "%s %s %lld %s%s%s %s%s%s", mark, group->name, (long long)call->seq,
           call->coalesced ? "| " : "", call->op, peer, sizes, since, stack);
  pen_left(&l->pen, call->state == FLIGHT_COMPLETED ? STYLE_DIM : STYLE_PLAIN, text, columns);
}

/* The earliest of the next calls of a block of ranks. */
static const struct flight_call *earliest_call(const struct listing *l, const u32 *ranks,
                                               const u32 *at, u32 n) {
  const struct flight_call *best = NULL;
  for (u32 i = 0; i < n; i++) {
    const struct flight_rank *rank = &l->flight->ranks[ranks[i]];
    if (at[i] == rank->first_call + rank->n_calls)
      continue;
    const struct flight_call *call = &l->flight->calls[at[i]];
    if (!best || call->created < best->created)
      best = call;
  }
  return best;
}

static bool same_line(const struct flight_call *a, const struct flight_call *b) {
  return a->group == b->group && a->seq == b->seq && a->message == b->message &&
         a->coalesced == b->coalesced && (!a->message || strcmp(a->op, b->op) == 0);
}

/* What the groups are for, if the record says so. */
static void put_groups(struct listing *l) {
  FOR_EACH(l->flight->groups, l->flight->n_groups, group) {
    if (!group->desc || !selection_has_group(l->view, group))
      continue;
    pen_end_line(&l->pen, STYLE_DIM, "group %s: %s", group->name, group->desc);
  }
}

static void put_block(struct listing *l, const u32 *ranks, u32 n, unsigned columns) {
  struct pen *pen = &l->pen;
  u32 at[REPORT_MAX_WIDTH];
  for (u32 i = 0; i < n; i++) {
    const struct flight_rank *rank = &l->flight->ranks[ranks[i]];
    char title[80];
    snprintf(title, sizeof(title), "rank %u%s%s%s", rank->rank, rank->host ? " on " : "",
             text_or_empty(rank->host), rank->seen ? "" : ": no record");
    pen_to(pen, i * (columns + GAP));
    pen_left(pen, STYLE_BOLD, title, columns);
    at[i] = next_call(l, rank, rank->first_call);
  }
  pen_newline(pen);
  for (const struct flight_call *line; (line = earliest_call(l, ranks, at, n));) {
    const struct flight_call first = *line;
    for (u32 i = 0; i < n; i++) {
      const struct flight_rank *rank = &l->flight->ranks[ranks[i]];
      if (at[i] == rank->first_call + rank->n_calls || !same_line(&first, &l->flight->calls[at[i]]))
        continue;
      pen_to(pen, i * (columns + GAP));
      put_call(l, &l->flight->calls[at[i]], columns);
      at[i] = next_call(l, rank, at[i] + 1);
    }
    pen_newline(pen);
  }
  pen_newline(pen);
}

static void put_stacks(struct listing *l) {
  for (u32 i = 0; i < l->stacks.n; i++) {
    pen_end_line(&l->pen, STYLE_BOLD, "@%u", i);
    FOR_EACH(l->stacks.at[i]->frames, l->stacks.at[i]->n, frame) {
      pen_to(&l->pen, 2);
      pen_end_line(&l->pen, STYLE_PLAIN, "%s", call_frame_in_stack(&l->pen.scratch, frame));
    }
  }
}

static int write_entries(const struct results *results, const struct report_view *view, FILE *out) {
  const struct flight_record *flight = results->check.flight;
  if (!flight)
    return -ENODATA;
  struct listing l = {
      .flight = flight, .view = view, .pen = pen_begin(view, out), .first = NS_UNKNOWN};
  FOR_EACH(flight->calls, flight->n_calls, call)
    if (call->created != NS_UNKNOWN && (l.first == NS_UNKNOWN || call->created < l.first))
      l.first = call->created;
  SCOPED u32 *ranks = memory_array(size_sum(flight->n_ranks, 1), sizeof(u32));
  u32 n = LIST_WHERE(ranks, 0, flight->n_ranks, r,
                     selection_has_rank(view->ranks, flight->ranks[r].rank), r);
  u32 across = (view->width + GAP) / (LEAST_COLUMN + GAP);
  across = CLAMP(across, 1, MAX(n, 1));
  unsigned columns = (view->width + GAP) / across - GAP;
  pen_put(&l.pen, STYLE_DIM,
          "+ completed  > started  . scheduled  ? not known; group, number, operation, sizes (in "
          "-> out), type, ms since the first call");
  pen_newline(&l.pen);
  put_groups(&l);
  pen_newline(&l.pen);
  for (u32 i = 0; i < n; i += across)
    put_block(&l, ranks + i, MIN(n - i, across), columns);
  put_stacks(&l);
  arena_release(&l.pen.scratch);
  free(l.stacks.at);
  return 0;
}

const struct report_backend report_entries = {
    .write = write_entries,
    .no_data = "there are no calls: give flight-recorder dumps, or traces of a run that did not "
               "end normally",
};
