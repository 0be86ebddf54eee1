/* SPDX-License-Identifier: MIT
 *
 * Ways to write a report. A new one is a file with one const struct report_backend, and its line in
 * backends.def.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "analyses/results/results.h"
#include "report/backends.def"

#define REPORT_MIN_WIDTH 60
#define REPORT_MAX_WIDTH 160
#define REPORT_DEFAULT_WIDTH 80
#define REPORT_MOST_ROWS 100000
#define REPORT_DEFAULT_LIMIT 300e6 /* bytes of a timeline */

/* How the reader will see the report. */
struct report_view {
  unsigned width; /* columns */
  bool utf8;
  bool color;
  bool links;                 /* places are links: only where a terminal reads it */
  bool html;                  /* marked up for a page; styles by class, which color switches on */
  const char *ranks, *groups; /* selected for entries and tables; NULL: all. See selection.h */
  bool stacks;                /* where calls were made, with entries */
  bool steps_requested;       /* --steps was given: the model has those only */
  double limit_bytes;         /* the most space that a timeline may take */
  unsigned threads;           /* 0: one per core */
  unsigned top;               /* rows of each table and list; 0: as many as are easy to read */
  const char
      *output; /* where it goes, by the name that its reader will use; NULL: standard output */
  const char *building; /* where it is while it is being written; NULL likewise */
};

/* What shows a report outside the terminal (--open). */
enum report_opens { OPENS_NOTHING, OPENS_PERFETTO, OPENS_PAGE };

struct report_backend {
  /* Writes the whole report. 0, or negative errno; the caller must look for errors of `out` itself
   * with ferror(). */
  int (*write)(const struct results *results, const struct report_view *view, FILE *out);
  /* The same for results that were compared with an earlier run's; NULL if there is no such form.
   */
  int (*write_diff)(const struct results *results, const struct report_view *view, FILE *out);
  const char *no_data; /* what -ENODATA of these means, and what to do */
  enum report_opens opens;
  bool binary; /* never to a terminal */
};

#define B(name, what) extern const struct report_backend report_##name;
TSCOPE_REPORT_BACKENDS(B)
#undef B

const struct report_backend *report_backend_default(void);

/* --export: writes groups.csv, memberships.csv, collectives.csv, calls.csv and, with all of them,
 * tables.json into `folder`, which is made if need be. Only what `view` selects. 0, or negative
 * errno: -ENODATA where the input has none. */
int export_tables(const struct results *results, const struct report_view *view,
                  const char *folder);

/* The format with this name (--format); NULL if there is none. */
const struct report_backend *report_backend_find(const char *name);
const char *report_backend_name(const struct report_backend *backend);

/* "text, json or html": the formats that fit; NULL for all. Valid until the next call. */
const char *report_backend_names(bool (*suits)(const struct report_backend *backend));
