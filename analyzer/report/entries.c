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
#include "base/quantity.h"
#include "report/selection.h"
#include "report/text/pen.h"

enum { LEAST_COLUMN = 36, GAP = 2 };

static const char *const state_marks[] = {[LEDGER_CALLED] = "?",
                                          [LEDGER_SCHEDULED] = ".",
                                          [LEDGER_STARTED] = ">",
                                          [LEDGER_COMPLETED] = "+"};

struct listing {
  const struct ledger *ledger;
  const struct report_view *view;
  struct pen pen;
  const struct ledger_stack **stacks; /* shown so far; their number is the position */
  u32 n_stacks, room;
  i64 first; /* when the first call of all was made; NS_UNKNOWN */
};

static bool is_selected(const struct listing *l, const struct ledger_call *call) {
  return selection_has_group(l->view, &l->ledger->groups[call->group]);
}

/* The next selected call of a rank; the rank's end if there is none. */
static u32 next_call(const struct listing *l, const struct ledger_rank *rank, u32 from) {
  u32 end = rank->first_call + rank->n_calls;
  while (from < end && !is_selected(l, &l->ledger->calls[from]))
    from++;
  return from;
}

static u32 stack_number(struct listing *l, const struct ledger_stack *stack) {
  for (u32 i = 0; i < l->n_stacks; i++)
    if (l->stacks[i] == stack)
      return i;
  if (l->n_stacks == l->room) {
    u32 room = l->room ? l->room * 2 : 64;
    const struct ledger_stack **grown = memory_resized(l->stacks, room, sizeof(*grown));
    l->stacks = grown;
    l->room = room;
  }
  l->stacks[l->n_stacks] = stack;
  return l->n_stacks++;
}

static void put_call(struct listing *l, const struct ledger_call *call, unsigned columns) {
  const struct ledger_group *group = &l->ledger->groups[call->group];
  char text[500], peer[32] = "", stack[24] = "", sizes[160], since[32] = "";
  if (call->peer != INDEX_NONE)
    snprintf(peer, sizeof(peer), " %s %u", call->sends ? "to" : "from",
             l->ledger->ranks[call->peer].rank);
  if (l->view->stacks && call->stack)
    snprintf(stack, sizeof(stack), " @%u", stack_number(l, call->stack));
  const char *mark = state_marks[call->state];
  bool both = call->in && call->out && strcmp(call->in, call->out) != 0;
  const char *type = call->in_type ? call->in_type : call->out_type;
  snprintf(sizes, sizeof(sizes), "%s%s%s%s%s",
           call->in    ? call->in
           : call->out ? call->out
                       : "",
           both ? " -> " : "", both ? call->out : "", type ? " " : "", type ? type : "");
  if (call->created != NS_UNKNOWN && l->first != NS_UNKNOWN)
    snprintf(since, sizeof(since), " +%.3f", (double)(call->created - l->first) / 1e6);
  snprintf(text, sizeof(text), "%s %s %lld %s%s%s %s%s%s", mark, group->name, (long long)call->seq,
           call->inside ? "| " : "", call->op, peer, sizes, since, stack);
  pen_left(&l->pen, call->state == LEDGER_COMPLETED ? STYLE_DIM : STYLE_PLAIN, text, columns);
}

/* The earliest of the next calls of a block of ranks. */
static const struct ledger_call *earliest_call(const struct listing *l, const u32 *ranks,
                                               const u32 *at, u32 n) {
  const struct ledger_call *best = NULL;
  for (u32 i = 0; i < n; i++) {
    const struct ledger_rank *rank = &l->ledger->ranks[ranks[i]];
    if (at[i] == rank->first_call + rank->n_calls)
      continue;
    const struct ledger_call *call = &l->ledger->calls[at[i]];
    if (!best || call->created < best->created)
      best = call;
  }
  return best;
}

static bool same_line(const struct ledger_call *a, const struct ledger_call *b) {
  return a->group == b->group && a->seq == b->seq && a->message == b->message &&
         a->inside == b->inside && (!a->message || strcmp(a->op, b->op) == 0);
}

/* What the groups are for, if the record says so. */
static void put_groups(struct listing *l) {
  for (u32 g = 0; g < l->ledger->n_groups; g++) {
    const struct ledger_group *group = &l->ledger->groups[g];
    if (!group->desc || !selection_has_group(l->view, group))
      continue;
    pen_format(&l->pen, STYLE_DIM, "group %s: %s", group->name, group->desc);
    pen_newline(&l->pen);
  }
}

static void put_block(struct listing *l, const u32 *ranks, u32 n, unsigned columns) {
  struct pen *pen = &l->pen;
  u32 at[REPORT_MAX_WIDTH];
  for (u32 i = 0; i < n; i++) {
    const struct ledger_rank *rank = &l->ledger->ranks[ranks[i]];
    char title[80];
    snprintf(title, sizeof(title), "rank %u%s%s%s", rank->rank, rank->host ? " on " : "",
             rank->host ? rank->host : "", rank->seen ? "" : ": no record");
    pen_to(pen, i * (columns + GAP));
    pen_left(pen, STYLE_BOLD, title, columns);
    at[i] = next_call(l, rank, rank->first_call);
  }
  pen_newline(pen);
  for (const struct ledger_call *line; (line = earliest_call(l, ranks, at, n));) {
    const struct ledger_call first = *line;
    for (u32 i = 0; i < n; i++) {
      const struct ledger_rank *rank = &l->ledger->ranks[ranks[i]];
      if (at[i] == rank->first_call + rank->n_calls || !same_line(&first, &l->ledger->calls[at[i]]))
        continue;
      pen_to(pen, i * (columns + GAP));
      put_call(l, &l->ledger->calls[at[i]], columns);
      at[i] = next_call(l, rank, at[i] + 1);
    }
    pen_newline(pen);
  }
  pen_newline(pen);
}

static void put_stacks(struct listing *l) {
  for (u32 i = 0; i < l->n_stacks; i++) {
    pen_format(&l->pen, STYLE_BOLD, "@%u", i);
    pen_newline(&l->pen);
    for (u32 f = 0; f < l->stacks[i]->n; f++) {
      const struct ledger_frame *frame = &l->stacks[i]->frames[f];
      pen_to(&l->pen, 2);
      pen_format(&l->pen, STYLE_PLAIN, "%s:%lld %s", frame->file ? frame->file : "?",
                 (long long)frame->line, frame->function ? frame->function : "?");
      pen_newline(&l->pen);
    }
  }
}

static int write_entries(const struct results *results, const struct report_view *view, FILE *out) {
  const struct ledger *ledger = results->check.ledger;
  if (!ledger)
    return -ENODATA;
  struct listing l = {
      .ledger = ledger, .view = view, .pen = pen_begin(view, out), .first = NS_UNKNOWN};
  for (u32 i = 0; i < ledger->n_calls; i++)
    if (ledger->calls[i].created != NS_UNKNOWN &&
        (l.first == NS_UNKNOWN || ledger->calls[i].created < l.first))
      l.first = ledger->calls[i].created;
  u32 *ranks = memory_array(size_sum(ledger->n_ranks, 1), sizeof(u32)), n = 0;
  for (u32 r = 0; r < ledger->n_ranks; r++)
    if (selection_has_rank(view, ledger->ranks[r].rank))
      ranks[n++] = r;
  u32 across = (view->width + GAP) / (LEAST_COLUMN + GAP);
  across = across < 1 ? 1 : across > n && n ? n : across;
  unsigned columns = (view->width + GAP) / across - GAP;
  pen_put(&l.pen, STYLE_DIM,
          "+ completed  > started  . scheduled  ? not known; group, number, "
          "operation, sizes (in -> out), type, ms since the first call");
  pen_newline(&l.pen);
  put_groups(&l);
  pen_newline(&l.pen);
  for (u32 i = 0; i < n; i += across)
    put_block(&l, ranks + i, n - i < across ? n - i : across, columns);
  put_stacks(&l);
  free(ranks);
  free(l.stacks);
  return 0;
}

const struct report_backend report_entries = {
    .write = write_entries,
    .no_data = "there are no calls: give flight-recorder dumps, or traces of a run that did not "
               "end normally",
};
