/* SPDX-License-Identifier: MIT
 *
 * The verdict: the findings that are worth most and what to do. At the end, all findings with their
 * evidence.
 */
#include <math.h>

#include "base/rank_list.h"
#include "report/text/section.h"

enum { TOP_FINDINGS = 3, RANK_LIST_CHARACTERS = 48, INDENT = 4 };

static void put_action(struct pen *pen, const struct finding *finding) {
  pen_line(pen, INDENT);
  pen_put(pen, STYLE_GOOD, "→ ");
  pen_hang(pen, INDENT + 2);
  pen_words(pen, STYLE_PLAIN, finding->action);
}

static void put_saving(struct pen *pen, const struct finding *finding,
                       const struct results *results) {
  const struct savings said = say_saving(finding, results, &pen->scratch);
  for (u32 i = 0; i < said.n; i++)
    pen_item(pen, i ? STYLE_PLAIN : STYLE_BOLD, "%s", said.texts[i]);
}

/* A line with a mark, which further lines stand below. */
static void begin_marked(struct pen *pen, enum mark mark) {
  pen_line(pen, TEXT_INDENT);
  put_mark(pen, mark);
  pen_blank(pen, 1);
  pen_hang(pen, INDENT);
}

static void put_mark_and_title(struct pen *pen, const struct finding *finding) {
  begin_marked(pen, mark_of(finding->severity));
  pen_words(pen, STYLE_BOLD, finding->title);
}

/* What could not be judged is part of the verdict: no finding must not look like praise. */
static void put_cannot_tell(struct pen *pen, const struct results *results) {
  FOR_EACH(results->undecided, results->n_undecided, one) {
    begin_marked(pen, MARK_UNKNOWN);
    pen_item(pen, STYLE_PLAIN, "cannot tell %s: %s", one->what, one->why);
  }
}

void body_verdict(struct pen *pen, const struct results *results) {
  u32 shown = MIN(results->n_findings, TOP_FINDINGS);
  FOR_EACH(results->findings, shown, finding) {
    put_mark_and_title(pen, finding);
    if (!isnan(finding->saving_s))
      put_saving(pen, finding, results);
    if (finding->close_second) {
      pen_line(pen, INDENT);
      pen_words(pen, STYLE_DIM, finding->close_second);
    }
    put_action(pen, finding);
  }
  if (results->n_findings > shown) {
    pen_line(pen, INDENT);
    pen_format(pen, STYLE_DIM, "and %s below", plural(results->n_findings - shown, "finding").text);
  }
  if (results->n_findings == 0)
    section_line(pen, STYLE_PLAIN, "%s", say_no_finding(results, &pen->scratch));
  const char *hidden = say_hidden_communication(results, &pen->scratch);
  if (hidden) {
    begin_marked(pen, MARK_GOOD);
    pen_item(pen, STYLE_PLAIN, "%s", hidden);
  }
  put_cannot_tell(pen, results);
}

void body_findings(struct pen *pen, const struct results *results) {
  FOR_EACH(results->findings, results->n_findings, finding) {
    put_mark_and_title(pen, finding);
    pen_line(pen, INDENT);
    pen_item(pen, STYLE_DIM, "%s", finding_id_words[finding->id]);
    pen_item(pen, STYLE_PLAIN, "%s", mark_text(mark_of(finding->severity)));
    put_saving(pen, finding, results);
    if (finding->n_ranks)
      pen_item(
          pen, STYLE_PLAIN, "%s",
          ranks_by_name(&pen->scratch, finding->ranks, finding->n_ranks, RANK_LIST_CHARACTERS));
    pen_line(pen, INDENT);
    pen_words(pen, STYLE_PLAIN, finding->evidence);
    put_action(pen, finding);
  }
  if (results->n_findings == 0)
    section_line(pen, STYLE_PLAIN, "none");
}

void body_diff_findings(struct pen *pen, const struct results *results) {
  body_findings(pen, results);
}
