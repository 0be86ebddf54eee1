/* SPDX-License-Identifier: MIT
 *
 * Which part of the program takes longer on a rank than on its peers: of a straggler, in the steps
 * in which it is late.
 *
 * A part stands out if chance does not explain the difference: either it was seen in more of the
 * rank's steps than of its peers' (each step counts once, however many samples it has: a binomial
 * tail), or its time differs in each slice of the run (Student's t over slices). In both,
 * neighbouring slices are as independent as those of its peers are there (persistence.h): that the
 * rank itself is slow for some steps takes nothing away. Both are multiplied by the number of parts
 * compared. The error is the spread over slices, at least that of a Poisson count.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/lines/slow_parts.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "model/core_times.h"

static const double part_of_all = 0.8;    /* a function with more of the time tells nothing */
static const double slices_of_spread = 5; /* that a spread must rest on */

ORDER_BY(by_part, struct entry, UP(part->key) UP(rank))

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
  FOR_EACH(part->times, part->n_times, time) {
    to->ns[time->slice] += sign * (double)time->ns;
    to->seen[time->slice] += sign * time->steps;
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
  d.ms = ns_to_ms(own / steps);
  d.peers_ms = ns_to_ms(others / of_others);
  d.more_ms = (d.ms - d.peers_ms) / share;
  d.ms += d.more_ms - (d.ms - d.peers_ms);
  double follows = persistence_of(&c->follow), independent = n * independent_share(follows);
  double mean = mean_of(values, n);
  FOR_EACH(values, n, value)
    spread += (*value - mean) * (*value - mean);
  spread = n >= slices_of_spread ? ns_to_ms(sqrt(spread / (n - 1) / independent)) : 0;
  double poisson = ns_to_ms(sqrt(own * parts_of(c, rank)->sample_ns) / steps);
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
  double least = kind == BESIDE_LINE ? 1 : PARTS_AT_LEAST;
  double n = fmax(c->best[rank].n[kind], least) * (1 + c->best[rank].before);
  return d->more_ms > 0 && d->chance * n < STRAGGLER_SIGNIFICANCE;
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

static double more_with_core(const struct sampled_part *part, const struct difference *d) {
  return (1 - fmax(no_core_share(part), 0)) * d->more_ms;
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
  if (kind == OWN_LINE && is_of_one(d) &&
      (!best->alone || more_with_core(best->alone, &best->of_alone) < more_with_core(e->part, d))) {
    best->alone = e->part;
    best->of_alone = *d;
  }
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
  FOR_EACH(at, n, each)
    if (is_peer(c, each->rank)) {
      part_persistence(parts_of(c, each->rank), each->part, NULL, 1, &c->all_follow);
      add_part(all, each->part, 1);
    }
  FOR_EACH(at, n, one) {
    if (c->best[one->rank].before != c->before)
      continue;
    const u32 *steps = parts_of(c, one->rank)->steps;
    bool peer = is_peer(c, one->rank);
    c->others = *all;
    c->follow = c->all_follow;
    memset(&c->own, 0, sizeof(c->own));
    add_part(&c->own, one->part, 1);
    if (peer) {
      part_persistence(parts_of(c, one->rank), one->part, NULL, -1, &c->follow);
      add_part(&c->others, one->part, -1);
    }
    for (u32 s = 0; s < TRAINING_SLICES; s++) {
      c->own.steps[s] = steps[s];
      c->others.steps[s] = c->steps[s] - (peer ? steps[s] : 0);
    }
    struct difference d = difference_of(c, one->rank);
    keep_if_best(c, one, &d);
  }
}

static void add_lines(struct sums *to, const struct rank_parts *parts) {
  FOR_EACH(parts->at, parts->n, part)
    if (part->kind == OWN_LINE)
      add_part(to, part, 1);
}

struct difference difference_of_lines(struct comparison *c, u32 rank) {
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
    best->next = best->alone = NULL;
    find_late_slices(c, r);
  }
  return c->before;
}

static void compare_ranks(struct comparison *c) {
  u32 n = c->a->model->n_ranks;
  compare_parts(c);
  for (u32 r = 0; r < n; r++)
    slow_reasons_set(c, r);
  if (look_before(c))
    compare_parts(c);
  for (u32 r = 0; r < n; r++)
    if (c->best[r].before)
      slow_reasons_set(c, r);
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
  FOR_EACH(parts->at, parts->n, part) {
    c->all[c->n++] = (struct entry){part, rank};
    best->n[part->kind]++;
    for (u32 k = 0; part->kind == OWN_LINE && k < part->n_times; k++)
      ns += part->times[k].slice < TRAINING_SLICES ? (double)part->times[k].ns : 0;
  }
  for (u32 s = 0; s < TRAINING_SLICES; s++) {
    steps += parts->steps[s];
    c->steps[s] += parts->n && is_peer(c, rank) ? parts->steps[s] : 0;
  }
  best->own_ms = ns_to_ms(ns / steps);
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
