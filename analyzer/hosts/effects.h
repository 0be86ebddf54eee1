/* SPDX-License-Identifier: MIT
 *
 * Which hosts (or devices, or links) differ from the others over many runs, by how much, and since
 * when. An observation is the sum of what belongs to its run, to the place in the job, and to the
 * host, and of noise:
 *
 *   value = run + position + host + noise
 *
 * The first two are medians, so what a job's own imbalance explains is no host's: rank 0 of a job
 * may do more wherever it runs. Where a position never moved between hosts, the two cannot be told
 * apart, and its observations are left out and counted. The host's part may begin and end within
 * the record. A part is believed if chance makes one as large, among all hosts and all stretches of
 * runs together, at most once in ten thousand reports (Bonferroni).
 */
#pragma once

#include "base/intervals.h"
#include "base/vector.h"

#define EFFECTS_PROBABILITY 1e-4
enum { EFFECT_LEAST_RUNS = 5, POSITION_LEAST_UNITS = 3 };

struct observation {
  u32 run;      /* its number in order of time */
  u32 group;    /* observations that are compared with each other: often the run */
  u32 position; /* in its job; INDEX_NONE: none */
  u32 unit;     /* host, device or link */
  double value; /* known; larger is worse: a logarithm of time, or a share of it */
};

struct observations {
  VECTOR(struct observation) all;
  u32 runs, groups, positions, units; /* numbers are below these */
};

struct effect {
  u32 unit;
  u32 runs;           /* of the unit, in the stretch */
  u32 first, last;    /* the first and the last of them, numbers of runs */
  u32 unit_runs;      /* of the unit in the whole record */
  bool begins, ends;  /* the stretch begins after its first run, ends before its last */
  double size;        /* in units of `value` */
  double low, high;   /* its 95 % interval */
  double probability; /* that chance makes one as large anywhere, corrected */
};

struct effects {
  VECTOR(struct effect) found; /* the largest first */
  u32 left_out;                /* observations whose position never moved */
  double noise;                /* standard deviation of a unit's value in one run; NAN */
  u32 units, runs;             /* that could be compared; runs of the median unit */
  double could_show;           /* the smallest effect that so many runs could show; NAN */
};

/* `tests` is by how many such searches the probability is corrected as well; effects smaller than
 * `least` are not told. The caller frees found.at. */
struct effects find_effects(const struct observations *observations, u32 tests, double least);
