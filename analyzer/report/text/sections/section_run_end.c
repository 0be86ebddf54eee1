/* SPDX-License-Identifier: MIT
 *
 * How the run ended, if it did not end normally. It comes before all other sections.
 */
#include <math.h>

#include "report/text/section.h"

#define RANKS_SHOWN 8u

static void put_rank(struct pen *pen, const struct rank_ending *rank) {
  enum style style = rank->part == END_PART_CULPRIT ? STYLE_BOLD : STYLE_PLAIN;
  section_rank(pen, style, rank->rank, STYLE_DIM, rank->host);
  if (!isnan(rank->at_s))
    pen_item(pen, STYLE_PLAIN, "%.3f s", rank->at_s);
  pen_item(pen, style, "%s", end_part_words[rank->part]);
  if (!isnan(rank->step))
    pen_item(pen, STYLE_PLAIN, "step %.0f", rank->step);
  if (rank->phase)
    pen_item(pen, STYLE_PLAIN, "%s", rank->phase);
  const char *doing = say_doing(rank, &pen->scratch);
  if (doing)
    pen_item(pen, STYLE_PLAIN, "%s", doing);
  pen_line(pen, TEXT_INDENT + 2);
  pen_words(pen, STYLE_PLAIN, rank->why);
}

void body_run_end(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_run_end, results);
  const struct run_end *end = &results->run_end;
  u32 shown = section_rows(pen, end->n_ranks, RANKS_SHOWN);
  FOR_EACH(end->ranks, shown, rank)
    put_rank(pen, rank);
  section_in_all(pen, TEXT_INDENT, shown, end->n_ranks, end->n_ranks, "rank");
}
