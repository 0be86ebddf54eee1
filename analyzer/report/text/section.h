/* SPDX-License-Identifier: MIT
 *
 * The text report is a list of sections (text_report.c). Each has a badge that shows the worst of
 * the findings that belong to it, and a body.
 */
#ifndef TSCOPE_SECTION_H
#define TSCOPE_SECTION_H

#include "base/quantity.h"
#include "report/text/pen.h"

enum badge { BADGE_GOOD, BADGE_NOTE, BADGE_WARNING, BADGE_CRITICAL, BADGE_UNKNOWN, BADGE_NONE };

struct section {
  const char *title;
  /* Whether the input has the facts of this section; without them it is left out. */
  bool (*applies)(const struct results *results);
  /* Why nothing is known; NULL if something is. The function may be NULL. */
  const char *(*unknown)(const struct results *results);
  /* True if something is known but cannot be judged: then it means nothing that no finding belongs
   * to the section. May be NULL. */
  bool (*unjudged)(const struct results *results);
  void (*body)(struct pen *pen, const struct results *results, const struct report_view *view);
  bool of_all_findings; /* not only of those that are IN() it, see findings.def */
};

/* In the order of the report. */
#define REPORT_SECTIONS(S)                                                                         \
  S(run_end)                                                                                       \
  S(trust)                                                                                         \
  S(hang)                                                                                          \
  S(stalls)                                                                                        \
  S(verdict)                                                                                       \
  S(steps)                                                                                         \
  S(phases)                                                                                        \
  S(ranges)                                                                                        \
  S(lines)                                                                                         \
  S(distributed)                                                                                   \
  S(overlap)                                                                                       \
  S(collectives)                                                                                   \
  S(gpu)                                                                                           \
  S(kernels)                                                                                       \
  S(gemms)                                                                                         \
  S(path)                                                                                          \
  S(pipeline)                                                                                      \
  S(budget)                                                                                        \
  S(memory)                                                                                        \
  S(modules)                                                                                       \
  S(convergence)                                                                                   \
  S(findings)

#define DIFF_SECTIONS(S)                                                                           \
  S(diff_steps)                                                                                    \
  S(findings)                                                                                      \
  S(diff_times)                                                                                    \
  S(diff_lines)                                                                                    \
  S(diff_kernels)                                                                                  \
  S(diff_memory)                                                                                   \
  S(diff_collectives)                                                                              \
  S(diff_scalars)                                                                                  \
  S(diff_provenance)

#define S(name) extern const struct section section_##name;
REPORT_SECTIONS(S)
DIFF_SECTIONS(S)
#undef S

/* Columns of every section's body. */
enum { TEXT_INDENT = 2, VALUE_INDENT = 14 };

/* For `applies`: always, and for inputs that show ranks over time. */
bool section_always(const struct results *results);
bool section_has_timelines(const struct results *results);

enum style badge_style(enum badge badge);
const char *badge_glyph(enum badge badge);
const char *badge_word(enum badge badge);
enum badge badge_of(enum severity severity);

/* Starts a line "  label       " for pen_item() with VALUE_INDENT to go on. */
void section_label(struct pen *pen, const char *label);

/* How many rows of n to show: --top, else as many as are easy to read. */
static inline u32 section_rows(const struct report_view *view, u32 n, u32 reads_well) {
  u32 most = view->top ? view->top : reads_well;
  return n < most ? n : most;
}

/* "a step"; "in all" if there were no steps and figures are for the whole run. */
const char *section_per(const struct results *results);

#endif
