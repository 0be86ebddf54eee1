/* SPDX-License-Identifier: MIT
 *
 * Runs compared with each other: one with one, or several of a kind on each side. Pure functions
 * from results to a struct diff_result, one file for each kind of thing that is compared; diff.c
 * calls them in order.
 *
 * Noise has two levels. Steps of one run differ, and so do runs of one kind: because of hosts,
 * clocks, neighbours, a seed. Only the second level shows whether a change made a difference, and
 * it takes several runs on each side to see it [Kalibera and Jones, 2013]; see docs/analysis.md.
 */
#pragma once

#include "analyses/results/results.h"
#include "base/arena.h"
#include "diff/diff_result.h"

/* Runs of one kind. */
struct diff_side {
  struct results **runs;
  const char *const *paths; /* as people know them; may be NULL */
  u32 n;                    /* at least 1 */
};

/* Compares the sides. *shown becomes the run of `after` whose median step is in the middle: what is
 * said of a single run is about that one, and its diff is filled in. Everything of both sides must
 * live as long as that is read. */
void diff_sides(const struct diff_side *before, const struct diff_side *after,
                struct results **shown);

/* Of two sides by index. */
enum { BEFORE = SIDE_BEFORE, AFTER = SIDE_AFTER };

struct diffing {
  const struct diff_side *sides[2];
  const struct results *before, *after; /* the run shown, of each side */
  struct diff_result *out;
  struct arena *arena;      /* of `after` */
  struct arena scratch;     /* until all parts are made */
  bool several;             /* enough runs on each side to know the noise between them */
  u32 level_from, level_to; /* steps by whose values the runs' levels are compared */
};

/* Every run of both sides: `side` and `i` are declared here. */
#define EACH_RUN(d, side, i)                                                                       \
  for (u32 side = BEFORE; side <= AFTER; side++)                                                   \
    for (u32 i = 0; i < (d)->sides[side]->n; i++)

/* The parts, a function diff_steps() and so on for each, in the order in which they are made. */
#define DIFF_PARTS(P)                                                                              \
  P(steps)                                                                                         \
  P(scalars)                                                                                       \
  P(figures)                                                                                       \
  P(kernels)                                                                                       \
  P(collectives) P(lines) P(provenance) P(determinism) P(cause) P(explain) P(told) P(findings)
#define P(part) void diff_##part(struct diffing *d);
DIFF_PARTS(P)
#undef P

/* [model.steps.n] The steps that the run's own figures are of: without warm-up, and without what
 * holds other work than training. */
const bool *diff_training_steps(struct arena *arena, const struct results *r);

/* Their times, in order. */
double *diff_step_times(struct arena *arena, const struct results *r, u32 *n);

/* The probability that the medians of two series differ so much if nothing changed, and, unless it
 * is NULL, half the width of the 99 % interval of their difference; by means of batches, so that
 * steps that resemble their neighbours do not count twice [Law and Carson, 1979]. NAN if a series
 * is too short. */
enum { DIFF_LEAST_STEPS = 16 };
double diff_noise(const double *before, u32 n_before, const double *after, u32 n_after,
                  double *half_width);

/* The same for two samples of independent values, such as one for each run: Welch's t-test [Welch,
 * 1947]. Unknown values are left out; NAN if fewer than DIFF_LEAST_RUNS of either side are left. */
double diff_noise_between(const double *before, u32 n_before, const double *after, u32 n_after,
                          double *half_width);

#define DIFF_SIGNIFICANCE 0.01
/* From here on a change that is not shown is not called the same either; and how many runs are
 * advised at most. */
#define DIFF_DOUBT 0.1
#define DIFF_MOST_ADVISED 99
/* A change of less than a hundredth is not mentioned, however certain it is. */
#define DIFF_LEAST_CHANGE 0.01

/* Mean of the known values; NAN if there are none. */
double diff_mean(const double *values, u32 n);

/* One value of each run, those before first: the means of both sides, and the probability that the
 * noise between runs makes such a difference, NAN if it is not known. */
struct diff_compared {
  double before, after, p_value;
};
struct diff_compared diff_compare(const struct diffing *d, const double *values);

/* The median of each of a run's own values (the loss) over the last quarter of the steps that all
 * runs have; how many there are, at most `room`. */
struct diff_level {
  const char *name;
  double value;
};
u32 diff_levels(struct diffing *d, const struct model *model, struct diff_level *levels, u32 room);

/* A loss or gradient norm, by its name; not a throughput. */
bool diff_is_result(const char *name);

/* Where results of two runs first differ in any bit: the step, or NAN; `name` is the value that
 * differs. */
double diff_bits(const struct model *before, const struct model *after, const char **name);
