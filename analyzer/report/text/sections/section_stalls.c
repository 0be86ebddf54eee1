/* SPDX-License-Identifier: MIT
 *
 * Where ranks stall: which line each is at, and all their stacks as one tree.
 */
#include <math.h>

#include "analyses/stalls/stall_words.h"
#include "report/text/section.h"
#include "report/text/stack_lines.h"

enum { RANKS_SHOWN = 12, LINES_SHOWN = 40, PAST_SHOWN = 5 };

static void put_rank(struct pen *pen, const struct stalled_rank *rank) {
  section_rank(pen, STYLE_BOLD, rank->rank, STYLE_DIM, rank->host);
  pen_item(pen, STYLE_BOLD, "%s", stall_doing_words[rank->what]);
  if (!isnan(rank->for_s))
    pen_item(pen, STYLE_PLAIN, "for %s", duration_s(rank->for_s).text);
  if (!rank->words || !*rank->words)
    return;
  pen_line(pen, TEXT_INDENT + 2);
  pen_words(pen, STYLE_PLAIN, rank->words);
}

/* Those that do the same are shown once. */
static u32 put_ranks(struct pen *pen, const struct stalls_result *stalls) {
  u32 shown = 0, left = 0, most = section_rows(pen, stalls->n_ranks, RANKS_SHOWN);
  for (u32 i = 0; i < stalls->n_ranks; i++) {
    const struct stalled_rank *rank = &stalls->ranks[i];
    u32 first = 0, alike = 0;
    while (first < i && !stall_does_the_same(&stalls->ranks[first], rank))
      first++;
    if (first < i)
      continue;
    for (u32 k = i + 1; k < stalls->n_ranks; k++)
      alike += stall_does_the_same(rank, &stalls->ranks[k]);
    if (shown == most) {
      left += 1 + alike;
      continue;
    }
    put_rank(pen, rank);
    if (alike) {
      pen_line(pen, TEXT_INDENT + 2);
      pen_format(pen, STYLE_DIM, "and %s more there", plural(alike, "rank").text);
    }
    shown++;
  }
  return left;
}

static void put_tree(struct pen *pen, const struct stack_tree *tree) {
  u32 n;
  struct stack_line *lines = stack_tree_lines(&pen->scratch, tree, tree->n, &n);
  u32 shown = section_rows(pen, n, LINES_SHOWN);
  for (u32 i = 0; i < shown; i++) {
    section_label(pen, i ? "" : "stacks");
    put_stack_line(pen, VALUE_INDENT + 2 * lines[i].depth, &lines[i]);
  }
  section_in_all(pen, VALUE_INDENT, shown, n, n, "line");
}

static void put_past(struct pen *pen, const struct stalls_result *stalls) {
  u32 shown = section_rows(pen, stalls->n_past, PAST_SHOWN);
  for (u32 i = 0; i < shown; i++) {
    const struct past_stall *past = &stalls->past[i];
    section_value(pen, i ? "" : "went on", STYLE_PLAIN, "rank %u at %.1f s", past->rank,
                  past->since_s);
    pen_item(pen, STYLE_PLAIN, "%s for %s", past->what ? past->what : "stalled",
             duration_s(past->for_s).text);
    if (past->place)
      pen_item(pen, STYLE_PLAIN, "%s",
               place_with_function(&pen->scratch, past->place, past->function));
  }
  section_in_all(pen, VALUE_INDENT, shown, stalls->n_past, stalls->past_known, "stall");
}

void body_stalls(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_stalls, results);
  const struct stalls_result *stalls = &results->stalls;
  u32 left = put_ranks(pen, stalls);
  section_in_all(pen, TEXT_INDENT, stalls->n_ranks - left, stalls->n_ranks, stalls->n_ranks,
                 "rank");
  const struct stack_tree tree = {stalls->tree, stalls->n_tree};
  if (tree.n)
    put_tree(pen, &tree);
  put_past(pen, stalls);
}
