/* SPDX-License-Identifier: MIT
 *
 * How one run differs from another, earlier one. NAN and NULL where not known; all of it where
 * there was nothing to compare with.
 */
#ifndef TSCOPE_DIFF_RESULT_H
#define TSCOPE_DIFF_RESULT_H

#include "format/tscope_format.h"

struct finding;
struct results;

/* One figure of both runs. Where it is known step by step, so is how far the runs' own noise
 * explains the change. */
struct diff_row {
  const char *section, *name, *unit; /* unit "ms" and "bytes", or as it says */
  double before, after;
  double change;  /* fraction of before */
  double p_value; /* that steps of one and the same run differ so much; NAN if not known by step */
  const char *verdict; /* "more", "less", "same"; NULL where noise is not known */
};

/* A fact about how the runs were made that differs. */
struct diff_fact {
  const char *what, *name;    /* "environment", "OMP_NUM_THREADS"; name may be NULL */
  const char *before, *after; /* NULL: not there */
};

/* A value that both runs tell for the same steps. */
struct diff_scalar {
  const char *name;
  double steps;         /* compared */
  double first_step;    /* where they differ at all, NAN if nowhere */
  double parted_step;   /* where they first differ by more than a thousandth, NAN if nowhere */
  double before, after; /* there */
};

/* One kind of collective of both runs. */
struct diff_collective {
  const char *op;
  double ranks, bytes;                    /* of the communicator; per instance */
  double before_per_step, after_per_step; /* instances; 0: not in that run */
  double before_ms, after_ms;             /* transfer, median */
  double change;                          /* of it */
};

struct diff_result {
  const struct results *earlier; /* what was compared with; it has to live as long as this */
  const char *before, *after;    /* what they are called; NULL where nothing was compared */
  const char *verdict; /* "slower", "faster", "no change beyond noise"; NULL: cannot tell */
  const char *reason;  /* why not */
  double step_before_ms, step_after_ms, step_change, step_p_value;
  double step_noise_ms; /* half the width of the 99 % interval of the change */
  struct diff_row *rows;
  u32 n_rows;
  struct diff_collective *collectives;
  u32 n_collectives;
  struct diff_fact *facts;
  u32 n_facts;
  struct diff_scalar *scalars;
  u32 n_scalars;
  struct finding *findings;
  u32 n_findings;
};

/* Nothing compared. */
extern const struct diff_result diff_none;

#endif
