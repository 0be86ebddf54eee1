/* SPDX-License-Identifier: MIT
 *
 * A run that became slower at some step and stayed so, and which rank did.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/texts.h"
#include "model/core_times.h"

struct onset {
  u32 at; /* in the analysed steps */
  double before_ms, after_ms, p_value;
};

/* Median of the known values in [from, to); NAN where there are none. */
static double median_between(const double *values, u32 from, u32 to, double *scratch) {
  return median_of(scratch, LIST_KNOWN(scratch, from, to, i, values[i]));
}

static bool find_onset(const double *ms, u32 n, struct arena *arena, struct onset *onset) {
  struct ranked_value *ranked = arena_array(arena, n, sizeof(*ranked));
  double *scratch = arena_array(arena, n, sizeof(*scratch));
  onset->at = change_point(ms, n, ranked, &onset->p_value);
  if (onset->p_value >= STRAGGLER_SIGNIFICANCE || onset->at < FAIL_SLOW_SIDE ||
      n - onset->at < FAIL_SLOW_SIDE)
    return false;
  onset->before_ms = median_between(ms, 0, onset->at, scratch);
  onset->after_ms = median_between(ms, onset->at, n, scratch);
  return onset->after_ms >= (1 + FAIL_SLOW_RATIO) * onset->before_ms;
}

/* How much later than the median rank a straggler comes, by step, of the steps that the series
 * keeps. NAN where that is not known, also for more stragglers than it has rows of one rank. */
static void list_lateness(const struct analysis *a, const struct rank_result *rank,
                          struct arena *arena, double *late_ms) {
  const struct series_result *series = &a->results->series;
  double *of_rows = arena_array(arena, series->n_rows, sizeof(*of_rows));
  const struct series_row *own =
      FIND(series->rows, series->n_rows, one, one->rank == rank->rank && one->ranks == 1);
  FILL(late_ms, a->n_steps, NAN);
  for (u32 column = 0; own && column < own->n_values[SERIES_LATE]; column++) {
    u32 n = 0;
    FOR_EACH(series->rows, series->n_rows, row)
      if (column < row->n_values[SERIES_LATE] && !isnan(row->values[SERIES_LATE][column]))
        of_rows[n++] = row->values[SERIES_LATE][column];
    u32 step = (u32)(series->column_step[column] - a->model->steps.first) - a->first_step;
    late_ms[step] = own->values[SERIES_LATE][column] - median_of(of_rows, n);
  }
}

/* Whether what a straggler of the whole run is late grew at that step by at least half of what the
 * step did: where few steps lie before, they make no stretch. */
static bool later_since(const struct findings *f, const struct rank_result *rank,
                        const struct onset *onset, u32 at) {
  SCOPED_ARENA struct arena scratch = {0};
  u32 n = f->a->n_steps;
  double *late_ms = arena_array(&scratch, n, sizeof(*late_ms));
  double *values = arena_array(&scratch, n, sizeof(*values));
  list_lateness(f->a, rank, &scratch, late_ms);
  double more = median_between(late_ms, at, n, values) - median_between(late_ms, 0, at, values);
  return more >= REASON_SHARE * (onset->after_ms - onset->before_ms);
}

/* Stragglers that are late since about that step, by at least half of what the step grew. */
static u32 late_since(const struct findings *f, const struct onset *onset, u32 at, u32 *ranks,
                      const char **evidence) {
  double step = f->a->model->steps.first + f->a->first_step + at;
  u32 n = 0;
  FOR_EACH(f->r->ranks, f->r->n_ranks, rank) {
    bool from_there = rank->n_late == 1 && fabs(rank->late_from[0] - step) <= FAIL_SLOW_SIDE;
    if (!rank->straggler || rank->late_at_times ||
        rank->late_a_step_ms < REASON_SHARE * (onset->after_ms - onset->before_ms) ||
        !(from_there || (rank->n_late == 0 && later_since(f, rank, onset, at))))
      continue;
    ranks[n++] = rank->rank;
    *evidence = say(f, " Since then rank %u keeps its peers waiting (%s).", rank->rank,
                    finding_id_words[FINDING_DIST_STRAGGLER]);
  }
  return n;
}

/* Ranks whose own compute grew by at least half of what the step did. */
static u32 slower_ranks(const struct findings *f, const struct onset *onset, u32 at,
                        struct arena *arena, u32 *ranks, const char **evidence) {
  const struct analysis *a = f->a;
  double *row = arena_array(arena, a->n_steps, sizeof(*row));
  double *scratch = arena_array(arena, a->n_steps, sizeof(*scratch)), most = 0;
  u32 n = 0, known = 0;
  for (u32 rank = 0; rank < a->model->n_ranks; rank++) {
    for (u32 i = 0; i < a->n_steps; i++)
      row[i] = (double)a->compute_ms[(size_t)rank * a->n_steps + i];
    double before = median_between(row, 0, at, scratch);
    double after = median_between(row, at, a->n_steps, scratch);
    if (isnan(before) || isnan(after))
      continue;
    known++;
    if (after - before < REASON_SHARE * (onset->after_ms - onset->before_ms))
      continue;
    ranks[n++] = a->model->ranks[rank].rank;
    if (after - before > most) {
      most = after - before;
      *evidence =
          say(a, " Rank %u's compute went from %s to %s a step at that time.",
              a->model->ranks[rank].rank, duration_ms(before).text, duration_ms(after).text);
    }
  }
  if (known == 0)
    *evidence = " The compute time of each rank is not known.";
  else if (n == 0)
    *evidence = " No rank's own compute explains it.";
  else if (n == known && n > 1)
    *evidence = " The compute of all ranks grew by about the same.";
  return n;
}

/* What a step is made of, on the mean of all ranks, and what to look at where it grew. Input comes
 * first: it may be at the same time as the others. */
struct part {
  const char *name, *action;
  const double *ms; /* by point of the series */
};

/* The part that grew by at least half of what the step did; NULL if none did. */
static const struct part *part_that_grew(struct findings *f, const struct onset *onset, u32 step,
                                         const char **evidence) {
  const struct series_result *series = &f->r->series;
  const struct part parts[] = {
      {"fetching input",
       "Look at the data loader and the storage since that moment: its workers' lines, files that "
       "come later in the data set, a cache or file system that filled up.",
       series->input_ms},
      {"exposed communication",
       f->a->model->n_hosts == 1
           ? "Look at what else runs on that host since that moment: it may take cores, memory or "
             "links from communication."
           : "Look at the network since that moment: link errors, other jobs, a slower route.",
       series->exposed_ms},
      {"time in which nothing computes, communicates or copies",
       "Look at what the host does since that moment: other processes on its cores or on its GPU, "
       "logging, garbage collection, a cache or list that grows, the shared storage.",
       series->idle_ms},
      {"copies",
       "Look at the copies between host and device since that moment: pageable memory, other "
       "processes on that bus.",
       series->memcpy_ms},
      {"compute",
       "Look at what the job itself changed then (sequence length, evaluation), and at clocks, "
       "temperature and power limits.",
       series->compute_ms},
  };
  SCOPED_ARENA struct arena scratch = {0};
  double *values = arena_array(&scratch, series->n_points, sizeof(double));
  u32 at = FIRST_NOT(0, series->n_points, k, series->step[k] < step);
  const struct part *grew = NULL;
  for (size_t i = 0; i < LENGTH_OF(parts) && !grew; i++) {
    double before = parts[i].ms ? median_between(parts[i].ms, 0, at, values) : NAN;
    double now = parts[i].ms ? median_between(parts[i].ms, at, series->n_points, values) : NAN;
    if (!(now - before >= REASON_SHARE * (onset->after_ms - onset->before_ms)))
      continue;
    struct part *found = arena_alloc(f->a->arena, sizeof(*found));
    *found = parts[i];
    grew = found;
    *evidence = say(f, " What grew is %s: from %s to %s a step.", grew->name,
                    duration_ms(before).text, duration_ms(now).text);
  }
  return grew;
}

/* By how much longer a rank waited for a core in each step since, in ms; NAN where the record does
 * not tell. */
static double longer_waits_ms(const struct analysis *a, u32 rank, u32 step) {
  struct window first, changed, last;
  struct core_times before = {0}, since = {0};
  u32 end = a->first_step + a->n_steps;
  if (step == a->first_step || !analysis_window(a, rank, a->first_step, &first) ||
      !analysis_window(a, rank, step, &changed) || !analysis_window(a, rank, end - 1, &last) ||
      !core_times_add(&before, &a->model->ranks[rank],
                      (struct interval){first.begin, changed.begin}) ||
      !core_times_add(&since, &a->model->ranks[rank], (struct interval){changed.begin, last.end}))
    return NAN;
  return 1e3 *
         (since.training_wait_s / (end - step) - before.training_wait_s / (step - a->first_step));
}

/* Whether threads of these ranks, or of any rank if none is named, had no core while they could
 * run, for long enough to explain what the run takes longer, and longer than before. Work on a GPU,
 * which is what makes ranks slower, needs none. */
static bool lacked_cores(const struct analysis *a, const u32 *ranks, u32 n, u32 step,
                         double longer_ms, double longer_s) {
  const struct model *model = a->model;
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_scheduling *of = &model->ranks[r].scheduling;
    bool named = n == 0 || ranks_have(ranks, n, model->ranks[r].rank);
    if (named && !(n && a->ranks[r].on_gpu) && of->seconds >= OVERSUBSCRIBED_LEAST_S &&
        of->training_wait_s >=
            fmax(OVERSUBSCRIBED_OF_WALL * of->seconds, REASON_SHARE * longer_s) &&
        !(longer_waits_ms(a, r, step) < REASON_SHARE * longer_ms))
      return true;
  }
  return false;
}

static const char *suggest_action(struct findings *f, const u32 *ranks, u32 n, bool late,
                                  const struct part *grew, bool cores) {
  if (late)
    return say(f, "Look at what rank %u does since that moment: see %s.", ranks[0],
               finding_id_words[FINDING_DIST_STRAGGLER]);
  if (cores)
    return "Threads that could run had to wait for a core: see what else began on those hosts at "
           "that moment (top, pidstat -u), and pin each rank to its own cores. Suspect a device "
           "only if steps stay slow without that.";
  if (n == 0 && grew)
    return grew->action;
  if (n == 0)
    return f->a->model->n_collectives && f->a->model->n_hosts > 1
               ? "Look at the network and the shared storage since that moment: link errors, other "
                 "jobs, a file system that filled up."
               : "Look at what else runs on that host and its devices since that moment, and at "
                 "what the job changed then.";
  if (n == f->a->model->n_ranks)
    return "Look at what the job itself changed then (sequence length, logging, evaluation, a "
           "growing cache) and at clocks or power limits of all hosts.";
  return say(f,
             "Look at the host of %s since that moment: clocks and temperature, ECC and PCIe "
             "errors, other processes; replace the device if it stays slow.",
             ranks_in(f->a->arena, ranks, n));
}

/* The steps of training and how long they took; how many. 0 if some rank lacks one: they are not
 * compared. */
static u32 list_steps(const struct findings *f, u32 *steps, double *ms) {
  const struct analysis *a = f->a;
  u32 n = LIST_WHERE(steps, a->first_step, a->first_step + a->n_steps, step,
                     analysis_is_training(a, step), step);
  for (u32 i = 0; i < n; i++)
    ms[i] = f->r->step_ms[steps[i]];
  return ANY(ms, n, one, isnan(*one)) ? 0 : n;
}

void rule_fail_slow(struct findings *f) {
  const struct analysis *a = f->a;
  u32 n = 0;
  SCOPED_ARENA struct arena scratch = {0};
  struct onset onset;
  u32 *steps = arena_array(&scratch, a->n_steps, sizeof(*steps));
  double *ms = arena_array(&scratch, a->n_steps, sizeof(*ms));
  u32 n_steps = a->whole_run ? 0 : list_steps(f, steps, ms);
  if (n_steps < FAIL_SLOW_MIN_STEPS || !find_onset(ms, n_steps, &scratch, &onset))
    return;
  u32 step = f->r->changed_step = steps[onset.at], after = n_steps - onset.at;
  u32 *ranks = arena_array(&scratch, a->model->n_ranks, sizeof(u32));
  const char *who = NULL;
  bool late = false;
  n = slower_ranks(f, &onset, step - a->first_step, &scratch, ranks, &who);
  if (n == 0)
    late = (n = late_since(f, &onset, step - a->first_step, ranks, &who)) > 0;
  struct window first = {0};
  for (u32 rank = 0; rank < a->model->n_ranks && !analysis_window(a, rank, step, &first); rank++)
    ;
  double since = ns_to_ms(first.begin - a->model->begin) / 1e3;
  double longer_s = (onset.after_ms - onset.before_ms) * after / 1e3, saving = longer_s;
  if (n && n < a->model->n_ranks) {
    double of_ranks = saving_of_ranks(f, ranks, n, step, saving * 1e3 / f->steps);
    if (cure_pays(f)) {
      saving = fmin(saving, of_ranks);
    } else { /* the run is slower, but not because of them */
      n = 0;
      late = false;
      f->cure = (struct cure){0};
    }
  }
  const struct part *grew =
      n ? NULL : part_that_grew(f, &onset, a->model->steps.first + step, &who);
  bool cores = !late && lacked_cores(a, ranks, n, step, onset.after_ms - onset.before_ms, longer_s);
  finding_add(
      f,
      onset.after_ms >= (1 + SAVING_ALARM) * onset.before_ms ? SEVERITY_CRITICAL : SEVERITY_WARNING,
      saving,
      say(a, "From step %u on the median step takes %s longer", a->model->steps.first + step,
          percent(onset.after_ms / onset.before_ms - 1).text),
      say(a, "Median step %s before, %s in the %u steps since (%s into the run; by chance: %s).%s",
          duration_ms(onset.before_ms).text, duration_ms(onset.after_ms).text, after,
          duration_s(since).text, p_value(onset.p_value).text, text_or_empty(who)),
      suggest_action(f, ranks, n, late, grew, cores), ranks, n == a->model->n_ranks ? 0 : n);
}
