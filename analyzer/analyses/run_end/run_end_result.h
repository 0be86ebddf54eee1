/* SPDX-License-Identifier: MIT
 *
 * How the run ended, and who ended it: a part of struct results.
 */
#ifndef TSCOPE_RUN_END_RESULT_H
#define TSCOPE_RUN_END_RESULT_H

#include "format/tscope_format.h"

struct rank_ending {
  u32 rank; /* global */
  const char *host;
  const char *part;      /* "culprit", "followed", "in order", "silent", "no record" */
  const char *how;       /* "exit", "_exit", "signal", "silent", "no record" */
  double status, signal; /* NAN */
  double at_s;           /* on the run's axis; NAN */
  const char *why;       /* in words */
  const char *exception; /* NULL */
  double step;           /* it was in; NAN */
  const char *phase;     /* NULL */
  const char *call;      /* the last collective it made; NULL */
  const char *pending;   /* "yes" where that had not returned, else "no"; NULL without a call */
};

struct run_end {
  const char *how;   /* "in order", "early", "cannot tell"; NULL: the traces do not tell */
  const char *cause; /* of the first culprit: "exception", "out of memory", ...; NULL */
  char *summary;     /* one or two sentences; NULL where `how` is NULL or "in order" */
  char *calls;       /* which collective a culprit left out, or made too many; NULL */
  u32 *culprits;     /* global */
  u32 n_culprits;
  double ahead_s;            /* so long before the next rank that followed; NAN */
  double followed;           /* ranks that only followed */
  struct rank_ending *ranks; /* in the order in which they ended */
  u32 n_ranks;
};

#endif
