/* SPDX-License-Identifier: MIT
 *
 * The verdict: the findings that are worth most and what to do. At the end, all findings with their
 * evidence.
 */
#include <math.h>

#include "report/text/section.h"

enum { TOP_FINDINGS = 3, RANK_LIST_CHARACTERS = 48, INDENT = 4 };

static void put_action(struct pen *pen, const struct finding *finding) {
  pen_line(pen, INDENT);
  pen_put(pen, STYLE_GOOD, "→ ");
  pen_hang(pen, INDENT + 2);
  pen_words(pen, STYLE_PLAIN, finding->action);
}

#define SPREAD_SHOWN 0.1 /* of a saving, between the quartiles of its steps */

/* Other findings would save part of the same time: together they are worth less than their sum. */
static void put_overlaps(struct pen *pen, const struct finding *finding) {
  double shared = finding->saving_s - finding->saving_added_s;
  if (finding->together) {
    pen_item(pen, STYLE_PLAIN, "only if %s are all mended", finding->together);
    return;
  }
  if (!finding->n_overlaps)
    return;
  bool whole = finding->saving_added_s < 0.01 * finding->saving_s;
  pen_item(pen, STYLE_PLAIN, whole ? "%s as %s" : "%s shared with %s",
           whole ? "the same time" : duration_s(shared).text, finding->overlaps[0]);
  for (u32 i = 1; i < finding->n_overlaps; i++)
    pen_item(pen, STYLE_PLAIN, "and %s", finding->overlaps[i]);
}

/* "12.3 s (30 % of the analysed steps)", or that it is not known. */
static void put_saving(struct pen *pen, const struct finding *finding,
                       const struct results *results) {
  if (isnan(finding->saving_s)) {
    pen_item(pen, STYLE_PLAIN, "saving unknown");
    return;
  }
  pen_item(pen, STYLE_BOLD, "saving %s (%s of the time)", duration_s(finding->saving_s).text,
           percent(finding->saving_s / results->analysed_s).text);
  if (finding->saving_high_s - finding->saving_low_s > SPREAD_SHOWN * finding->saving_s)
    pen_item(pen, STYLE_DIM, "%s to %s in half of the steps",
             percent(finding->saving_low_s / results->analysed_s).text,
             percent(finding->saving_high_s / results->analysed_s).text);
  put_overlaps(pen, finding);
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
  u32 shown = results->n_findings < TOP_FINDINGS ? results->n_findings : TOP_FINDINGS;
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
      item_of_ranks(pen, STYLE_PLAIN, finding->ranks, finding->n_ranks, RANK_LIST_CHARACTERS);
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
