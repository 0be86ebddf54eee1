/* SPDX-License-Identifier: MIT
 *
 * What some steps contain more of than the others: see step_extras.c.
 */
#ifndef TSCOPE_STEP_EXTRAS_H
#define TSCOPE_STEP_EXTRAS_H

#include "analyses/analysis.h"

#define MOST_EXTRAS 64u /* one bit each */

struct step_extra {
  u32 *steps; /* indices into model.steps, in order */
  u32 n;
  u32 period;   /* their distance, if it is always the same; 0 */
  u8 op;        /* of a collective among them; 0: none */
  u64 bytes;    /* the largest of these collectives */
  bool forward; /* forward passes without backward are among them */
};

struct step_extras {
  struct step_extra at[MOST_EXTRAS];
  u32 n;
  u64 *of_step;     /* [model.steps.n] bit i: has at[i] */
  bool usual_calls; /* some step that has none of them has a collective */
  u64 in_turn;      /* bit i: at[i] is a part of training (turns.c) */
};

/* Of the analysed steps. Lives in the arena. */
void step_extras_list(const struct analysis *a, struct arena *arena, struct step_extras *out);

#endif
