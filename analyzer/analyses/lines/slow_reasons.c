/* SPDX-License-Identifier: MIT
 *
 * Why a straggler is late, from the parts of the program that stand out on it: that it had no core,
 * a line, a function, something else that threads do, or a phase. How late it is, collectives show:
 * where a part takes as much longer, within the errors of both, how much longer is the mean of
 * both, weighted by their errors.
 */
#include <math.h>

#include "analyses/lines/slow_parts.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "model/phase_times.h"

static const double errors_apart = 2;     /* below that two figures are the same */
static const double part_of_first = 0.25; /* a second line with less is no second reason */

/* How late a rank is, as clocks show it. */
struct lateness {
  double ms, error_ms;
};

/* Samples tell a mean, arrivals a median: where a rank is late by very different times, that is no
 * better known than how far the two are apart. */
static struct lateness lateness_of(const struct rank_result *rank) {
  return (struct lateness){rank->late_a_step_ms,
                           hypot(rank->late_a_step_error_ms, rank->late_skew_ms)};
}

/* The mean of how late a rank is and what samples show, weighted by their errors. */
static void set_mean(struct lateness late, const struct difference *d, struct sampled_line *line) {
  double clocks = late.error_ms * late.error_ms;
  double samples = d->error_ms * d->error_ms, both = samples + clocks;
  line->more_ms = d->more_ms + (late.ms - d->more_ms) * samples / both;
  line->more_error_ms = sqrt(samples * clocks / both);
}

/* Sets how much longer a part takes; `late`: what of the rank's lateness is its own. Where a part
 * takes longer than the rank is late, either other lines take less, which is taken away, or the
 * rank is late at several collectives: what all its lines take tells. */
static void set_amount(struct comparison *c, u32 index, const struct difference *d,
                       struct lateness late, struct sampled_line *line) {
  const struct rank_result *rank = &c->a->results->ranks[index];
  double both = hypot(d->error_ms, late.error_ms);
  line->more_ms = d->more_ms;
  line->error_ms = line->more_error_ms = d->error_ms;
  if (both > 0 && fabs(late.ms - d->more_ms) <= errors_apart * both)
    set_mean(late, d, line);
  else if (rank->late_a_step_ms < d->more_ms && !line->in_workers) {
    struct difference all = difference_of_lines(c, index);
    if (all.more_ms - rank->late_a_step_ms < d->more_ms - all.more_ms)
      set_mean(lateness_of(rank), &all, line);
  }
}

static bool same_path(const struct sampled_path *x, const struct sampled_path *y) {
  return x->n == y->n && !ANY_NUMBER(0, x->n, i, !call_frame_is_same(&x->frames[i], &y->frames[i]));
}

/* How long a rank's peers are in a part that is called so, in all. */
static double peers_called_ns(const struct comparison *c, u32 rank, u64 key,
                              const struct sampled_path *path) {
  double ns = 0;
  for (u32 i = FIRST_NOT(0, c->n, k, c->all[k].part->key < key);
       i < c->n && c->all[i].part->key == key; i++) {
    const struct entry *e = &c->all[i];
    if (e->rank == rank || !is_peer(c, e->rank))
      continue;
    const struct sampled_path *same =
        FIND(e->part->paths, e->part->n_paths, one, same_path(one, path));
    ns += same ? (double)same->ns : 0;
  }
  return ns;
}

/* Several places may call a line: how it is called where the rank is there longer than its peers.
 */
static const struct sampled_path *path_of_difference(const struct comparison *c, u32 rank,
                                                     const struct sampled_part *part) {
  double steps = 0, others = 0;
  for (u32 s = 0; s < SLICES; s++) {
    u32 own = parts_of(c, rank)->steps[s];
    steps += own;
    others += c->steps[s] - (is_peer(c, rank) ? own : 0);
  }
  return LARGEST(part->paths, part->n_paths, one, true,
                 (double)one->ns / steps -
                     (others > 0 ? peers_called_ns(c, rank, part->key, one) / others : 0));
}

/* A part in words that takes longer on a rank than on its peers. */
static struct sampled_line *longer_line(const struct comparison *c, u32 rank,
                                        const struct sampled_part *part) {
  struct sampled_line *line = line_of_part(c->a, part);
  line_set_path(c->a, part, path_of_difference(c, rank, part), line);
  return line;
}

static struct sampled_line *result_of(struct comparison *c, u32 rank, enum part_kind kind) {
  const struct sampled_part *part = c->best[rank].part[kind];
  const struct difference *d = &c->best[rank].of[kind];
  const struct rank_result *result = &c->a->results->ranks[rank];
  const struct difference *next = &c->best[rank].of_next;
  struct sampled_line *line = longer_line(c, rank, part);
  struct lateness late = lateness_of(result);
  bool rest = late.ms - d->more_ms > errors_apart * hypot(d->error_ms, late.error_ms);
  if (kind == OWN_LINE && c->best[rank].next &&
      (rest || next->more_ms >= part_of_first * d->more_ms)) {
    line->next = longer_line(c, rank, c->best[rank].next);
    line->next_ms = next->more_ms;
    late = (struct lateness){late.ms - next->more_ms, hypot(late.error_ms, next->error_ms)};
  }
  set_amount(c, rank, d, late, line);
  line->ms = d->ms;
  line->peers_ms = d->peers_ms;
  line_set_beside(c->a, part, c->best[rank].part[BESIDE_LINE], line);
  return line;
}

/* How much longer than the mean peer a rank that is late in a step is in a phase; NAN in others. */
static double phase_more_ms(const struct comparison *c, u32 rank, u32 step, u32 kind) {
  const struct analysis *a = c->a;
  if (!analysis_is_training(a, step) || !is_late_in(c, rank, step))
    return NAN;
  return phase_ms(a->model, rank, step, kind) -
         MEAN_KNOWN(0, a->model->n_ranks, r,
                    r != rank && is_peer(c, r) ? phase_ms(a->model, r, step, kind) : (double)NAN);
}

/* A phase that takes longer by enough, in the steps in which the rank is late: phases are recorded,
 * not sampled. */
static void set_slow_phase(struct comparison *c, u32 index) {
  struct analysis *a = c->a;
  struct rank_result *rank = &a->results->ranks[index];
  SCOPED double *scratch = memory_array(size_sum(a->n_steps, 1), sizeof(*scratch));
  for (u32 kind = PHASE_OTHER; a->model->phases && kind < PHASE_KINDS; kind++) {
    u32 n = LIST_KNOWN(scratch, a->first_step, a->first_step + a->n_steps, step,
                       phase_more_ms(c, index, step, kind));
    double more = median_of(scratch, n);
    if (!(more >= REASON_SHARE * rank->late_a_step_ms) ||
        (rank->slow_line && rank->slow_line->more_ms >= more))
      continue;
    struct sampled_line *line = arena_alloc(a->arena, sizeof(*line));
    *line = (struct sampled_line){.place = kind ? phase_word(kind) : "other",
                                  .where = kind ? say(a, "in the %s phase", phase_word(kind))
                                                : "outside forward, backward and optimizer",
                                  .ms = NAN,
                                  .peers_ms = NAN,
                                  .more_ms = more,
                                  .error_ms = NAN,
                                  .more_error_ms = NAN,
                                  .no_core_share = NAN};
    rank->slow_line = line;
  }
}

/* How many more steps it takes until a line that explains why the rank is late would stand out, if
 * its peers are never there; 0: it would stand out in those recorded. */
static double steps_needed(const struct comparison *c, u32 index) {
  const struct rank_parts *parts = parts_of(c, index);
  double steps = 0, others = 0;
  for (u32 s = 0; s < TRAINING_SLICES; s++)
    if (c->best[index].compared[s]) {
      steps += parts->steps[s];
      others += c->steps[s] - (is_peer(c, index) ? parts->steps[s] : 0);
    }
  double late = c->a->results->ranks[index].late_a_step_ms * 1e6;
  double chance = STRAGGLER_SIGNIFICANCE / (2 * fmax(c->best[index].n[OWN_LINE], PARTS_AT_LEAST));
  double seen = log(chance) / log(steps / (steps + others));
  double in_a_step = fmin(1, late / parts->sample_ns);
  return fmax(0, ceil(seen / in_a_step - steps));
}

static bool has_function(const struct sampled_path *path, const char *function) {
  return ANY(path->frames, path->n, one, same_text(one->function, function));
}

static bool is_called_in(const struct sampled_part *line, const struct sampled_part *function) {
  return same_text(line->function, function->function) ||
         ANY(line->paths, line->n_paths, one, has_function(one, function->function));
}

/* On a busy machine a rank that does more than its peers loses its core, and then its other lines
 * take longer, too. Where what takes longest is a line or a function of all ranks, mostly without a
 * core, a line of its own comes first, if it explains enough of what is left without those waits.
 */
static bool prefer_its_own_line(struct comparison *c, u32 index, enum part_kind kind) {
  struct best_parts *best = &c->best[index];
  const struct sampled_part *part = best->part[kind];
  const struct difference d = best->of[kind];
  if (!part || !best->alone || is_of_one(&d) ||
      (kind == OWN_FUNCTION && is_called_in(best->alone, part)))
    return false;
  double share = no_core_share(part);
  double late = c->a->results->ranks[index].late_a_step_ms;
  if (!(share >= REASON_SHARE) ||
      best->of_alone.more_ms < REASON_SHARE * (late - share * d.more_ms))
    return false;
  best->next = part;
  best->of_next = d;
  best->part[OWN_LINE] = best->alone;
  best->of[OWN_LINE] = best->of_alone;
  return true;
}

/* What explains why a straggler is late: that it had no core, a line, a function, something else
 * that threads do, or a phase. */
static void explain_straggler(struct comparison *c, u32 index) {
  struct rank_result *rank = &c->a->results->ranks[index];
  if (rank->longer_compute_steps > 0) /* its device does */
    return;
  const struct best_parts *best = &c->best[index];
  const struct sampled_part *activity = best->part[OWN_ACTIVITY];
  bool no_core = activity && activity->line == TSCOPE_ACTIVITY_NO_CORE;
  bool of_line = best->part[OWN_LINE] && explains(rank, &best->of[OWN_LINE]);
  if (!no_core && rank->reason != STRAGGLER_SLOW_INPUT)
    of_line |= prefer_its_own_line(c, index, of_line ? OWN_LINE : OWN_FUNCTION);
  /* A line of its own that computes is also what needs the core, and no slow device. */
  bool own = of_line && is_of_one(&best->of[OWN_LINE]);
  no_core &= !own;
  if (parts_of(c, index)->n && !of_line && !best->part[OWN_FUNCTION] && !activity)
    rank->steps_to_tell = steps_needed(c, index);
  if (of_line || best->part[OWN_FUNCTION] || activity) {
    rank->slow_line = result_of(c, index,
                                no_core                    ? OWN_ACTIVITY
                                : of_line                  ? OWN_LINE
                                : best->part[OWN_FUNCTION] ? OWN_FUNCTION
                                                           : OWN_ACTIVITY);
  } else
    set_slow_phase(c, index);
  own &= rank->reason != STRAGGLER_SLOW_INPUT;
  if (rank->slow_line && (no_core || own || rank->reason == STRAGGLER_NOT_SEEN))
    rank->reason = no_core ? STRAGGLER_NO_CORE : STRAGGLER_OWN_CODE;
}

/* Whether the rank is late because it waits for what its data loader workers do. */
static bool waits_for_workers(const struct rank_result *rank) {
  const struct sampled_line *line = rank->slow_line, *workers = rank->slow_in_workers;
  return line && line->waits && workers && workers->more_ms >= REASON_SHARE * rank->late_a_step_ms;
}

static void set_late_at(struct rank_result *rank) {
  const struct sampled_line *line = rank->straggler ? rank->slow_line : NULL;
  rank->late_at = line ? line->place : NULL;
  rank->late_path = line ? line->path : NULL;
  rank->late_more_ms = line ? line->more_ms : NAN;
  rank->late_error_ms = line ? line->more_error_ms : NAN;
  rank->late_activity = line ? line->activity : NULL;
}

void slow_reasons_set(struct comparison *c, u32 index) {
  struct rank_result *rank = &c->a->results->ranks[index];
  const struct best_parts *best = &c->best[index];
  if (best->part[WORKER_LINE])
    rank->slow_in_workers = result_of(c, index, WORKER_LINE);
  if (!rank->straggler && best->part[OWN_LINE])
    rank->slow_line = result_of(c, index, OWN_LINE);
  if (rank->straggler)
    explain_straggler(c, index);
  if (rank->straggler && waits_for_workers(rank))
    rank->slow_line = rank->slow_in_workers;
  set_late_at(rank);
}
