/* SPDX-License-Identifier: MIT
 *
 * What the rules share. A rule reads the results, decides by thresholds.h, and adds findings; the
 * table findings.def says which rule belongs to which id.
 */
#ifndef TSCOPE_FINDINGS_H
#define TSCOPE_FINDINGS_H

#include "analyses/analysis.h"
#include "analyses/findings/findings.def"
#include "analyses/thresholds.h"

/* Lines of the budget that a finding is about: its worth can be taken from them. */
enum draws {
  DRAWS_ANY = 0, /* of training */
  DRAWS_COMPUTE = 1,
  DRAWS_INPUT = 2,
  DRAWS_WAIT = 4,
  DRAWS_TRANSFER = 8,
  DRAWS_MEMCPY = 16,
  DRAWS_IDLE = 32,
  DRAWS_OTHER = 64, /* steps that contain something other than training */
  DRAWS_REST = 128, /* what the budget does not show */
};

/* Properties of a finding that do not depend on its evidence. */
enum finding_traits {
  FIRST_OF_ALL = 1,    /* what ended the job comes first, whatever it is worth */
  BEFORE_COSTS = 2,    /* what keeps it from moving comes before what it did earlier */
  NEEDS_ALL_RANKS = 4, /* about waits and transfers: a rank that was not found could be the cause */
  NEEDS_CORES = 8      /* about times that are longer where ranks are short of cores */
};

/* findings.def: enum finding_traits, or'ed, and enum draws, or'ed; 0 for those of diff. */
u32 finding_traits(enum finding_id id);
u32 finding_draws(enum finding_id id);

/* Fills in the sections that show the finding, from both tables. */
void finding_set_sections(struct finding *finding);

struct findings {
  struct analysis *a;
  struct results *r;
  u32 room;
  enum finding_id id; /* of the rule that runs */
  double steps;       /* analysed; worth per step x steps = worth of the run */
  double step_ms;     /* the step that shares are of: mean wall */
  u32 draws; /* enum draws of the next finding, if they differ from those of its id; else 0 */
};

/* Adds a finding of the running rule. Texts come from arena_printf(): a NULL one means that memory
 * ran out. 0, or -ENOMEM. */
int finding_add(struct findings *f, enum severity severity, double worth_s, char *title,
                char *evidence, char *action, const u32 *ranks, u32 n_ranks);

/* finding_worths.c: what each adds to those before it, once they are in order. 0, or -ENOMEM. */
int findings_split_worths(struct findings *f);

/* WARNING, or CRITICAL from WORTH_ALARM of the step on. */
enum severity severity_of(const struct findings *f, double per_step_ms);

/* Seconds of the run that a what-if saves; NAN if it was not computed or is not reliable. */
double what_if_worth_s(const struct findings *f, enum what_if_kind kind, i64 rank);

/* After all rules have run: if HOST.OVERSUBSCRIBED was found, findings about time say that they
 * depend on it. 0, or -ENOMEM. */
int findings_note_core_shortage(struct analysis *a);

/* Seconds of the run, from milliseconds per step. */
static inline double run_seconds(const struct findings *f, double per_step_ms) {
  return per_step_ms * f->steps / 1e3;
}

/* What shares refer to, and what figures are per: without steps, the whole run. */
static inline const char *of_each_step(const struct findings *f) {
  return f->a->whole_run ? "the run" : "each step";
}
static inline const char *per_step(const struct findings *f) {
  return f->a->whole_run ? "in all" : "a step";
}

#define F(group, name, rule, ...) int rule_##rule(struct findings *f);
TSCOPE_FINDINGS(F)
#undef F

#endif
