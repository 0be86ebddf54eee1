/* SPDX-License-Identifier: MIT
 *
 * How each section of sections.def is judged: its mark is that of the worst of the findings that
 * belong to it.
 */
#pragma once

#include "analyses/results/results.h"
#include "report/marks.def"
#include "report/sections.def"

enum section_id {
#define S(name, ...) SECTION_##name,
  TSCOPE_SECTIONS(S) TSCOPE_DIFF_SECTIONS(S) N_SECTIONS,
#undef S
  SECTIONS_END = SECTION_diff_steps, /* of a report; those of a comparison follow */
};

enum mark {
#define M(mark, ...) MARK_##mark,
  TSCOPE_MARKS(M) N_MARKS,
#undef M
};

struct section {
  const char *name, *title;
  bool shown;
  enum mark mark;      /* MARK_NONE: no finding judges the section */
  const char *unknown; /* why nothing is known; NULL if something is */
};

/* Of a section of a comparison, `results` have its findings: see section_compared(). */
struct section section_of(enum section_id id, const struct results *results);

/* Something is known of it, but cannot be judged. */
bool section_unjudged(enum section_id id, const struct results *results);

struct results section_compared(const struct results *results);

/* The titles of findings' sections, for the document. */
const char *section_title(enum section_id id);

enum mark mark_of(enum severity severity);

/* "ok", "note" and so on; NULL for MARK_NONE. */
extern const char *const mark_words[N_MARKS];
