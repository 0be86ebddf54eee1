/* SPDX-License-Identifier: MIT
 *
 * Ways to write a report. A new one is a file with one const struct report_backend and its line in
 * backends.c; --format, --help and the man page follow.
 */
#ifndef TSCOPE_REPORT_H
#define TSCOPE_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyses/results.h"

#define REPORT_MIN_WIDTH 60
#define REPORT_MAX_WIDTH 160
#define REPORT_DEFAULT_WIDTH 80

/* How the reader sees it, and what the command line said about the job. */
struct report_view {
  unsigned width; /* columns */
  bool utf8;
  bool color;
  double tokens_per_step;     /* NAN if not given */
  const char *ranks, *groups; /* selected for entries and tables; NULL: all. See selection.h */
  bool stacks;                /* where calls were made, with entries */
};

struct report_backend {
  const char *name; /* --format NAME */
  const char *summary;
  /* Writes the whole report. 0, or negative errno; errors of `out` itself are the caller's to
   * find with ferror(). */
  int (*write)(const struct results *results, const struct report_view *view, FILE *out);
  /* Likewise, of results that were compared with an earlier run's; NULL if it has no such form. */
  int (*write_diff)(const struct results *results, const struct report_view *view, FILE *out);
};

extern const struct report_backend report_text, report_json, report_html, report_entries;

/* All of them, NULL at the end; the first is the default. */
extern const struct report_backend *const report_backends[];

/* NULL if there is none of that name. */
const struct report_backend *report_backend_find(const char *name);

#endif
