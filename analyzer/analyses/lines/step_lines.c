/* SPDX-License-Identifier: MIT
 *
 * What some steps run that others do not, by line: compared with the other steps of the same rank,
 * so it needs no peers. Samples are counted as in a Poisson distribution, as far as a line's time
 * in one of those other steps does not follow from that in the step before: that these steps take
 * longer is known already.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"
#include "base/texts.h"

struct times {
  double ms, base_ms, more_ms;
  u32 seen, steps; /* of these steps, in how many a sample is there */
  bool stands_out;
};

/* Of a part: in a step of these slices, and in one of the other slices of training. */
static struct times times_of(const struct rank_parts *parts, const struct sampled_part *part,
                             const bool *slices) {
  double own = 0, base = 0, steps = 0, base_steps = 0, seen = 0;
  for (u32 s = 0; s < SLICES; s++) {
    steps += slices[s] ? parts->steps[s] : 0;
    base_steps += !slices[s] && s < TRAINING_SLICES ? parts->steps[s] : 0;
  }
  FOR_EACH(part->times, part->n_times, time) {
    own += slices[time->slice] ? (double)time->ns : 0;
    seen += slices[time->slice] ? time->steps : 0;
    base += !slices[time->slice] && time->slice < TRAINING_SLICES ? (double)time->ns : 0;
  }
  if (!(steps > 0) || !(base_steps > 0))
    return (struct times){0};
  double samples = own / parts->sample_ns, of_all = (own + base) / parts->sample_ns;
  struct persistence p = {0};
  part_persistence(parts, part, slices, 1, &p);
  double chance = chance_of_count((u32)lround(samples), (u32)lround(of_all),
                                  steps / (steps + base_steps), persistence_of(&p));
  struct times t = {.ms = ns_to_ms(own / steps),
                    .base_ms = ns_to_ms(base / base_steps),
                    .seen = (u32)seen,
                    .steps = (u32)steps};
  t.more_ms = t.ms - t.base_ms;
  t.stands_out = chance * fmax(parts->n, 1) < STRAGGLER_SIGNIFICANCE;
  return t;
}

struct step_line_search {
  struct analysis *a;
  const bool *slices;
  const struct sampled_part *part;
  struct times times;
  u32 rank;
};

/* The line of a kind with most more in these steps, of the rank. */
static void search_rank(struct step_line_search *s, u32 rank, enum part_kind kind) {
  const struct rank_parts *parts = &s->a->line_sums[rank].parts;
  FOR_EACH(parts->at, parts->n, part) {
    if (part->kind != kind)
      continue;
    struct times t = times_of(parts, part, s->slices);
    if (!t.stands_out || (s->part && t.more_ms <= s->times.more_ms))
      continue;
    s->part = part;
    s->times = t;
    s->rank = rank;
  }
}

/* The innermost line of the rank that takes this much more in these steps, with all that it calls.
 */
static void search_callers(struct step_line_search *s, u32 rank, double more_ms) {
  const struct rank_parts *parts = &s->a->line_sums[rank].parts;
  const struct sampled_part *best = NULL;
  struct times of_best = {0};
  FOR_EACH(parts->at, parts->n, part) {
    if (part->kind != CALLING_LINE)
      continue;
    struct times t = times_of(parts, part, s->slices);
    if (!t.stands_out || t.more_ms < more_ms ||
        (best && part_is_inside(best, of_best.ms, part, t.ms)))
      continue;
    best = part;
    of_best = t;
  }
  if (!best || (s->part && of_best.more_ms <= s->times.more_ms))
    return;
  *s = (struct step_line_search){s->a, s->slices, best, of_best, rank};
}

/* Whether another rank has half as much more there. */
static bool is_of_several(const struct step_line_search *s) {
  const struct line_sums *own = &s->a->line_sums[s->rank];
  return ANY(s->a->line_sums, s->a->model->n_ranks, rank,
             rank != own &&
                 ANY_NUMBER(0, rank->parts.n, i,
                            rank->parts.at[i].key == s->part->key &&
                                times_of(&rank->parts, &rank->parts.at[i], s->slices).more_ms >=
                                    s->times.more_ms / 2));
}

/* In how many of these steps the line is: in all, unless it takes so long that it would be seen in
 * each. What is shorter than the time between two looks is missed in some. */
static u32 steps_at_line(const struct step_line_search *s) {
  const double looks = 1.5;
  double sample_ms = ns_to_ms(s->a->line_sums[s->rank].parts.sample_ns);
  double ms = s->times.ms * s->times.steps / s->times.seen;
  return s->times.seen && ms >= looks * sample_ms ? s->times.seen : s->times.steps;
}

/* Where other threads of the rank were most in these steps while this one waited for a lock or the
 * GIL; NULL. */
static const struct sampled_part *part_beside(const struct step_line_search *s) {
  const struct rank_parts *parts = &s->a->line_sums[s->rank].parts;
  return LARGEST(parts->at, parts->n, one, one->kind == BESIDE_LINE,
                 times_of(parts, one, s->slices).ms);
}

/* How much more the rank is in these steps at the line that calls; 0 of one that most steps run. */
static double more_at_caller(const struct step_line_search *s, const struct call_frame *caller) {
  const struct rank_parts *parts = &s->a->line_sums[s->rank].parts;
  const struct sampled_part *part =
      FIND(parts->at, parts->n, one,
           one->kind == CALLING_LINE && one->line == caller->line &&
               same_text(one->file, caller->file) && same_text(one->function, caller->function));
  return part ? times_of(parts, part, s->slices).more_ms : 0;
}

/* Several places may call a line: how these steps do, and others do not. */
static const struct sampled_path *path_of_these(const struct step_line_search *s) {
  return LARGEST(s->part->paths, s->part->n_paths, one, true,
                 one->n ? more_at_caller(s, one->frames) : 0);
}

static struct sampled_line *line_of(struct step_line_search *s) {
  struct sampled_line *line = line_of_part(s->a, s->part);
  line_set_path(s->a, s->part, path_of_these(s), line);
  line_set_beside(s->a, s->part, part_beside(s), line);
  line->ms = s->times.ms;
  line->peers_ms = s->times.base_ms;
  line->more_ms = s->times.more_ms;
  line->error_ms = NAN;
  return line;
}

/* How many more steps it takes until a line would stand out at which a rank is for `ms` in each of
 * these steps and never else; 0: it would in those recorded; NAN without samples. */
static double steps_needed(const struct analysis *a, const bool *slices, double ms) {
  double fewest = NAN;
  FOR_EACH(a->line_sums, a->model->n_ranks, line_sum) {
    const struct rank_parts *parts = &line_sum->parts;
    double of_these = 0, steps = 0;
    for (u32 s = 0; s < SLICES; s++) {
      of_these += slices[s] ? parts->steps[s] : 0;
      steps += slices[s] || s < TRAINING_SLICES ? parts->steps[s] : 0;
    }
    if (!parts->n || !(of_these > 0) || of_these == steps)
      continue;
    double chance = STRAGGLER_SIGNIFICANCE / fmax(parts->n, 1);
    double samples = ceil(log(chance) / log(of_these / steps));
    double needed = samples * parts->sample_ns / (ms * 1e6) / of_these * steps;
    fewest = fmin(fewest, fmax(0, ceil(needed - steps)));
  }
  return fewest;
}

/* Of the steps of these slices (sampled_parts.h), which take `ms` longer than the other steps of
 * training. `rank` (an index) alone does it, INDEX_NONE: not known. */
static void step_line_find(struct analysis *a, const bool *slices, u32 rank, double ms,
                           struct step_line *found) {
  const struct step_line_search none = {.a = a, .slices = slices, .rank = INDEX_NONE};
  struct step_line_search own = none, waits = none;
  *found = (struct step_line){.rank = INDEX_NONE, .inside_rank = INDEX_NONE, .more_steps = NAN};
  for (u32 r = 0; r < a->model->n_ranks; r++)
    if (rank == INDEX_NONE || r == rank)
      search_rank(&own, r, OWN_LINE);
  if (!own.part || own.times.more_ms < REASON_SHARE * ms) {
    struct step_line_search alone = own;
    own = none;
    for (u32 r = 0; r < a->model->n_ranks; r++)
      if (rank == INDEX_NONE || r == rank)
        search_callers(&own, r, REASON_SHARE * ms);
    found->calls = own.part;
    found->inside = own.part && alone.part ? line_of(&alone) : NULL;
    found->inside_rank = alone.rank;
  }
  if (!own.part) {
    found->more_steps = steps_needed(a, slices, REASON_SHARE * ms);
    return;
  }
  found->line = line_of(&own);
  found->steps = own.times.steps;
  found->at_line = steps_at_line(&own);
  if (is_of_several(&own))
    return;
  found->rank = own.rank;
  for (u32 r = 0; r < a->model->n_ranks; r++)
    if (r != own.rank)
      search_rank(&waits, r, WAIT_LINE);
  if (waits.part && waits.times.more_ms >= REASON_SHARE * ms)
    found->waits = line_of(&waits);
}

void step_line_of_work(struct analysis *a, u32 kind, struct step_line *found) {
  const struct other_work *work = &a->results->other_work[kind];
  bool slices[SLICES] = {false};
  slices[TRAINING_SLICES + kind] = true;
  step_line_find(a, slices, model_rank_index(a->model, work->rank), work->ms, found);
}

void step_line_of_long_steps(struct analysis *a, const bool *is_long, double ms,
                             struct step_line *found) {
  bool slices[SLICES] = {false};
  *found = (struct step_line){.rank = INDEX_NONE, .more_steps = NAN};
  if (a->whole_run || a->n_steps > TRAINING_SLICES)
    return;
  FOR_EACH_STEP(a, step)
    slices[slice_of_step(a, step)] |= is_long[step];
  step_line_find(a, slices, INDEX_NONE, ms, found);
}

static void set_lines_of_work(struct analysis *a) {
  for (u32 i = 0; i < a->results->n_other_work; i++) {
    struct other_work *work = &a->results->other_work[i];
    struct step_line found;
    step_line_of_work(a, i, &found);
    work->at = found.line ? found.line->place : NULL;
    work->waits_at = found.waits ? found.waits->place : NULL;
  }
}

static void set_lines_of_turns(struct analysis *a) {
  SCOPED_ARENA struct arena scratch = {0};
  bool *holds = arena_array(&scratch, a->model->steps.n, sizeof(*holds));
  for (u32 turn = 1; turn <= a->results->n_turns; turn++) {
    struct step_line found;
    for (u32 step = 0; step < a->model->steps.n; step++)
      holds[step] = analysis_turn_of(a, step) == turn;
    step_line_of_long_steps(a, holds, a->results->turns[turn - 1].ms, &found);
    a->results->turns[turn - 1].at = found.line ? found.line->place : NULL;
  }
}

void step_lines_analyse(struct analysis *a) {
  set_lines_of_work(a);
  set_lines_of_turns(a);
}
