/* SPDX-License-Identifier: MIT
 *
 * Steps that contain something other than training: what they contain, and how often they come.
 * step_extras.c finds what the records of some steps hold more of; other_content.c lists the steps
 * that are long or hold more, and where their time went; other_periods.c finds which of the long
 * ones come at a fixed distance; slowest_in_work.c finds who takes longest with what all do;
 * other_work.c combines all of it.
 */
#pragma once

#include "analyses/analysis.h"
#include "analyses/steps/step_extras.h"

/* What a step has more of than a typical one. */
enum content {
  CONTENT_UNKNOWN,  /* phases are not known, and its collectives are those of all steps */
  CONTENT_TRAINING, /* backward, optimizer, input: a step that took longer */
  CONTENT_FORWARD,  /* forward without backward */
  CONTENT_ONE_RANK, /* one rank is busy outside the phases, all others wait for it */
  CONTENT_ONE_HOST, /* the same of the ranks of one host */
  CONTENT_OUTSIDE,  /* time outside the phases, on all ranks */
  CONTENT_CALLS,    /* phases are not known; collectives that hardly any other step has */
  CONTENT_MEETINGS, /* of the host and its GPU: copies between them, or waits */
  CONTENTS
};

/* Copied from the GPU in a step: a loss that is logged is smaller. */
#define CHECKPOINT_BYTES 65536

struct long_step {
  u32 step;       /* index into model.steps */
  u32 rank;       /* that the others wait for, or one of the host; INDEX_NONE */
  u32 last;       /* the rank for which the others wait longer than usual; INDEX_NONE: not known */
  double wait_ms; /* that they do, median over them */
  double excess_ms;
  u8 content; /* enum content */
  u8 times;   /* enum kept_times */
  bool is_long;
  bool has_known; /* it has work of a kind that its content shows; the excess is without that */
  u8 group;       /* 0: none yet */
};

struct long_steps {
  struct long_step *at; /* in order of steps */
  u32 n;
  u32 first, end; /* the analysed steps */
  double typical_ms;
  double *around_ms; /* [end - first] the typical length of the steps around this one */
  double *excess_ms; /* [end - first] of all analysed steps; NAN where not known */
};

/* Steps at least 1.5 times as long as the median, and steps that contain more than others; none if
 * ends on a GPU are not known, because then the host's time of a step is not the time that the step
 * took. */
void other_content_list(struct analysis *a, const struct step_extras *extras, struct arena *arena,
                        struct long_steps *out);

/* Every `period` steps from `first` on there is one. */
struct recurrence {
  u32 first, period, hits;
  double chance; /* the probability that as many long steps would be there by chance */
};

/* A shorter period is rather part of training: an optimizer that steps every fourth batch, as many
 * loader workers. */
#define OTHER_WORK_PERIOD 5u

/* What a period must be: of `shortest` to `longest` steps, of steps of no group whose content is
 * not in `leave_out` (a bit each), and by chance with at most `most_chance`. */
struct recurrence_wanted {
  u32 shortest, longest, leave_out;
  double most_chance;
};

/* The one that is least likely to be chance; false if there is none. */
bool other_find_recurrence(const struct long_steps *steps, const struct recurrence_wanted *wanted,
                           struct recurrence *found);

/* At what distance `n` of `of` steps (indices, in order) come: of each that is near their mean
 * distance, whether most of them are so far apart, and most of the steps so far apart are among
 * them. 0: at none. `found` may be NULL; its chance is that any steps come so. */
u32 period_of_steps(const u32 *steps, u32 n, u32 of, struct arena *scratch,
                    struct recurrence *found);

/* The rank that is slowest at work of all ranks. */
struct slowest_in_work {
  u32 rank;      /* index; INDEX_NONE: none is slower than chance would have it */
  u32 steps, of; /* in so many of the steps whose last rank is known it is last */
  double ms;     /* that the others wait for it then, median */
};

/* Of the steps that `own` names, indices into steps->at. */
void find_slowest_in_work(const struct model *model, const struct long_steps *steps, const u32 *own,
                          u32 n, struct slowest_in_work *out);

/* Finds the parts of training that only every n-th step holds, takes their time away from these
 * steps, and tells of the rest whether it is still long. */
void turns_find(struct analysis *a, struct step_extras *extras, struct arena *scratch,
                struct long_steps *steps);

/* "every 4th step". */
const char *describe_period(struct arena *arena, u32 period);

/* What the content is called in the report. */
const char *describe_content(u8 content);

/* "steps 20, 40, 60 and 2 more", of numbers in the run. */
const char *describe_steps(struct arena *arena, const double *step, u32 n);

/* Whether a step belongs to a period. */
static inline bool recurrence_has(const struct recurrence *r, u32 step) {
  return step >= r->first && (step - r->first) % r->period == 0;
}
