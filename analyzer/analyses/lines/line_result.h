/* SPDX-License-Identifier: MIT
 *
 * What each line of the program cost. Part of struct results.
 */
#ifndef TSCOPE_LINE_RESULT_H
#define TSCOPE_LINE_RESULT_H

enum { LINES_LISTED = 100 };

/* Per step, mean over ranks: those of `file` and `line` and of all that they call in others' code.
 */
struct line_result {
  const char *place;    /* "train.py:88", short */
  const char *file;     /* as the program says it */
  const char *function; /* qualified */
  double line;
  double waits, wait_ms;      /* the host blocked on the GPU or on a collective */
  double idle_ms;             /* the GPU then had nothing to do, until it was given work again */
  double input_ms;            /* in the data phase */
  double collectives;         /* calls, and groups of them */
  double comm_ms, exposed_ms; /* that they ran; of which nothing was computed meanwhile */
  double launches, gpu_ms;    /* put on the GPU, communication apart; from samples */
  double samples;             /* launches in the trace that `launches` and `gpu_ms` rest on */
  double without_ms;          /* what a step would take if the host did not wait there; NAN */
  double backward;            /* share of the calls that autograd made for it, 0..1 */
};

struct lines_result {
  struct line_result *at; /* most time first */
  unsigned n;             /* LINES_LISTED at most */
  double known;           /* how many lines there are; NAN without call sites, likewise the next */
  double sites;           /* call sites in the trace */
  const char *reason;     /* why there are none, NULL where there are, or no Python */
};

#endif
