/* SPDX-License-Identifier: MIT
 *
 * A job that hangs, or whose ranks called different things: at the top, because then nothing else
 * matters.
 */
#include "base/texts.h"
#include "report/text/section.h"

#define SUSPECTS_SHOWN 8u
#define MISMATCHES_SHOWN 5u

/* A frame that is too long keeps its beginning and its end, which has the line. */
static void put_frame(struct pen *pen, const char *frame) {
  unsigned room = pen->width - (TEXT_INDENT + 4), columns = pen_measure(pen, frame);
  pen_line(pen, TEXT_INDENT + 4);
  pen_left_middle(pen, STYLE_DIM, frame, MIN(columns, room));
}

static void put_suspect(struct pen *pen, const struct check_suspect *suspect) {
  section_rank(pen, STYLE_BOLD, suspect->rank, STYLE_BOLD, suspect->host);
  pen_item(pen, STYLE_PLAIN, "%s", suspect_reason_words[suspect->reason]);
  pen_line(pen, TEXT_INDENT + 2);
  pen_words(pen, STYLE_PLAIN, suspect->evidence);
  int n;
  for (const char *lines = suspect->stack, *line; (line = text_next_line(&lines, &n));)
    put_frame(pen, arena_printf(&pen->scratch, "%.*s", n, line));
}

/* The first of each group; later ones follow from it. */
static void put_mismatches(struct pen *pen, const struct collective_check *check) {
  u32 shown = 0;
  u32 most = section_rows(pen, check->n_mismatches, MISMATCHES_SHOWN);
  for (u32 i = 0; i < check->n_mismatches && shown < most; i++) {
    const struct check_mismatch *m = &check->mismatches[i];
    if (!pen->view->top && i && strcmp(m->group_name, check->mismatches[i - 1].group_name) == 0)
      continue;
    section_label(pen, shown++ ? "" : "disagree");
    pen_hang(pen, VALUE_INDENT + 2);
    pen_words(pen, STYLE_PLAIN,
              arena_printf(&pen->scratch, "%s: %s (%s)", m->call, match_state_words[m->state],
                           m->detail));
  }
  section_in_all(pen, VALUE_INDENT, shown, check->n_mismatches, check->mismatches_found,
                 "disagreement");
}

void body_hang(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_hang, results);
  const struct collective_check *check = &results->check;
  put_mismatches(pen, check);
  if (check->n_suspects == 0)
    return;
  section_value(pen, "look at", STYLE_PLAIN, "first:");
  u32 shown = section_rows(pen, check->n_suspects, SUSPECTS_SHOWN);
  FOR_EACH(check->suspects, shown, suspect)
    put_suspect(pen, suspect);
  section_in_all(pen, TEXT_INDENT, shown, check->n_suspects, check->n_suspects, "rank");
}
