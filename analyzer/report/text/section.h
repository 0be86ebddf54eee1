/* SPDX-License-Identifier: MIT
 *
 * The text report is a list of sections (report/sections.def): each has a mark and a body.
 */
#ifndef TSCOPE_SECTION_H
#define TSCOPE_SECTION_H

#include "base/quantity.h"
#include "report/sections.h"
#include "report/text/meter.h"
#include "report/text/pen.h"

typedef void section_body(struct pen *pen, const struct results *results,
                          const struct report_view *view);

#define S(name, ...) section_body body_##name;
TSCOPE_SECTIONS(S)
TSCOPE_DIFF_SECTIONS(S)
#undef S

/* Columns of every section's body. */
enum { TEXT_INDENT = 2, VALUE_INDENT = 14 };

void put_mark(struct pen *pen, enum mark mark);

/* "ok", "CRITICAL" and so on, as text shows them; "" for MARK_NONE. */
const char *mark_text(enum mark mark);

/* Starts a line "  label       " for pen_item() with VALUE_INDENT to go on. */
void section_label(struct pen *pen, const char *label);

/* A time as one bar, of which it is the sum, exactly, and below it each part. */
void section_parts(struct pen *pen, const char *label, const struct meter_part *parts, unsigned n,
                   double whole_ms);

/* How many rows of n to show: --top, else as many as are easy to read. */
static inline u32 section_rows(const struct report_view *view, u32 n, u32 reads_well) {
  u32 most = view->top ? view->top : reads_well;
  return n < most ? n : most;
}

/* "a step"; "in all" if there were no steps and figures are for the whole run. */
const char *section_per(const struct results *results);

#endif
