/* SPDX-License-Identifier: MIT
 *
 * Findings while they are made: what the rules share, and what puts their findings in order. A rule
 * reads the results, decides by thresholds.h, and adds findings; the table findings.def says which
 * rule belongs to which id.
 */
#pragma once

#include "analyses/analysis.h"
#include "analyses/findings/findings.def"
#include "analyses/thresholds.h"

/* Properties of a finding that do not depend on its evidence. */
enum finding_traits {
  FIRST_OF_ALL = 1,    /* what ended the job comes first, whatever it is worth */
  BEFORE_COSTS = 2,    /* what keeps it from moving comes before what it did earlier */
  NEEDS_ALL_RANKS = 4, /* about waits and transfers: a rank that was not found could be the cause */
  NEEDS_CORES = 8,     /* about times that are longer where ranks are short of cores */
  SUMS_UP = 16         /* says that time is lost, not by what */
};

/* findings.def: enum finding_traits, or'ed; 0 for those of diff. */
u32 finding_traits(enum finding_id id);

/* Fills in the sections that show the finding, from both tables. */
void finding_set_sections(struct finding *finding);

struct findings {
  struct analysis *a;
  struct results *r;
  struct arena *arena; /* of texts: the results' */
  u32 room;
  enum finding_id id; /* of the rule that runs */
  double steps;       /* analysed; saving per step x steps = saving of the run */
  double step_ms;     /* the step that shares are of: mean wall */
  struct cure cure;   /* of the next finding, and what it saves: set by saving_of() */
  struct saving saving;
  const char *together; /* of the next finding: with whom it saves that; NULL: alone */
  const struct sampled_line *spent_at; /* of the next finding: where its time goes; NULL */
};

/* A sentence about the hosts between which these transfers go, and which of their links are slow,
 * if the record tells; "" on one host. */
const char *describe_hosts_of(struct findings *f, const struct collective_result *row);

/* Adds a finding of the running rule. Its texts live as long as the findings, or for ever. */
void finding_add(struct findings *f, enum severity severity, double saving_s, const char *title,
                 const char *evidence, const char *action, const u32 *ranks, u32 n_ranks);

/* After sorting: a finding that only sums up lost time comes behind those that say by what. */
void findings_put_causes_first(struct findings *f);

/* finding_savings.c: what each adds to those before it, once they are in order, and which of those
 * share time with it. */
void findings_share_savings(struct findings *f);

/* WARNING, or CRITICAL from SAVING_ALARM of the step on. */
enum severity severity_of(const struct findings *f, double per_step_ms);

/* What a cure is worth, in seconds of the run: what the replay of the steps saves with it. Without
 * a cure (NULL) or a replay, the `measured_ms` a step. The next finding is about this cure. */
double saving_of(struct findings *f, const struct cure *cure, double measured_ms);

/* Whether the cure of the next finding saves more than the replay may be off by. What does not is
 * nothing to mend: the finding is then a note, whose action is what holds up the step instead.
 * True where nothing was replayed. */
bool cure_pays(const struct findings *f);

/* The share of a step in which the GPU has nothing to do as nothing was launched: of the whole
 * input, but not more than it idles in the analysed steps. Before them a program is set up, and
 * after them it may hang. NAN if not known. */
double launch_bound_share(const struct results *r);

/* What to do about a line (its place) at which the host is while its GPU has nothing to do. */
#define LOOK_AT_HOST_LINE                                                                          \
  "Look at %s first: the GPU has nothing to do while the host is there. Do that work less often, " \
  "on the GPU, or ahead in another thread or process."

/* " It is then at train.py:12 (load) in 80 % of the samples.", of such a subject; "" without line.
 */
const char *describe_where(struct findings *f, const char *subject,
                           const struct sampled_line *line);

/* "at train.py:12 (load)", "in load() (train.py:8), with all that it calls,"; and ", in 30 % at
 * train.py:12 (load)", where the line is such a function. */
const char *say_place(struct findings *f, const struct sampled_line *line);
const char *say_inside(struct findings *f, const struct sampled_line *line);

/* ", mostly at train.py:12", after such words; "" without line. */
const char *at_line(struct findings *f, const char *words, const struct sampled_line *line);

/* " Rank 0 is then at train.py:8 (log) in 73 % of the samples.": while the GPU has
 * nothing to do as nothing was launched. `*line`: where most of it goes, if that is at least half;
 * else NULL, and no text. */
const char *describe_launching_line(struct findings *f, const struct sampled_line **line);

/* What time of the host costs where no replay tells: while the GPU has work that was launched, the
 * host waits for it or would. As it is, if it is not known when the GPU had none. */
double without_waits_for_gpu(const struct findings *f, double host_ms);

/* The same for a single change that keeps `left` of the time of that work. */
double saving_of_change(struct findings *f, struct cure_change change, double measured_ms);

/* The same if these ranks (global numbers) were as fast as all others from a step of the run on. */
double saving_of_ranks(struct findings *f, const u32 *ranks, u32 n, u32 since, double measured_ms);

/* The same of a cure, but what stragglers cost is told with these: beyond that, and no more than it
 * saves alone. */
double saving_beyond_stragglers(struct findings *f, const struct cure *cure, double measured_ms);

/* The cure of a row of the what-if table; NULL if it has no such row. */
const struct cure *what_if_cure(const struct findings *f, enum what_if_kind kind, i64 rank);

/* find_jitter.c: what is told of training steps that take longer, if a line of this rank (by index)
 * alone explains them: their line, and how long they took longer. False: it is not so. */
struct step_line;
bool long_steps_are_of(struct findings *f, u32 rank, struct step_line *at, double *lost_s);

/* find_pipeline.c: whether these stragglers are a stage that is told as slow. */
bool is_slow_stage(struct findings *f, const struct straggler_group *group);

/* "data.py:12 (get)"; and with "at" or, of a function with all that it calls, "in". */
const char *line_in_function(struct findings *f, const struct sampled_line *line);
const char *line_where(struct findings *f, const struct sampled_line *line);

/* "data.py:12 (get)"; and the way there if peers are there too, by another way. */
const char *words_of_line(struct findings *f, const struct sampled_line *line);

/* " Python runs one thread at a time: ..." where another thread holds it while this one waits; else
 * "". */
const char *about_gil(const struct sampled_line *line);

/* ", called at train.py:9" and ", waiting for 80 % of it", where these are known; else "". */
const char *called_at(struct findings *f, const struct sampled_line *line);
const char *busy_with(struct findings *f, const struct sampled_line *line);

/* What to do where most of the time at a line (NULL: none) goes into torch.compile; "" elsewhere.
 */
const char *about_compiling(struct findings *f, const struct sampled_line *line);

/* A line of the budget; NULL if it has none. */
const struct budget_line *budget_line_of(const struct results *r, enum budget_part part);

/* Whether most of the time went into making CUDA graphs: how busy devices are in it says nothing of
 * the steps that launch them. */
bool mostly_captures(const struct results *r);

/* What to do about the rank that holds up a job. */
const char *hang_action(const struct check_suspect *first);

/* After all rules have run: if HOST.OVERSUBSCRIBED was found, findings about time say that they
 * depend on it. */
void findings_note_core_shortage(struct analysis *a);

/* Whether the job answers requests: advice for training does not fit it. */
static inline bool serves(const struct findings *f) {
  return f->r->n_step_kinds > 0;
}

/* Seconds of the run, from milliseconds per step. */
static inline double run_seconds(const struct findings *f, double per_step_ms) {
  return per_step_ms * f->steps / 1e3;
}

/* The other way round. */
static inline double per_step_of(const struct findings *f, double run_s) {
  return run_s / f->steps * 1e3;
}

/* Whether milliseconds per step are worth mentioning. */
static inline bool is_notable(const struct findings *f, double per_step_ms) {
  return per_step_ms >= WORTH_MENTIONING * f->step_ms;
}

/* What shares refer to, and what figures are per: without steps, the whole run. */
static inline const char *of_each_step(const struct findings *f) {
  return f->a->whole_run ? "the run" : "each step";
}
static inline const char *per_step(const struct findings *f) {
  return f->a->whole_run ? "in all" : "a step";
}
/* What a saving makes shorter. */
static inline const char *a_step(const struct findings *f) {
  return f->a->whole_run ? "the run" : "a step";
}

#define F(group, name, rule, ...) void rule_##rule(struct findings *f);
TSCOPE_FINDINGS(F)
#undef F
