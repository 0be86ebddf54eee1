/* SPDX-License-Identifier: MIT
 *
 * The report for people: what it is based on, the verdict, then where the time went.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/findings/findings.def"
#include "diff/diff_result.h"
#include "report/text/section.h"

static const struct section *const sections[] = {
#define S(name) &section_##name,
    REPORT_SECTIONS(S)};

static const struct section *const diff_sections[] = {DIFF_SECTIONS(S)};
#undef S

#define S(name) BIT_##name,
enum { REPORT_SECTIONS(S) REPORT_BITS };
#undef S
#define S(name) DIFF_BIT_##name,
enum { DIFF_SECTIONS(S) DIFF_BITS };
#undef S
_Static_assert(REPORT_BITS <= 32 && DIFF_BITS <= 32, "shown_in[] has 32 bits");

/* For each finding's id, the sections that it belongs to: a bit for each, by its position in the
 * report. */
static const u32 shown_in[] = {
#define IN(name) 1u << BIT_##name |
#define F(group, name, rule, sections, ...) [FINDING_##group##_##name] = sections 0,
    TSCOPE_FINDINGS(F)
#undef IN
#define IN(name) 1u << DIFF_BIT_##name |
        TSCOPE_DIFF_FINDINGS(F)
#undef F
#undef IN
};

static const struct {
  const char *glyph, *word;
  enum style style;
} badges[] = {
    [BADGE_GOOD] = {"●", "ok", STYLE_GOOD},
    [BADGE_NOTE] = {"◆", "note", STYLE_NOTE},
    [BADGE_WARNING] = {"▲", "warning", STYLE_WARNING},
    [BADGE_CRITICAL] = {"■", "CRITICAL", STYLE_CRITICAL},
    [BADGE_UNKNOWN] = {"○", "unknown", STYLE_DIM},
    [BADGE_NONE] = {"·", "", STYLE_DIM}, /* no finding judges the section */
};

enum style badge_style(enum badge badge) {
  return badges[badge].style;
}
const char *badge_glyph(enum badge badge) {
  return badges[badge].glyph;
}
const char *badge_word(enum badge badge) {
  return badges[badge].word;
}

enum badge badge_of(enum severity severity) {
  return severity == SEVERITY_CRITICAL  ? BADGE_CRITICAL
         : severity == SEVERITY_WARNING ? BADGE_WARNING
                                        : BADGE_NOTE;
}

void section_label(struct pen *pen, const char *label) {
  if (pen->column)
    pen_newline(pen);
  pen_to(pen, TEXT_INDENT);
  pen_put(pen, STYLE_DIM, label);
  pen_to(pen, VALUE_INDENT);
}

const char *section_per(const struct results *results) {
  return results->whole_run ? "in all" : "a step";
}

bool section_always(const struct results *results) {
  (void)results;
  return true;
}

bool section_has_timelines(const struct results *results) {
  return results->model->n_ranks > 0;
}

static bool is_judged(const struct section *section, unsigned place) {
  bool judged = section->of_all_findings;
  for (size_t id = 0; id < sizeof(shown_in) / sizeof(*shown_in); id++)
    judged |= shown_in[id] >> place & 1;
  return judged;
}

static enum badge section_badge(const struct section *section, unsigned place,
                                const struct results *results) {
  bool unjudged = section->unjudged && section->unjudged(results);
  enum badge badge = BADGE_GOOD;
  for (u32 i = 0; i < results->n_findings; i++) {
    const struct finding *finding = &results->findings[i];
    bool belongs = section->of_all_findings || shown_in[finding->id] >> place & 1;
    enum badge one = badge_of(finding->severity);
    if (belongs && one > badge)
      badge = one;
  }
  return badge != BADGE_GOOD          ? badge
         : !is_judged(section, place) ? BADGE_NONE
         : unjudged                   ? BADGE_UNKNOWN
                                      : BADGE_GOOD;
}

static void put_heading(struct pen *pen, const char *title, enum badge badge) {
  const char *word = badge_word(badge);
  pen_put(pen, badge_style(badge), badge_glyph(badge));
  pen_blank(pen, 1);
  pen_put(pen, STYLE_BOLD, title);
  pen_blank(pen, 1);
  unsigned rest = pen_measure(pen, word) + 1;
  if (pen->column + rest < pen->width)
    pen_repeat(pen, STYLE_DIM, "─", pen->width - pen->column - rest);
  pen_blank(pen, 1);
  pen_put(pen, badge_style(badge), word);
  pen_newline(pen);
}

/* `place`: among the sections of its report. */
static void put_section(struct pen *pen, const struct section *section, unsigned place,
                        const struct results *results, const struct report_view *view) {
  if (!section->applies(results))
    return;
  const char *unknown = section->unknown ? section->unknown(results) : NULL;
  pen_newline(pen);
  put_heading(pen, section->title,
              unknown ? BADGE_UNKNOWN : section_badge(section, place, results));
  if (unknown) {
    pen_to(pen, TEXT_INDENT);
    pen_put(pen, STYLE_PLAIN, "unknown: ");
    pen_words(pen, STYLE_PLAIN, TEXT_INDENT, unknown);
  } else {
    section->body(pen, results, view);
  }
  if (pen->column)
    pen_newline(pen);
}

static void put_title(struct pen *pen, const struct model *model) {
  pen_put(pen, STYLE_BOLD, "tscope");
  pen_blank(pen, 1);
  pen_item_format(pen, STYLE_PLAIN, 7, "run %s", model->run ? model->run : quantity_unknown);
  if (model->n_ranks)
    pen_item(pen, STYLE_PLAIN, 7, plural(model->n_ranks, "rank").text);
  if (model->begin != NS_UNKNOWN && model->end != NS_UNKNOWN)
    pen_item(pen, STYLE_PLAIN, 7, duration_s((double)(model->end - model->begin) / 1e9).text);
  pen_newline(pen);
  if (model->command) {
    pen_blank(pen, 7);
    pen_left(pen, STYLE_DIM, model->command, pen->width - 7);
    pen_newline(pen);
  }
}

static int write_text(const struct results *results, const struct report_view *view, FILE *out) {
  struct pen pen = pen_begin(view, out);
  pen.linked = view->links ? results : NULL;
  put_title(&pen, results->model);
  for (unsigned i = 0; i < REPORT_BITS; i++)
    put_section(&pen, sections[i], i, results, view);
  return 0;
}

/* "before  /tmp/a1 · /tmp/a2 · /tmp/a3 · 4 ranks" */
static void put_runs(struct pen *pen, const struct results *shown, enum diff_side_name side) {
  const struct diff_result *diff = shown->diff;
  const struct model *model = (side == SIDE_BEFORE ? diff->earlier : shown)->model;
  pen_blank(pen, 7);
  pen_put(pen, STYLE_DIM, diff_side_name_words[side]);
  pen_to(pen, VALUE_INDENT);
  for (u32 i = 0; i < diff->n_runs; i++) {
    const struct diff_run *run = &diff->runs[i];
    if (run->side == side)
      pen_item(pen, STYLE_PLAIN, VALUE_INDENT, run->path ? run->path : run->name);
  }
  if (model->n_ranks)
    pen_item(pen, STYLE_PLAIN, VALUE_INDENT, plural(model->n_ranks, "rank").text);
  pen_newline(pen);
}

/* The findings of the comparison replace the later run's own. */
static int write_diff_text(const struct results *results, const struct report_view *view,
                           FILE *out) {
  struct pen pen = pen_begin(view, out);
  pen.linked = view->links ? results : NULL;
  struct results compared = *results;
  compared.findings = results->diff->findings;
  compared.n_findings = results->diff->n_findings;
  pen_put(&pen, STYLE_BOLD, "tscope");
  pen_blank(&pen, 1);
  if (results->diff->n_runs > 2)
    pen_format(&pen, STYLE_PLAIN, "%s against %.0f", plural(results->diff->runs_before, "run").text,
               results->diff->runs_after);
  else
    pen_put(&pen, STYLE_PLAIN, "two runs compared");
  pen_newline(&pen);
  put_runs(&pen, results, SIDE_BEFORE);
  put_runs(&pen, results, SIDE_AFTER);
  for (unsigned i = 0; i < DIFF_BITS; i++)
    put_section(&pen, diff_sections[i], i, &compared, view);
  return 0;
}

const struct report_backend report_text = {.write = write_text, .write_diff = write_diff_text};
