/* SPDX-License-Identifier: MIT
 *
 * Steps that hold something else than training: long ones, what they hold, and how often they come.
 * other_content.c lists the long steps and says what is in each; other_periods.c finds which of
 * them come at a fixed distance; other_work.c makes one of both.
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
  u32 first, end; /* the steps looked at */
  double typical_ms;
};

/* Steps at least half as long again as the median; none where ends on a GPU are not known: there
 * the host's time of a step is not what the step took. 0, or -ENOMEM. */
int other_content_list(struct analysis *a, struct arena *arena, struct long_steps *out);

/* Every `period` steps from `first` on there is one. */
struct recurrence {
  u32 first, period, hits;
  double chance; /* that as many long steps anywhere would lie so */
};

/* The recurrence among steps of no group whose content is not in `leave_out` (a bit each) that is
 * least likely to be chance; false if none is below `most_chance`. */
bool other_find_recurrence(const struct long_steps *steps, u32 leave_out, double most_chance,
                           struct recurrence *found);

/* "steps 20, 40, 60 and 2 more", of numbers in the run. NULL when out of memory. */
const char *steps_in_words(struct arena *arena, const double *step, u32 n);

/* Whether a recurrence has a step. */
static inline bool recurrence_has(const struct recurrence *r, u32 step) {
  return step >= r->first && (step - r->first) % r->period == 0;
}

#endif
