/* SPDX-License-Identifier: MIT
 *
 * The verdict: the findings that are worth most and what to do. At the end, all findings with their
 * evidence.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rank_list.h"
#include "report/text/section.h"

#define MUCH_COMMUNICATION 0.2 /* of a step */
#define MOSTLY_HIDDEN 0.9

enum { TOP_FINDINGS = 3, RANK_LIST_CHARACTERS = 48, INDENT = 4 };

static void put_action(struct pen *pen, const struct finding *finding) {
  pen_newline(pen);
  pen_to(pen, INDENT);
  pen_put(pen, STYLE_GOOD, "→ ");
  pen_words(pen, STYLE_PLAIN, INDENT + 2, finding->action);
}

#define SPREAD_SHOWN 0.1 /* of a saving, between the quartiles of its steps */

/* Other findings would save part of the same time: together they are worth less than their sum. */
static void put_overlaps(struct pen *pen, const struct finding *finding) {
  double shared = finding->saving_s - finding->saving_added_s;
  if (finding->together) {
    pen_item_format(pen, STYLE_PLAIN, INDENT, "only if %s are all mended", finding->together);
    return;
  }
  if (!finding->n_overlaps)
    return;
  bool whole = finding->saving_added_s < 0.01 * finding->saving_s;
  pen_item_format(pen, STYLE_PLAIN, INDENT, whole ? "%s as %s" : "%s shared with %s",
                  whole ? "the same time" : duration_s(shared).text, finding->overlaps[0]);
  for (u32 i = 1; i < finding->n_overlaps; i++)
    pen_item_format(pen, STYLE_PLAIN, INDENT, "and %s", finding->overlaps[i]);
}

/* "12.3 s (30 % of the analysed steps)", or that it is not known. */
static void put_saving(struct pen *pen, const struct finding *finding,
                       const struct results *results) {
  if (isnan(finding->saving_s)) {
    pen_item(pen, STYLE_PLAIN, INDENT, "saving unknown");
    return;
  }
  pen_item_format(pen, STYLE_BOLD, INDENT, "saving %s (%s of the time)",
                  duration_s(finding->saving_s).text,
                  percent(finding->saving_s / results->analysed_s).text);
  if (finding->saving_high_s - finding->saving_low_s > SPREAD_SHOWN * finding->saving_s)
    pen_item_format(pen, STYLE_DIM, INDENT, "%s to %s in half of the steps",
                    percent(finding->saving_low_s / results->analysed_s).text,
                    percent(finding->saving_high_s / results->analysed_s).text);
  put_overlaps(pen, finding);
}

static void put_mark_and_title(struct pen *pen, const struct finding *finding) {
  enum mark mark = mark_of(finding->severity);
  pen_to(pen, TEXT_INDENT);
  put_mark(pen, mark);
  pen_blank(pen, 1);
  pen_words(pen, STYLE_BOLD, INDENT, finding->title);
}

static void put_close_second(struct pen *pen, const struct finding *finding) {
  if (!finding->close_second)
    return;
  pen_newline(pen);
  pen_to(pen, INDENT);
  pen_words(pen, STYLE_DIM, INDENT, finding->close_second);
}

/* What could not be judged is part of the verdict: no finding must not look like praise. */
static void put_cannot_tell(struct pen *pen, const struct results *results) {
  for (u32 i = 0; i < results->n_undecided; i++) {
    if (pen->column)
      pen_newline(pen);
    pen_to(pen, TEXT_INDENT);
    put_mark(pen, MARK_UNKNOWN);
    pen_blank(pen, 1);
    pen_format(pen, STYLE_PLAIN, "cannot tell %s: ", results->undecided[i].what);
    pen_words(pen, STYLE_PLAIN, INDENT, results->undecided[i].why);
  }
}

/* Where much of a step communicates and most of that costs nothing, this is the first thing to know
 * of it: no finding says so. */
static void put_hidden_communication(struct pen *pen, const struct results *results) {
  double hidden = results->ov_overlapped_ms / results->ov_comm_ms;
  if (!(results->comm_fraction >= MUCH_COMMUNICATION && hidden >= MOSTLY_HIDDEN))
    return;
  if (pen->column)
    pen_newline(pen);
  pen_to(pen, TEXT_INDENT);
  put_mark(pen, MARK_GOOD);
  pen_blank(pen, 1);
  pen_words(pen, STYLE_PLAIN, INDENT, "communication is hidden:");
  pen_format(pen, STYLE_PLAIN, " %s of %s%s", duration_ms(results->ov_overlapped_ms).text,
             duration_ms(results->ov_comm_ms).text, isnan(results->ov_steps) ? "" : " a step");
  pen_format(pen, STYLE_PLAIN, " (%s)", percent(hidden).text);
}

void body_verdict(struct pen *pen, const struct results *results, const struct report_view *view) {
  (void)view;
  u32 shown = results->n_findings < TOP_FINDINGS ? results->n_findings : TOP_FINDINGS;
  for (u32 i = 0; i < shown; i++) {
    const struct finding *finding = &results->findings[i];
    if (pen->column)
      pen_newline(pen);
    put_mark_and_title(pen, finding);
    if (!isnan(finding->saving_s))
      put_saving(pen, finding, results);
    put_close_second(pen, finding);
    put_action(pen, finding);
  }
  if (results->n_findings > shown) {
    pen_newline(pen);
    pen_to(pen, INDENT);
    pen_format(pen, STYLE_DIM, "and %s below", plural(results->n_findings - shown, "finding").text);
  }
  if (results->n_findings == 0) {
    pen_to(pen, TEXT_INDENT);
    pen_words(pen, STYLE_PLAIN, TEXT_INDENT,
              results->n_undecided
                  ? "No finding reached its threshold, but some things could not be judged:"
                  : "Nothing that was measured stands out: no finding reached its threshold.");
    if (results->convergence.reason && results->step_count > 0 && !results->n_step_kinds)
      pen_words(pen, STYLE_PLAIN, TEXT_INDENT, " No loss is known.");
  }
  put_hidden_communication(pen, results);
  put_cannot_tell(pen, results);
}

void body_findings(struct pen *pen, const struct results *results, const struct report_view *view) {
  (void)view;
  for (u32 i = 0; i < results->n_findings; i++) {
    const struct finding *finding = &results->findings[i];
    if (pen->column)
      pen_newline(pen);
    put_mark_and_title(pen, finding);
    pen_newline(pen);
    pen_to(pen, INDENT);
    pen_item(pen, STYLE_DIM, INDENT, finding_id_words[finding->id]);
    pen_item(pen, STYLE_PLAIN, INDENT, mark_text(mark_of(finding->severity)));
    put_saving(pen, finding, results);
    if (finding->n_ranks) {
      char *list = rank_list(finding->ranks, finding->n_ranks, RANK_LIST_CHARACTERS);
      pen_item_format(pen, STYLE_PLAIN, INDENT, "%s %s", finding->n_ranks == 1 ? "rank" : "ranks",
                      list);
      free(list);
    }
    pen_newline(pen);
    pen_to(pen, INDENT);
    pen_words(pen, STYLE_PLAIN, INDENT, finding->evidence);
    put_action(pen, finding);
  }
  if (results->n_findings == 0) {
    pen_to(pen, TEXT_INDENT);
    pen_put(pen, STYLE_PLAIN, "none");
  }
}

void body_diff_findings(struct pen *pen, const struct results *results,
                        const struct report_view *view) {
  body_findings(pen, results, view);
}
