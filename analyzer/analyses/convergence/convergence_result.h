/* SPDX-License-Identifier: MIT
 *
 * What the job's own values (loss, gradient norm, learning rate) tell of its training: a part of
 * struct results. NAN where not known.
 */
#ifndef TSCOPE_CONVERGENCE_RESULT_H
#define TSCOPE_CONVERGENCE_RESULT_H

#include <stdbool.h>

#include "format/tscope_format.h"

struct convergence_series {
  const char *name; /* as the job calls it */
  const char *role; /* "loss", "gradient norm", ...; see scalar_words.def */
  double values, first_step, last_step;
  double first, last, best; /* first and last: medians of the first and the last tenth */
  double change_per_step;   /* slope over the last half, 0 where chance explains it */
  double not_finite;        /* values that are NaN or infinite */
  double first_not_finite;  /* step of the first */
  double spikes;
  double *at_step,
      *value; /* [n_points] thinned out: of neighbours the one farthest off the median */
  u32 n_points;
};

enum { CONVERGENCE_POINTS = 1000 };

/* One value far off its neighbours. */
struct convergence_spike {
  const char *signal; /* "loss", "gradient norm", "step time", "memory" */
  double step, value, typical;
};

/* Steps close together in which several signals have spikes. */
struct convergence_cluster {
  double first_step, last_step;
  char *signals; /* "loss, step time" */
  u32 kinds;     /* bit set of signals */
  u32 n_signals;
};

struct convergence_result {
  const char *reason;  /* why nothing is known, NULL if something is */
  const char *verdict; /* of the loss: "falling", "flat", "rising", "diverged"; NULL: cannot tell */
  struct convergence_series *series;
  u32 n_series;
  const struct convergence_series *loss, *grad_norm; /* in series, NULL if there is none */
  double diverged_step;    /* first step from which on the loss is of no use */
  const char *diverged_by; /* "not finite" or "growth"; NULL */
  u32 *diverged_ranks;     /* global, whose values were not finite */
  u32 n_diverged_ranks;
  double plateau_steps, plateau_change; /* length, and change of the loss over it as a share */
  bool plateau;
  const char *not_falling; /* "rises": higher at the end than at the beginning, all the way;
                              "stands": has never moved; NULL */
  double whole_change;     /* over the whole run, of the loss, as a share; NAN */
  struct convergence_spike *spikes; /* of all signals, in order of steps */
  u32 n_spikes;
  struct convergence_cluster *clusters;
  u32 n_clusters;
  double instability_p; /* that chance puts the spikes of two signals so close; 1 with none */
};

/* Nothing known. */
struct convergence_result convergence_result_unknown(void);

#endif
