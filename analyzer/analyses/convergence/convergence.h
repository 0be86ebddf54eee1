/* SPDX-License-Identifier: MIT
 *
 * What the files convergence*.c of this folder share.
 */
#pragma once

#include "analyses/analysis.h"
#include "format/scalar_line.h"

/* One value per step. Steps increase; if the job does not report them, they count values. */
struct series {
  const char *name;
  enum scalar_role role;
  double *steps, *values;
  u32 n;
  bool has_steps; /* as the job reports them */
  double shift;   /* the job's count of a step minus the report's; NAN if times do not show it */
};

/* Values of one signal that stand out from those before, by this share at least: marks[i] is set,
 * typical[i] is the median of the window. NAN is ignored. */
void find_spikes(const double *values, u32 n, double share, bool *marks, double *typical);

/* Signals whose spikes are compared. */
enum { SIGNALS = SIGNAL_MEMORY + 1 };

/* Spikes of one signal, each with its position on the common axis of steps. */
struct signal_spikes {
  double *steps, *values, *typical;
  u32 n;
  double from, to; /* steps that the signal covers */
  bool known;
};

/* Fills clusters and instability_p of the result. */
void find_instability(struct analysis *a, const struct signal_spikes signals[SIGNALS]);
