/* SPDX-License-Identifier: MIT
 *
 * Which part of the program takes longer on a rank than on its peers: of a straggler, in the steps
 * in which it is late.
 *
 * A part stands out if chance does not explain the difference: either it was seen in more of the
 * rank's steps than of its peers' (each step counts once, however many samples it has: a binomial
 * tail), or its time differs in each slice of the run (Student's t over slices). In both,
 * neighbouring slices are as independent as those of its peers are there (persistence.h): that the
 * rank itself is slow for some steps takes nothing away. Both are
 * multiplied by the number of parts compared. The error is the spread over slices, at least that of
 * a Poisson count. How late a straggler is, collectives show: where a part takes as much longer,
 * within the errors of both, how much longer is the mean of both, weighted by their errors.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/ranks/core_times.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/persistence.h"
#include "base/sorting.h"
#include "base/statistics.h"

static const double errors_apart = 2;      /* below that two figures are the same */
static const double part_of_first = 0.25;  /* a second line with less is no second reason */
static const double part_of_all = 0.8;     /* a function with more of the time tells nothing */
static const double slices_of_spread = 5;  /* that a spread must rest on */
static const double parts_at_least = 10.0; /* assumed to be compared where fewer were seen */

/* A part on a rank. */
struct entry {
  const struct sampled_part *part;
  u32 rank;
};

/* Time and steps in each slice. */
struct sums {
  double ns[SLICES], steps[SLICES], seen[SLICES];
};

struct difference {
  double ms, peers_ms, more_ms, error_ms, chance;
};

/* Of a rank. */
struct best_parts {
  double own_ms;     /* at any line, a step */
  u32 n[PART_KINDS]; /* parts seen */
  const struct sampled_part *part[PART_KINDS];
  struct difference of[PART_KINDS];
  const struct sampled_part *next; /* the line with the next largest difference */
  struct difference of_next;
  bool lacks_cores;               /* of a straggler: that explains it, see lacks_cores() */
  bool before;                    /* compared are the steps before those in which it is late */
  bool compared[TRAINING_SLICES]; /* slices with a step in which the rank is late */
  double late_share;              /* of the steps in these slices */
};

struct comparison {
  struct analysis *a;
  struct entry *all; /* by part */
  u32 n;
  double steps[SLICES]; /* of all ranks that count as peers */
  u32 peers;
  struct best_parts *best;               /* [n_ranks] */
  bool before;                           /* of those that are late, the steps before are compared */
  struct sums own, others, all_peers;    /* of the part and the rank that are compared */
  struct persistence all_follow, follow; /* how a peer's time there follows from slice to slice */
};

ORDER_BY(by_part, struct entry, UP(part->key) UP(rank))

static const struct rank_parts *parts_of(const struct comparison *c, u32 rank) {
  return &c->a->line_sums[rank].parts;
}

/* Stragglers are nobody's peers, unless all are. */
static bool is_peer(const struct comparison *c, u32 rank) {
  return !c->a->results->ranks[rank].straggler || c->peers == 0;
}

/* Whether a step of training is one in which the rank is late, where it is so in some only. */
static bool is_late_in(const struct comparison *c, u32 rank, u32 step) {
  const struct analysis *a = c->a;
  return straggler_is_late_in(&a->results->ranks[rank], a->model->steps.first + step);
}

/* Whether what the rank does in a step may be why it is late. */
static bool is_compared(const struct comparison *c, u32 rank, u32 step) {
  return is_late_in(c, rank, step + c->best[rank].before);
}

static void find_late_slices(struct comparison *c, u32 rank) {
  const struct analysis *a = c->a;
  struct best_parts *best = &c->best[rank];
  double all[TRAINING_SLICES] = {0}, late[TRAINING_SLICES] = {0}, sum = 0, sum_late = 0;
  bool always = a->results->ranks[rank].n_late == 0;
  for (u32 step = a->first_step; step < a->first_step + a->n_steps && !always; step++)
    if (analysis_is_training(a, step)) {
      all[slice_of_step(a, step)]++;
      late[slice_of_step(a, step)] += is_compared(c, rank, step);
    }
  for (u32 s = 0; s < TRAINING_SLICES; s++) {
    best->compared[s] = always || late[s] > 0;
    sum += best->compared[s] ? all[s] : 0;
    sum_late += late[s];
  }
  best->late_share = always ? 1 : sum_late / sum;
}

static void add_part(struct sums *to, const struct sampled_part *part, double sign) {
  for (u32 i = 0; i < part->n_times; i++) {
    to->ns[part->times[i].slice] += sign * (double)part->times[i].ns;
    to->seen[part->times[i].slice] += sign * part->times[i].steps;
  }
}

/* The rank's sums against those of its peers, in the slices that count for it: for each step in
 * which it is late. */
static struct difference difference_of(const struct comparison *c, u32 rank) {
  double own = 0, others = 0, steps = 0, of_others = 0, seen = 0, seen_others = 0;
  double values[TRAINING_SLICES], spread = 0, share = c->best[rank].late_share;
  u32 n = 0;
  for (u32 s = 0; s < TRAINING_SLICES; s++) {
    if (!(c->own.steps[s] > 0) || !(c->others.steps[s] > 0) || !c->best[rank].compared[s])
      continue;
    own += c->own.ns[s];
    others += c->others.ns[s];
    steps += c->own.steps[s];
    of_others += c->others.steps[s];
    seen += c->own.seen[s];
    seen_others += c->others.seen[s];
    values[n++] = c->own.ns[s] / c->own.steps[s] - c->others.ns[s] / c->others.steps[s];
  }
  struct difference d = {.chance = 1};
  if (n == 0)
    return d;
  d.ms = own / steps / 1e6;
  d.peers_ms = others / of_others / 1e6;
  d.more_ms = (d.ms - d.peers_ms) / share;
  d.ms += d.more_ms - (d.ms - d.peers_ms);
  double follows = persistence_of(&c->follow), independent = n * independent_share(follows);
  double mean = mean_of(values, n);
  for (u32 i = 0; i < n; i++)
    spread += (values[i] - mean) * (values[i] - mean);
  spread = n >= slices_of_spread ? sqrt(spread / (n - 1) / independent) / 1e6 : 0;
  double poisson = sqrt(own * parts_of(c, rank)->sample_ns) / steps / 1e6;
  d.error_ms = fmax(spread, poisson) / share;
  d.chance =
      chance_of_count((u32)seen, (u32)(seen + seen_others), steps / (steps + of_others), follows);
  if (n >= slices_of_spread && d.more_ms > 0 && d.error_ms > 0)
    d.chance = fmin(d.chance, student_tails(d.more_ms / d.error_ms, fmax(1, independent - 1)) / 2);
  d.chance *= 2;
  return d;
}

/* The best of each kind on each rank. */

/* Whether chance does not explain the difference, of so many parts; the steps before are a second
 * try. Of lines of other threads all are seen where one waits for them. */
static bool stands_out(const struct comparison *c, u32 rank, enum part_kind kind,
                       const struct difference *d) {
  double least = kind == BESIDE_LINE ? 1 : parts_at_least;
  double n = fmax(c->best[rank].n[kind], least) * (1 + c->best[rank].before);
  return d->more_ms > 0 && d->chance * n < STRAGGLER_SIGNIFICANCE;
}

/* Whether it is enough of the time by which a straggler is late. */
static bool explains(const struct rank_result *rank, const struct difference *d) {
  return d->more_ms >= REASON_SHARE * rank->late_a_step_ms;
}

/* What a thread does not do by its own will. A rank that has more to do also waits longer for a
 * core: that is no reason where its peers wait as long for each second of CPU time. */
static bool tells_why(const struct best_parts *best, u32 activity) {
  return (activity == TSCOPE_ACTIVITY_NO_CORE && best->lacks_cores) ||
         activity == TSCOPE_ACTIVITY_LOCK || activity == TSCOPE_ACTIVITY_GIL ||
         activity == TSCOPE_ACTIVITY_DISK || activity == TSCOPE_ACTIVITY_NETWORK ||
         activity == TSCOPE_ACTIVITY_PIPE || activity == TSCOPE_ACTIVITY_PROCESS ||
         activity == TSCOPE_ACTIVITY_PAGES || activity == TSCOPE_ACTIVITY_COLLECTING;
}

static void keep_next(struct best_parts *best, const struct sampled_part *part,
                      const struct difference *d) {
  if (best->next && best->of_next.more_ms >= d->more_ms)
    return;
  best->next = part;
  best->of_next = *d;
}

/* Of functions that explain why the rank is late the innermost is best. Of all others it is the one
 * with the largest difference. */
static void keep_if_best(struct comparison *c, const struct entry *e, const struct difference *d) {
  struct best_parts *best = &c->best[e->rank];
  enum part_kind kind = e->part->kind;
  const struct rank_result *rank = &c->a->results->ranks[e->rank];
  const struct difference *known = best->part[kind] ? &best->of[kind] : NULL;
  if (kind == WAIT_LINE || kind == CALLING_LINE || !stands_out(c, e->rank, kind, d))
    return;
  if (known && (kind == OWN_FUNCTION ? part_is_inside(best->part[kind], known->ms, e->part, d->ms)
                                     : known->more_ms >= d->more_ms)) {
    if (kind == OWN_LINE)
      keep_next(best, e->part, d);
    return;
  }
  if (kind == OWN_FUNCTION &&
      (!rank->straggler || !explains(rank, d) || d->ms > part_of_all * best->own_ms))
    return;
  if (kind == OWN_ACTIVITY &&
      (!rank->straggler || !explains(rank, d) || !tells_why(best, e->part->line)))
    return;
  if (known && kind == OWN_LINE)
    keep_next(best, best->part[kind], known);
  best->part[kind] = e->part;
  best->of[kind] = *d;
}

/* A part on all ranks that have it. */
static void compare_part(struct comparison *c, const struct entry *at, u32 n) {
  struct sums *all = &c->all_peers;
  memset(all, 0, sizeof(*all));
  c->all_follow = (struct persistence){0};
  for (u32 i = 0; i < n; i++)
    if (is_peer(c, at[i].rank)) {
      part_persistence(parts_of(c, at[i].rank), at[i].part, NULL, 1, &c->all_follow);
      add_part(all, at[i].part, 1);
    }
  for (u32 i = 0; i < n; i++) {
    if (c->best[at[i].rank].before != c->before)
      continue;
    const u32 *steps = parts_of(c, at[i].rank)->steps;
    bool peer = is_peer(c, at[i].rank);
    c->others = *all;
    c->follow = c->all_follow;
    memset(&c->own, 0, sizeof(c->own));
    add_part(&c->own, at[i].part, 1);
    if (peer) {
      part_persistence(parts_of(c, at[i].rank), at[i].part, NULL, -1, &c->follow);
      add_part(&c->others, at[i].part, -1);
    }
    for (u32 s = 0; s < TRAINING_SLICES; s++) {
      c->own.steps[s] = steps[s];
      c->others.steps[s] = c->steps[s] - (peer ? steps[s] : 0);
    }
    struct difference d = difference_of(c, at[i].rank);
    keep_if_best(c, &at[i], &d);
  }
}

static void add_lines(struct sums *to, const struct rank_parts *parts) {
  for (u32 i = 0; i < parts->n; i++)
    if (parts->at[i].kind == OWN_LINE)
      add_part(to, &parts->at[i], 1);
}

/* The rank against its peers at all lines together. */
static struct difference difference_of_lines(struct comparison *c, u32 rank) {
  memset(&c->own, 0, sizeof(c->own));
  memset(&c->others, 0, sizeof(c->others));
  add_lines(&c->own, parts_of(c, rank));
  for (u32 r = 0; r < c->a->model->n_ranks; r++)
    if (r != rank && is_peer(c, r))
      add_lines(&c->others, parts_of(c, r));
  for (u32 s = 0; s < TRAINING_SLICES; s++) {
    c->own.steps[s] = parts_of(c, rank)->steps[s];
    c->others.steps[s] = c->steps[s] - (is_peer(c, rank) ? parts_of(c, rank)->steps[s] : 0);
  }
  c->follow = (struct persistence){0};
  return difference_of(c, rank);
}

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

static struct sampled_line *result_of(struct comparison *c, u32 rank, enum part_kind kind) {
  const struct sampled_part *part = c->best[rank].part[kind];
  const struct difference *d = &c->best[rank].of[kind];
  const struct rank_result *result = &c->a->results->ranks[rank];
  const struct difference *next = &c->best[rank].of_next;
  struct sampled_line *line = line_of_part(c->a, part);
  struct lateness late = lateness_of(result);
  bool rest = late.ms - d->more_ms > errors_apart * hypot(d->error_ms, late.error_ms);
  if (kind == OWN_LINE && c->best[rank].next &&
      (rest || next->more_ms >= part_of_first * d->more_ms)) {
    line->next = line_of_part(c->a, c->best[rank].next);
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
static double phase_more_ms(const struct comparison *c, u32 rank, u32 step, size_t phase) {
  const struct analysis *a = c->a;
  if (!analysis_is_training(a, step) || !is_late_in(c, rank, step))
    return NAN;
  return phase_ms(a, rank, step, phase) -
         MEAN_KNOWN(0, a->model->n_ranks, r,
                    r != rank && is_peer(c, r) ? phase_ms(a, r, step, phase) : (double)NAN);
}

/* A phase that takes longer by enough, in the steps in which the rank is late: phases are recorded,
 * not sampled. */
static void set_slow_phase(struct comparison *c, u32 index) {
  static const struct {
    size_t at;
    const char *name, *where;
  } phases[] = {
      {offsetof(struct phase_times, data), "data", "in the data phase"},
      {offsetof(struct phase_times, forward), "forward", "in the forward phase"},
      {offsetof(struct phase_times, backward), "backward", "in the backward phase"},
      {offsetof(struct phase_times, optimizer), "optimizer", "in the optimizer phase"},
      {offsetof(struct phase_times, other), "other", "outside forward, backward and optimizer"}};
  struct analysis *a = c->a;
  struct rank_result *rank = &a->results->ranks[index];
  SCOPED double *scratch = memory_array(size_sum(a->n_steps, 1), sizeof(*scratch));
  for (size_t i = 0; a->model->phases && i < LENGTH_OF(phases); i++) {
    u32 n = LIST_KNOWN(scratch, a->first_step, a->first_step + a->n_steps, step,
                       phase_more_ms(c, index, step, phases[i].at));
    double more = median_of(scratch, n);
    if (!(more >= REASON_SHARE * rank->late_a_step_ms) ||
        (rank->slow_line && rank->slow_line->more_ms >= more))
      continue;
    struct sampled_line *line = arena_alloc(a->arena, sizeof(*line));
    *line = (struct sampled_line){.place = phases[i].name,
                                  .where = phases[i].where,
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
  double chance = STRAGGLER_SIGNIFICANCE / (2 * fmax(c->best[index].n[OWN_LINE], parts_at_least));
  double seen = log(chance) / log(steps / (steps + others));
  double in_a_step = fmin(1, late / parts->sample_ns);
  return fmax(0, ceil(seen / in_a_step - steps));
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
  /* A line of its own that computes is also what needs the core, and no slow device. */
  bool own = of_line && best->of[OWN_LINE].peers_ms < LINE_OF_ONE * best->of[OWN_LINE].ms;
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

static void set_rank(struct comparison *c, u32 index) {
  struct rank_result *rank = &c->a->results->ranks[index];
  const struct best_parts *best = &c->best[index];
  if (best->part[WORKER_LINE])
    rank->slow_in_workers = result_of(c, index, WORKER_LINE);
  if (rank->straggler) {
    explain_straggler(c, index);
    if (waits_for_workers(rank))
      rank->slow_line = rank->slow_in_workers;
    return;
  }
  if (best->part[OWN_LINE])
    rank->slow_line = result_of(c, index, OWN_LINE);
}

static void set_late_at(struct rank_result *rank) {
  const struct sampled_line *line = rank->straggler ? rank->slow_line : NULL;
  rank->late_at = line ? line->place : NULL;
  rank->late_path = line ? line->path : NULL;
  rank->late_more_ms = line ? line->more_ms : NAN;
  rank->late_error_ms = line ? line->more_error_ms : NAN;
  rank->late_activity = line ? line->activity : NULL;
}

static void compare_parts(struct comparison *c) {
  for (u32 i = 0, n; i < c->n; i += n) {
    n = ROW_OF_EQUALS(&c->all[i], c->n - i, first, one, one->part->key == first->part->key);
    if (n <= c->a->model->n_ranks)
      compare_part(c, &c->all[i], n);
  }
}

/* What a rank does behind the last collective of a step makes it late at the first of the next. Of
 * ranks that are late in some steps without a cause in these, the steps before are compared. */
static bool look_before(struct comparison *c) {
  for (u32 r = 0; r < c->a->model->n_ranks; r++) {
    struct rank_result *rank = &c->a->results->ranks[r];
    struct best_parts *best = &c->best[r];
    if (!rank->straggler || !rank->late_at_times || rank->slow_line ||
        rank->reason != STRAGGLER_NOT_SEEN)
      continue;
    c->before = best->before = true;
    rank->steps_to_tell = 0;
    memset(best->part, 0, sizeof(best->part));
    best->next = NULL;
    find_late_slices(c, r);
  }
  return c->before;
}

static void compare_ranks(struct comparison *c) {
  u32 n = c->a->model->n_ranks;
  compare_parts(c);
  for (u32 r = 0; r < n; r++)
    set_rank(c, r);
  if (look_before(c))
    compare_parts(c);
  for (u32 r = 0; r < n; r++) {
    if (c->best[r].before)
      set_rank(c, r);
    set_late_at(&c->a->results->ranks[r]);
  }
}

/* Times on cores of a rank in the steps in which the straggler is late; how many steps. Where these
 * are single ones, for which the looks are too rare: times of all steps. */
static u32 add_core_times(const struct comparison *c, u32 rank, u32 straggler,
                          struct core_times *to) {
  const struct analysis *a = c->a;
  bool all = a->results->ranks[straggler].late_at_times;
  u32 n = a->model->n_ranks, steps = 0;
  for (u32 s = 0; s < a->n_steps; s++) {
    u32 first = s, late = 0;
    for (bool is; s < a->n_steps; s++, late += is)
      if (!(is = is_late_in(c, straggler, a->first_step + s)) && !all)
        break;
    if (first == s)
      continue;
    size_t from = (size_t)(a->first_step + first) * n + rank,
           to_step = (size_t)(a->first_step + s - 1) * n + rank;
    struct interval when = {a->begin[from], a->end[to_step]};
    if (when.start != NS_UNKNOWN && when.end != NS_UNKNOWN &&
        core_times_add(to, &a->model->ranks[rank], when))
      steps += late;
  }
  return steps;
}

/* Whether a lack of cores explains why a straggler is late; true where its times are not known. */
static bool lacks_cores(const struct comparison *c, u32 straggler) {
  const struct analysis *a = c->a;
  struct core_times own = {0}, peers = {0};
  u32 steps = a->whole_run ? 0 : add_core_times(c, straggler, straggler, &own);
  for (u32 r = 0; r < a->model->n_ranks && steps; r++)
    if (r != straggler && is_peer(c, r))
      add_core_times(c, r, straggler, &peers);
  double lack_ms = steps ? core_times_lack_s(own, peers) * 1e3 / steps : NAN;
  return !(lack_ms < REASON_SHARE * a->results->ranks[straggler].late_a_step_ms);
}

/* What comparisons of a rank need to know of it. */
static void look_at_rank(struct comparison *c, u32 rank) {
  const struct rank_parts *parts = parts_of(c, rank);
  struct best_parts *best = &c->best[rank];
  double ns = 0, steps = 0;
  for (u32 i = 0; i < parts->n; i++) {
    c->all[c->n++] = (struct entry){&parts->at[i], rank};
    best->n[parts->at[i].kind]++;
    for (u32 k = 0; parts->at[i].kind == OWN_LINE && k < parts->at[i].n_times; k++)
      ns += parts->at[i].times[k].slice < TRAINING_SLICES ? (double)parts->at[i].times[k].ns : 0;
  }
  for (u32 s = 0; s < TRAINING_SLICES; s++) {
    steps += parts->steps[s];
    c->steps[s] += parts->n && is_peer(c, rank) ? parts->steps[s] : 0;
  }
  best->own_ms = ns / steps / 1e6;
  find_late_slices(c, rank);
  best->lacks_cores = c->a->results->ranks[rank].straggler && lacks_cores(c, rank);
}

void slow_parts_summarise(struct analysis *a) {
  SCOPED struct comparison *c = memory_zeroed(1, sizeof(*c));
  u32 n = TOTAL(u32, a->line_sums, a->model->n_ranks, one, one->parts.n);
  c->a = a;
  for (u32 r = 0; r < a->model->n_ranks; r++)
    c->peers += a->line_sums[r].parts.n && !a->results->ranks[r].straggler;
  c->all = memory_array(size_sum(n, 1), sizeof(*c->all));
  c->best = memory_zeroed(size_sum(a->model->n_ranks, 1), sizeof(*c->best));
  for (u32 r = 0; r < a->model->n_ranks; r++)
    look_at_rank(c, r);
  SORT(c->all, c->n, by_part);
  compare_ranks(c);
  FREE_EACH(c, all, best);
}
