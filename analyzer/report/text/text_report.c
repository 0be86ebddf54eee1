/* SPDX-License-Identifier: MIT
 *
 * The report for people: what it is based on, the verdict, then where the time went.
 */
#include <math.h>

#include "diff/diff_result.h"
#include "report/text/section.h"

enum { BAR_COLUMNS = 24 };

static section_body *const bodies[] = {
#define S(name, ...) body_##name,
    TSCOPE_SECTIONS(S) TSCOPE_DIFF_SECTIONS(S)
#undef S
};

static const struct {
  const char *word, *glyph;
  enum style style;
} marks[] = {
#define M(mark, json, word, glyph, style) {word, glyph, style},
    TSCOPE_MARKS(M)
#undef M
};

void put_mark(struct pen *pen, enum mark mark) {
  pen_put(pen, marks[mark].style, marks[mark].glyph);
}

const char *mark_text(enum mark mark) {
  return marks[mark].word;
}

void section_label(struct pen *pen, const char *label) {
  pen_line(pen, TEXT_INDENT);
  pen_put(pen, STYLE_DIM, label);
  pen_to(pen, VALUE_INDENT);
  pen_hang(pen, VALUE_INDENT);
}

void section_in_all(struct pen *pen, unsigned indent, u32 shown, u32 known, double all,
                    const char *what) {
  if (all <= shown)
    return;
  if (indent)
    pen_line(pen, indent);
  pen_item(pen, STYLE_DIM, "%s in all%s", plural(all, what).text,
           known > shown ? ": --top shows more" : "");
}

void section_parts(struct pen *pen, const char *label, const double ms[N_PARTS], double whole_ms) {
  const struct meter_part parts[] = {
#define P(part, name, style, glyph, ascii) {name, ms[PART_##part], style, glyph, ascii},
      BAR_PARTS(P)
#undef P
  };
  section_label(pen, label);
  meter_stack(pen, parts, N_PARTS, whole_ms, pen->width - VALUE_INDENT);
  section_label(pen, "");
  FOR_EACH(parts, N_PARTS, part)
    if (!isnan(part->value) && part->value != 0)
      pen_item(pen, part->style == STYLE_DIM ? STYLE_PLAIN : part->style, "%s %s %s (%s)",
               pen->utf8 ? part->glyph : part->ascii, part->name, duration_ms(part->value).text,
               percent(part->value / whole_ms).text);
}

void section_rank(struct pen *pen, enum style of_rank, u32 rank, enum style of_host,
                  const char *host) {
  pen_line(pen, TEXT_INDENT);
  pen_hang(pen, TEXT_INDENT + 2);
  pen_format(pen, of_rank, "rank %u", rank);
  if (host)
    pen_format(pen, of_host, " on %s", host);
}

static void put_fact(struct pen *pen, const struct fact *fact) {
  static const enum style styles[] = {
      [TONE_PLAIN] = STYLE_PLAIN, [TONE_STRONG] = STYLE_BOLD,     [TONE_DIM] = STYLE_DIM,
      [TONE_GOOD] = STYLE_GOOD,   [TONE_WARNING] = STYLE_WARNING, [TONE_CRITICAL] = STYLE_CRITICAL,
  };
  if (fact->label)
    section_label(pen, fact->label);
  if (isnan(fact->share)) {
    pen_item(pen, styles[fact->tone], "%s", fact->text);
    return;
  }
  bool alarms = fact->tone == TONE_WARNING || fact->tone == TONE_CRITICAL;
  meter_bar(pen, alarms ? styles[fact->tone] : STYLE_NOTE, fact->share, BAR_COLUMNS);
  pen_blank(pen, 2);
  pen_words(pen, styles[fact->tone], fact->text);
}

void put_facts(struct pen *pen, enum section_id id, const struct results *results) {
  const struct facts facts = section_facts(id, results, &pen->scratch);
  FOR_EACH(facts.at, facts.n, fact)
    put_fact(pen, fact);
}

void put_basis(struct pen *pen, enum section_id id, const struct results *results) {
  const struct facts basis = section_basis(id, results, &pen->scratch);
  FOR_EACH(basis.at, basis.n, fact)
    put_fact(pen, fact);
}

/* These have facts alone. */
void body_trust(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_trust, results);
}

void body_convergence(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_convergence, results);
}

void body_diff_steps(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_diff_steps, results);
}

static void put_heading(struct pen *pen, const struct section *section) {
  const char *word = mark_text(section->mark);
  put_mark(pen, section->mark);
  pen_blank(pen, 1);
  pen_put(pen, STYLE_BOLD, section->title);
  pen_blank(pen, 1);
  unsigned rest = pen_measure(pen, word) + 1;
  if (pen->column + rest < pen->width)
    pen_repeat(pen, STYLE_DIM, "─", pen->width - pen->column - rest);
  pen_blank(pen, 1);
  pen_put(pen, marks[section->mark].style, word);
  pen_newline(pen);
}

static void put_section(struct pen *pen, enum section_id id, const struct results *results) {
  const struct section section = section_of(id, results);
  if (!section.shown)
    return;
  pen_newline(pen);
  put_heading(pen, &section);
  pen_hang(pen, TEXT_INDENT);
  if (section.unknown) {
    pen_line(pen, TEXT_INDENT);
    pen_put(pen, STYLE_PLAIN, "unknown: ");
    pen_words(pen, STYLE_PLAIN, section.unknown);
  } else {
    bodies[id](pen, results);
  }
  arena_release(&pen->scratch);
  pen_finish(pen);
}

static void put_title(struct pen *pen, const struct model *model) {
  pen_put(pen, STYLE_BOLD, "tscope");
  pen_blank(pen, 1);
  pen_hang(pen, pen->column);
  pen_item(pen, STYLE_PLAIN, "run %s", model->run ? model->run : quantity_unknown);
  if (model->n_ranks)
    pen_item(pen, STYLE_PLAIN, "%s", plural(model->n_ranks, "rank").text);
  if (model->begin != NS_UNKNOWN && model->end != NS_UNKNOWN)
    pen_item(pen, STYLE_PLAIN, "%s", duration_s(ns_to_s(model->end - model->begin)).text);
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
  for (unsigned id = 0; id < SECTIONS_END; id++)
    put_section(&pen, id, results);
  return 0;
}

/* "before  /tmp/a1 · /tmp/a2 · /tmp/a3 · 4 ranks" */
static void put_runs(struct pen *pen, const struct results *shown, enum diff_side_name side) {
  const struct diff_result *diff = shown->diff;
  const struct model *model = (side == SIDE_BEFORE ? diff->earlier : shown)->model;
  pen_blank(pen, 7);
  pen_put(pen, STYLE_DIM, diff_side_name_words[side]);
  pen_to(pen, VALUE_INDENT);
  pen_hang(pen, VALUE_INDENT);
  FOR_EACH(diff->runs, diff->n_runs, run)
    if (run->side == side)
      pen_item(pen, STYLE_PLAIN, "%s", run->path ? run->path : run->name);
  if (model->n_ranks)
    pen_item(pen, STYLE_PLAIN, "%s", plural(model->n_ranks, "rank").text);
  pen_newline(pen);
}

static int write_diff_text(const struct results *results, const struct report_view *view,
                           FILE *out) {
  struct pen pen = pen_begin(view, out);
  pen.linked = view->links ? results : NULL;
  const struct results compared = section_compared(results);
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
  for (unsigned id = SECTIONS_END; id < N_SECTIONS; id++)
    put_section(&pen, id, &compared);
  return 0;
}

const struct report_backend report_text = {.write = write_text, .write_diff = write_diff_text};
