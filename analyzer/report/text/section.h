/* SPDX-License-Identifier: MIT
 *
 * The text report is a list of sections (report/sections.def): each has a mark and a body.
 */
#pragma once

#include "base/quantity.h"
#include "report/facts/facts.h"
#include "report/parts.def"
#include "report/sentences.h"
#include "report/text/meter.h"
#include "report/text/pen.h"

typedef void section_body(struct pen *pen, const struct results *results);

#define S(name, ...) section_body body_##name;
TSCOPE_SECTIONS(S)
TSCOPE_DIFF_SECTIONS(S)
#undef S

/* Columns of every section's body. */
enum { TEXT_INDENT = 2, VALUE_INDENT = 14 };

void put_mark(struct pen *pen, enum mark mark);

/* "ok", "CRITICAL" and so on, as text shows them; "" for MARK_NONE. */
const char *mark_text(enum mark mark);

/* Starts a line "  label       ", which pen_item() goes on with. */
void section_label(struct pen *pen, const char *label);

/* The same with its first item, and a line without a label. */
#define section_value(pen, label, ...) (section_label(pen, label), pen_item(pen, __VA_ARGS__))
#define section_line(pen, ...) (pen_line(pen, TEXT_INDENT), pen_item(pen, __VA_ARGS__))

/* Begins a line about a rank: "rank 3 on node1", which pen_item() goes on with. */
void section_rank(struct pen *pen, enum style of_rank, u32 rank, enum style of_host,
                  const char *host);

enum part {
#define P(part, ...) PART_##part,
  BAR_PARTS(P) N_PARTS,
#undef P
};

/* A time as one bar, of which it is the sum, exactly, and below it each part. NAN or 0: none. */
void section_parts(struct pen *pen, const char *label, const double ms[N_PARTS], double whole_ms);

/* The facts of a section (report/facts/facts.h), each line with its label. */
void put_facts(struct pen *pen, enum section_id id, const struct results *results);

/* What the figures of a section rest on: items of the line that was begun. */
void put_basis(struct pen *pen, enum section_id id, const struct results *results);

/* How many rows of n to show: --top, else as many as are easy to read. */
static inline u32 section_rows(const struct pen *pen, u32 n, u32 reads_well) {
  u32 most = pen->view->top ? pen->view->top : reads_well;
  return MIN(n, most);
}

/* "61 names in all: --top shows more", where `shown` of them are shown, and of `known` the report
 * has what it would show. In the line that was begun, or with an indent in one of its own. */
void section_in_all(struct pen *pen, unsigned indent, u32 shown, u32 known, double all,
                    const char *what);
