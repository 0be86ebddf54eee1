/* SPDX-License-Identifier: MIT
 *
 * Says on stderr what is being done, once it has taken longer than a second. On a terminal that is
 * one line that rewrites itself and goes away; elsewhere a plain line now and then.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct progress {
  FILE *out;
  bool terminal;
  double begin_s, next_s; /* CLOCK_MONOTONIC */
  bool shown;
};

struct progress progress_begin(FILE *out);

/* As model_options.progress and analyse_options.progress want it; `user` is a struct progress. */
void progress_report(void *user, const char *what, double fraction);

/* Takes the line away again. */
void progress_end(struct progress *progress);
