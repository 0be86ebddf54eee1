/* SPDX-License-Identifier: MIT
 *
 * Steps from the period of the collective sequence, for jobs that say nothing about their steps.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/period.h"
#include "join/find_steps.h"

#define GAP_RANKS 8u /* ranks whose pauses are averaged */
#define RESYNC_WINDOW 8u
#define BOUNDS_COMPARED 32u
#define MOST_SHIFT 2
#define MOST_CUTS_TRIED 128u

struct sequence {
  u32 *tokens;
  u32 n;
  struct period period; /* length 0: none found */
  u32 steps_length;     /* calls per step */
  u32 cut;              /* where a step begins, relative to period.first */
  u64 kind;             /* ranks with the same communication have the same value */
};

struct sequences {
  const struct model *model;
  struct sequence *at; /* [n_ranks] */
  bool with_counts;    /* whether the element count distinguishes collectives */
};

static void read_sequence(void *user, u32 r, unsigned worker) {
  struct sequences *sequences = user;
  const struct rank_events *events = model_events(sequences->model, r);
  struct sequence *sequence = &sequences->at[r];
  (void)worker;
  sequence->n = events->calls.n;
  if (!sequence->tokens)
    sequence->tokens = memory_array(size_sum(events->calls.n, 1), sizeof(*sequence->tokens));
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    u32 comm = model_comm_of(sequences->model, r, call->comm);
    u32 token = hash_number(hash_number(hash_number(hash_number(1, comm), call->op), call->dtype),
                            (u32)call->peer);
    sequence->tokens[i] = sequences->with_counts ? hash_number(token, call->count) : token;
  }
  sequence->kind = 0;
  if (!find_period(sequence->tokens, sequence->n, &sequence->period))
    return;
  sequence->steps_length = sequence->period.length;
  sequence->kind = sequence->period.length;
  for (u32 i = 0; i < sequence->period.length; i++)
    sequence->kind =
        sequence->kind * 0x100000001b3ull ^ sequence->tokens[sequence->period.first + i];
}

static bool has_period(const struct sequence *sequence) {
  return sequence->period.length > 0;
}

static u32 count_periodic(const struct sequences *sequences) {
  return NUMBER_OF(sequences->at, sequences->model->n_ranks, one, has_period(one));
}

/* The first rank with the kind of sequence that most ranks have, of those that have a period. */
static u32 choose_reference(const struct sequences *sequences) {
  const struct sequence *at = sequences->at;
  u32 ranks = sequences->model->n_ranks, times;
  SCOPED u64 *kinds = memory_array(size_sum(ranks, 1), sizeof(*kinds));
  u32 n = LIST_WHERE(kinds, 0, ranks, r, has_period(&at[r]), at[r].kind);
  u64 kind = kinds[commonest(kinds, n, &times)];
  return INDEX_OF(at, ranks, one, has_period(one) && one->kind == kind);
}

/* The host's pause before a call; a microsecond means no pause. */
static double pause_before(const struct rank_events *events, u32 call) {
  if (call == 0 || call >= events->calls.n)
    return 1e3;
  const struct rank_call *before = &events->calls.at[call - 1];
  i64 end = before->end == NS_UNKNOWN ? before->start : before->end;
  return fmax((double)(events->calls.at[call].start - end), 1e3);
}

/* Mean log pause at each position of the period, over ranks like the reference. */
static void add_pauses(const struct rank_events *events, const struct sequence *sequence,
                       double *logs, u32 *counts) {
  for (u32 i = MAX(sequence->period.first, 1); i < sequence->period.last; i++) {
    u32 place = (i - sequence->period.first) % sequence->period.length;
    logs[place] += log(pause_before(events, i));
    counts[place]++;
  }
}

/* Where in the period a step begins: after the longest pause, since the optimizer, the next batch
 * and the forward pass are there. */
static u32 choose_step_start(const struct sequences *sequences, u32 reference) {
  u32 length = sequences->at[reference].period.length, used = 0;
  SCOPED double *logs = memory_zeroed(length, sizeof(*logs));
  SCOPED u32 *counts = memory_zeroed(length, sizeof(*counts));
  for (u32 r = reference; r < sequences->model->n_ranks && used < GAP_RANKS; r++)
    if (sequences->at[r].kind == sequences->at[reference].kind) {
      add_pauses(model_events(sequences->model, r), &sequences->at[r], logs, counts);
      used++;
    }
  return find_longest_gap(logs, counts, length);
}

/* Steps that consist of several equal periods, recognised by the pauses between them. */
static void merge_periods_by_pauses(const struct sequences *sequences, u32 reference, u32 *cut,
                                    u32 *periods) {
  const struct sequence *first = &sequences->at[reference];
  u32 from = first->period.first + *cut, n = (first->period.last - from) / first->period.length;
  u32 used = 0, place = 0;
  SCOPED double *pauses = memory_zeroed(size_sum(n, 1), sizeof(*pauses));
  for (u32 r = reference; r < sequences->model->n_ranks && used < GAP_RANKS; r++) {
    const struct sequence *sequence = &sequences->at[r];
    if (sequence->kind != first->kind || sequence->period.first != first->period.first)
      continue;
    for (u32 k = 0; k < n; k++)
      pauses[k] +=
          log(pause_before(model_events(sequences->model, r), from + k * first->period.length));
    used++;
  }
  for (u32 k = 0; k < n && used; k++)
    pauses[k] = exp(pauses[k] / used);
  if (n > 1 && from == 0) /* nothing comes before the first call */
    *periods = find_gap_period(pauses + 1, n - 1, &place);
  else if (n > 1)
    *periods = find_gap_period(pauses, n, &place);
  if (*periods > 1)
    *cut += ((from == 0 ? place + 1 : place) % *periods) * first->period.length;
}

static bool matches_at(const struct sequence *sequence, u32 template, u32 at) {
  u32 window = MIN(sequence->steps_length, RESYNC_WINDOW);
  for (u32 i = 0; i < window; i++)
    if (at + i >= sequence->n || sequence->tokens[template + i] != sequence->tokens[at + i])
      return false;
  return true;
}

/* The next cut after one step; moved to the step's first tokens if there were extra ones. */
static u32 next_cut(const struct sequence *sequence, u32 template, u32 cut) {
  u32 next = cut + sequence->steps_length;
  if (next >= sequence->period.last || matches_at(sequence, template, next))
    return next;
  for (u32 shift = 1; shift <= sequence->steps_length / 2; shift++) {
    if (matches_at(sequence, template, next + shift))
      return next + shift;
    if (matches_at(sequence, template, next - shift))
      return next - shift;
  }
  return next;
}

/* The instant between two steps: the last collective before the cut, when the host called it and
 * where it ran. Gloo runs it on a thread of the host. */
struct bound {
  i64 host, gpu; /* gpu: NS_UNKNOWN if it did not run there, or that is not known */
};

static struct bound bound_at(const struct rank_events *events, u32 cut) {
  const struct rank_call *before = &events->calls.at[cut - 1];
  i64 end = before->run == INDEX_NONE ? NS_UNKNOWN : events->runs.at[before->run].end;
  i64 called = before->end == NS_UNKNOWN ? before->start : before->end;
  if (before->run == INDEX_NONE || events->runs.at[before->run].stream != TSCOPE_NO_STREAM)
    return (struct bound){called, end};
  return (struct bound){end == NS_UNKNOWN ? called : end, NS_UNKNOWN};
}

/* The first step begins as long before its first collective as other steps do, but not before the
 * end of earlier work. */
static struct bound first_bound(const struct rank_events *events, const struct sequence *sequence,
                                u32 cut) {
  double pause = 0;
  u32 next = cut + sequence->steps_length;
  if (next < events->calls.n)
    pause = pause_before(events, next);
  i64 call = events->calls.at[cut].start, bound = call - (i64)pause;
  struct bound least = cut > 0 ? bound_at(events, cut) : (struct bound){events->begin, NS_UNKNOWN};
  i64 host = CLAMP(least.host, bound, call);
  return (struct bound){host, MAX(least.gpu, host)};
}

static void push_bound(struct rank_bounds *bounds, struct bound bound) {
  u32 n = bounds->at.n;
  if (n && bound.host < bounds->at.at[n - 1])
    bound.host = bounds->at.at[n - 1];
  if (n && bound.gpu != NS_UNKNOWN && bound.gpu < bounds->gpu.at[n - 1])
    bound.gpu = bounds->gpu.at[n - 1];
  VECTOR_PUSH(&bounds->at, bound.host);
  VECTOR_PUSH(&bounds->gpu, bound.gpu);
}

/* Cuts one rank's sequence into steps; arrival.step becomes the number of the step from 0. */
static void cut_steps(const struct model *model, u32 r, const struct sequence *sequence,
                      struct rank_bounds *bounds) {
  const struct rank_events *events = model_events(model, r);
  u32 cut = sequence->period.first + sequence->cut, template = cut;
  bounds->at.n = bounds->gpu.n = 0;
  FOR_EACH(events->calls.at, events->calls.n, call)
    model->arrivals[call->arrival].step = -1;
  if (cut + sequence->steps_length > sequence->period.last)
    return;
  push_bound(bounds, first_bound(events, sequence, cut));
  for (u32 step = 0; cut + sequence->steps_length <= sequence->period.last; step++) {
    u32 next = next_cut(sequence, template, cut);
    if (next > sequence->period.last || next <= cut)
      break;
    push_bound(bounds, bound_at(events, next));
    for (u32 i = cut; i < next; i++)
      model->arrivals[events->calls.at[i].arrival].step = (i32)step;
    cut = next;
  }
}

/* When the ranks were at a bound, which they pass together on their GPUs. */
static i64 time_of_bound(const struct rank_bounds *bounds, i64 i) {
  return bounds->gpu.at[i] == NS_UNKNOWN ? bounds->at.at[i] : bounds->gpu.at[i];
}

/* Mean distance between two ranks' bounds when b's step s is a's step s + shift. */
static double distance(const struct rank_bounds *a, const struct rank_bounds *b, i32 shift) {
  double sum = 0;
  u32 count = 0;
  for (u32 i = 1; i < b->at.n && count < BOUNDS_COMPARED; i++) {
    i64 other = (i64)i + shift;
    if (other < 1 || other >= a->at.n)
      continue;
    sum += fabs((double)(time_of_bound(b, i) - time_of_bound(a, other)));
    count++;
  }
  return count ? sum / count : INFINITY;
}

static i32 best_shift(const struct rank_bounds *reference, const struct rank_bounds *bounds,
                      double *least) {
  i32 best = 0;
  *least = distance(reference, bounds, 0);
  for (i32 shift = -MOST_SHIFT; shift <= MOST_SHIFT; shift++) {
    double apart = distance(reference, bounds, shift);
    if (apart < *least) {
      *least = apart;
      best = shift;
    }
  }
  return best;
}

/* A rank whose communication differs from the reference gets the same number of steps, cut where
 * they fit best. */
static void follow_reference(const struct model *model, u32 r, struct sequence *sequence,
                             const struct rank_bounds *reference, struct rank_bounds *bounds) {
  u32 periods = (sequence->period.last - sequence->period.first) / sequence->period.length;
  u32 steps = reference->at.n > 1 ? reference->at.n - 1 : 1;
  u32 each = (periods + steps / 2) / steps;
  sequence->steps_length = sequence->period.length * MAX(each, 1);
  double least = INFINITY;
  u32 best = 0;
  u32 stride = sequence->steps_length / MOST_CUTS_TRIED + 1;
  for (u32 cut = 0; cut < sequence->steps_length; cut += stride) {
    double apart;
    sequence->cut = cut;
    cut_steps(model, r, sequence, bounds);
    best_shift(reference, bounds, &apart);
    if (apart < least) {
      least = apart;
      best = cut;
    }
  }
  sequence->cut = best;
  cut_steps(model, r, sequence, bounds);
}

static void clear_steps(const struct model *model) {
  FOR_EACH_CHANGED(model->arrivals, model->n_arrivals, arrival)
    arrival->step = -1;
}

/* Cuts all ranks into steps like the reference, which is cut already. */
struct cutting {
  const struct sequences *sequences;
  u32 reference;
  struct rank_bounds *bounds;
  i32 *shifts; /* [n_ranks] */
};

static void cut_rank(void *user, u32 r, unsigned worker) {
  (void)worker;
  const struct cutting *cutting = user;
  const struct model *model = cutting->sequences->model;
  const struct sequence *like = &cutting->sequences->at[cutting->reference];
  const struct rank_bounds *reference = &cutting->bounds[cutting->reference];
  struct sequence *sequence = &cutting->sequences->at[r];
  double apart;
  if (!has_period(sequence) || sequence == like)
    return;
  if (sequence->kind == like->kind) {
    sequence->cut = like->cut;
    sequence->steps_length = like->steps_length;
    cut_steps(model, r, sequence, &cutting->bounds[r]);
  } else {
    follow_reference(model, r, sequence, reference, &cutting->bounds[r]);
  }
  cutting->shifts[r] = model->clock_aligned && model->ranks[r].clock.aligned
                           ? best_shift(reference, &cutting->bounds[r], &apart)
                           : 0;
}

/* Cuts all ranks into steps and numbers the steps in the same way. */
static bool cut_all(const struct sequences *sequences, u32 reference, struct rank_bounds *bounds,
                    double *confidence, unsigned threads) {
  const struct model *model = sequences->model;
  double match = 0;
  u32 agreeing = 0;
  i32 lowest = 0;
  SCOPED i32 *shifts = memory_zeroed(model->n_ranks, sizeof(*shifts));
  cut_steps(model, reference, &sequences->at[reference], &bounds[reference]);
  parallel_for(model->n_ranks, threads, cut_rank,
               &(struct cutting){sequences, reference, bounds, shifts});
  for (u32 r = 0; r < model->n_ranks; r++) {
    if (!has_period(&sequences->at[r]))
      continue;
    lowest = MIN(shifts[r], lowest);
    match += sequences->at[r].period.match;
    agreeing += bounds[r].at.n + 1 >= bounds[reference].at.n &&
                bounds[r].at.n <= bounds[reference].at.n + 1;
  }
  for (u32 r = 0; r < model->n_ranks; r++)
    bounds[r].first = (u32)(shifts[r] - lowest);
  *confidence = match / model->n_ranks * agreeing / model->n_ranks;
  return bounds[reference].at.n > 1;
}

bool bounds_by_period(const struct model *model, struct rank_bounds *bounds, double *confidence,
                      unsigned threads) {
  struct sequences sequences = {.model = model, .with_counts = true};
  sequences.at = memory_zeroed(model->n_ranks, sizeof(*sequences.at));
  bool found = false;
  parallel_for(model->n_ranks, threads, read_sequence, &sequences);
  if (2 * count_periodic(&sequences) < model->n_ranks) {
    sequences.with_counts = false; /* sizes that vary from step to step hide the period */
    parallel_for(model->n_ranks, threads, read_sequence, &sequences);
  }
  if (2 * count_periodic(&sequences) >= model->n_ranks && count_periodic(&sequences) > 0) {
    u32 reference = choose_reference(&sequences), periods = 1;
    struct sequence *like = &sequences.at[reference];
    u32 cut = choose_step_start(&sequences, reference);
    merge_periods_by_pauses(&sequences, reference, &cut, &periods);
    like->cut = cut;
    like->steps_length = like->period.length * periods;
    /* Without sizes, any sequence of the same operation repeats. That each one is a step would only
     * be a guess. */
    found = (sequences.with_counts || like->steps_length > 1) &&
            cut_all(&sequences, reference, bounds, confidence, threads);
  }
  if (!found)
    clear_steps(model);
  FOR_EACH(sequences.at, model->n_ranks, item)
    free(item->tokens);
  free(sequences.at);
  return found;
}
