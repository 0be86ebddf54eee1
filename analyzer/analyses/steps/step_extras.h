/* SPDX-License-Identifier: MIT
 *
 * What some steps contain more of than the others: see step_extras.c.
 */
#pragma once

#include "analyses/analysis.h"

#define MOST_EXTRAS 64u /* one bit each */

struct step_extra {
  u32 *steps; /* indices into model.steps, in order */
  u32 n;
  u32 period;   /* their distance, if it is always the same; 0 */
  u8 op;        /* of a collective among them; 0: none */
  u64 bytes;    /* the largest of these collectives */
  double ms;    /* that a rank is longest in them, in the median of the steps; 0 */
  bool forward; /* forward passes without backward are among them */
  u8 meets;     /* of the host and its GPU, enum meeting or'ed: step_meetings.c */
  u64 copied;   /* from the GPU, in one step, by the rank that copies most */
  u64 added;    /* to that, by the rank that was added last */
  u32 rank;     /* which that was */
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

/* A shorter period is rather part of training: an optimizer that steps every fourth batch, as many
 * loader workers. As an extra, also the most of the steps that can have it: one in so many. */
#define MOST_OFTEN 5u

/* Adds one kind, whose steps are copied; if another kind has the same steps, to that. */
void step_extras_add(const struct analysis *a, struct arena *arena, struct step_extras *out,
                     const struct step_extra *extra);

/* The distance of the steps if it is always the same; of two, if the first step of the run is as
 * far. 0: there is none. */
u32 step_extras_period(const struct analysis *a, const u32 *steps, u32 n);

/* What the host and its GPU do together in some steps more than in others. */
void step_meetings_list(const struct analysis *a, struct arena *arena, struct step_extras *out);
