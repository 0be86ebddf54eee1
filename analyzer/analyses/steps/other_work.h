/* SPDX-License-Identifier: MIT
 *
 * Steps that contain something other than training: long steps, their content, and how often they
 * come. other_content.c lists the long steps and their content; other_periods.c finds which of them
 * come at a fixed distance; other_work.c combines both.
 */
#ifndef TSCOPE_OTHER_WORK_H
#define TSCOPE_OTHER_WORK_H

#include "analyses/analysis.h"

/* What a long step has more of than a typical one. */
enum content {
  CONTENT_UNKNOWN,  /* phases are not known, and its collectives are those of all steps */
  CONTENT_TRAINING, /* backward, optimizer, input: a step that took longer */
  CONTENT_FORWARD,  /* forward without backward */
  CONTENT_ONE_RANK, /* one rank is busy outside the phases, all others wait for it */
  CONTENT_OUTSIDE,  /* time outside the phases, on all ranks */
  CONTENT_CALLS,    /* phases are not known; collectives that hardly any other step has */
  CONTENTS
};

struct long_step {
  u32 step; /* index into model.steps */
  u32 rank; /* that the others wait for; INDEX_NONE */
  double excess_ms;
  u8 content; /* enum content */
  u8 op;      /* of a collective that hardly any other step has; 0: none */
  u8 group;   /* 0: none yet */
};

struct long_steps {
  struct long_step *at; /* in order of steps */
  u32 n;
  u32 first, end; /* the analysed steps */
  double typical_ms;
};

/* Steps at least 1.5 times as long as the median; none if ends on a GPU are not known, because then
 * the host's time of a step is not the time that the step took. 0, or -ENOMEM. */
int other_content_list(struct analysis *a, struct arena *arena, struct long_steps *out);

/* Every `period` steps from `first` on there is one. */
struct recurrence {
  u32 first, period, hits;
  double chance; /* the probability that as many long steps would be there by chance */
};

/* The period among steps of no group, whose content is not in `leave_out` (a bit each), that is
 * least likely to be chance; false if none is below `most_chance`. */
bool other_find_recurrence(const struct long_steps *steps, u32 leave_out, double most_chance,
                           struct recurrence *found);

/* "steps 20, 40, 60 and 2 more", of numbers in the run. NULL when out of memory. */
const char *describe_steps(struct arena *arena, const double *step, u32 n);

/* Whether a step belongs to a period. */
static inline bool recurrence_has(const struct recurrence *r, u32 step) {
  return step >= r->first && (step - r->first) % r->period == 0;
}

#endif
