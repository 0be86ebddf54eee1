/* SPDX-License-Identifier: MIT
 *
 * A job that hangs, or whose ranks called different things: at the top, because then nothing else
 * matters.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank_list.h"
#include "model/flight_record.h"
#include "report/text/section.h"

#define SUSPECTS_SHOWN 8u
#define MISMATCHES_SHOWN 5u

/* A frame that is too long keeps its beginning and its end, which has the line. */
static void put_frame(struct pen *pen, const char *text, size_t bytes) {
  char frame[1024];
  snprintf(frame, sizeof(frame), "%.*s", (int)bytes, text);
  unsigned room = pen->width - (TEXT_INDENT + 4), columns = pen_measure(pen, frame);
  pen_newline(pen);
  pen_to(pen, TEXT_INDENT + 4);
  pen_left_middle(pen, STYLE_DIM, frame, columns < room ? columns : room);
}

static void put_suspect(struct pen *pen, const struct check_suspect *suspect) {
  pen_newline(pen);
  pen_to(pen, TEXT_INDENT);
  pen_format(pen, STYLE_BOLD, "rank %u", suspect->rank);
  if (suspect->host)
    pen_format(pen, STYLE_BOLD, " on %s", suspect->host);
  pen_item(pen, STYLE_PLAIN, TEXT_INDENT + 2, suspect_reason_words[suspect->reason]);
  pen_newline(pen);
  pen_to(pen, TEXT_INDENT + 2);
  pen_words(pen, STYLE_PLAIN, TEXT_INDENT + 2, suspect->evidence);
  for (const char *line = suspect->stack; line && *line;) {
    size_t n = 0;
    while (line[n] && line[n] != '\n')
      n++;
    put_frame(pen, line, n);
    line += n + (line[n] == '\n');
  }
}

/* The first of each group; later ones follow from it. */
static void put_mismatches(struct pen *pen, const struct collective_check *check,
                           const struct report_view *view) {
  u32 shown = 0;
  u32 most = section_rows(view, check->n_mismatches, MISMATCHES_SHOWN);
  for (u32 i = 0; i < check->n_mismatches && shown < most; i++) {
    const struct check_mismatch *m = &check->mismatches[i];
    if (!view->top && i && strcmp(m->group_name, check->mismatches[i - 1].group_name) == 0)
      continue;
    char line[1000];
    snprintf(line, sizeof(line), "%s %.0f of %s: %s (%s)", m->op, m->seq, m->group,
             match_state_words[m->state], m->detail);
    section_label(pen, shown++ ? "" : "disagree");
    pen_words(pen, STYLE_PLAIN, VALUE_INDENT + 2, line);
  }
  if (check->mismatches_found > shown) {
    section_label(pen, "");
    pen_format(pen, STYLE_DIM, "%.0f in all: --top shows more", check->mismatches_found);
  }
}

static void put_ranks(struct pen *pen, const char *label, const u32 *ranks, u32 n) {
  char *list = rank_list(ranks, n, 48);
  section_label(pen, label);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%s %s", n == 1 ? "rank" : "ranks", list);
  free(list);
}

void body_hang(struct pen *pen, const struct results *results, const struct report_view *view) {
  const struct collective_check *check = &results->check;
  section_label(pen, "calls");
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%.0f in %s", check->checked,
                  plural(check->n_groups, "group").text);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%.0f match on all members", check->matched);
  pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "from %s", check->source);
  if (check->pending_ranks > 0) {
    section_label(pen, "waiting");
    pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%s in calls that have not finished",
                    plural(check->pending_ranks, "rank").text);
    if (!isnan(check->pending_s))
      pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "the oldest for %s",
                      duration_s(check->pending_s).text);
    if (check->n_suspects && check->victims > 0)
      pen_item_format(pen, STYLE_PLAIN, VALUE_INDENT, "%.0f of them victims", check->victims);
  }
  if (check->nccl) {
    section_label(pen, "NCCL");
    pen_words(pen, STYLE_PLAIN, VALUE_INDENT, check->nccl);
  }
  if (check->n_unrecorded)
    put_ranks(pen, "no record", check->unrecorded, check->n_unrecorded);
  put_mismatches(pen, check, view);
  if (check->n_suspects == 0) {
    section_label(pen, "verdict");
    char line[1000] = "no rank differs from the others.";
    if (check->cannot_tell)
      snprintf(line, sizeof(line), "cannot tell: %s", check->cannot_tell);
    pen_words(pen, STYLE_PLAIN, VALUE_INDENT, line);
    return;
  }
  section_label(pen, "look at");
  pen_put(pen, STYLE_PLAIN, "first:");
  for (u32 i = 0; i < section_rows(view, check->n_suspects, SUSPECTS_SHOWN); i++)
    put_suspect(pen, &check->suspects[i]);
  if (check->n_suspects > section_rows(view, check->n_suspects, SUSPECTS_SHOWN)) {
    pen_newline(pen);
    pen_to(pen, TEXT_INDENT);
    pen_format(pen, STYLE_DIM, "and %u more",
               check->n_suspects - section_rows(view, check->n_suspects, SUSPECTS_SHOWN));
  }
}
