/* SPDX-License-Identifier: MIT
 *
 * How the run ended, if it did not end normally. It comes before all other sections.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/section.h"

#define RANKS_SHOWN 8u

static void put_rank(struct pen *pen, const struct rank_ending *rank) {
  bool culprit = rank->part == END_PART_CULPRIT;
  pen_newline(pen);
  pen_to(pen, TEXT_INDENT);
  pen_format(pen, culprit ? STYLE_BOLD : STYLE_PLAIN, "rank %u", rank->rank);
  if (rank->host)
    pen_format(pen, STYLE_DIM, " on %s", rank->host);
  if (!isnan(rank->at_s))
    pen_item_format(pen, STYLE_PLAIN, TEXT_INDENT + 2, "%.3f s", rank->at_s);
  pen_item(pen, culprit ? STYLE_BOLD : STYLE_PLAIN, TEXT_INDENT + 2, end_part_words[rank->part]);
  if (!isnan(rank->step))
    pen_item_format(pen, STYLE_PLAIN, TEXT_INDENT + 2, "step %.0f", rank->step);
  if (rank->phase)
    pen_item(pen, STYLE_PLAIN, TEXT_INDENT + 2, rank->phase);
  if (rank->call)
    pen_item_format(pen, STYLE_PLAIN, TEXT_INDENT + 2, "%s %s",
                    rank->pending == ANSWER_YES ? "waiting in" : "last call", rank->call);
  pen_newline(pen);
  pen_to(pen, TEXT_INDENT + 2);
  pen_words(pen, STYLE_PLAIN, TEXT_INDENT + 2, rank->why);
}

void body_run_end(struct pen *pen, const struct results *results, const struct report_view *view) {
  (void)view;
  const struct run_end *end = &results->run_end;
  section_label(pen, "in short");
  pen_words(pen, STYLE_PLAIN, VALUE_INDENT,
            end->summary ? end->summary
                         : "It did not end normally; which rank ended first is not known.");
  if (end->calls) {
    section_label(pen, "calls");
    pen_words(pen, STYLE_PLAIN, VALUE_INDENT, end->calls);
  }
  for (u32 i = 0; i < end->n_ranks && i < RANKS_SHOWN; i++)
    put_rank(pen, &end->ranks[i]);
  if (end->n_ranks > RANKS_SHOWN) {
    pen_newline(pen);
    pen_to(pen, TEXT_INDENT);
    pen_format(pen, STYLE_DIM, "and %u more, later", end->n_ranks - RANKS_SHOWN);
  }
}
