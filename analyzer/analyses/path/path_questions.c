/* SPDX-License-Identifier: MIT
 *
 * What is asked of the replays of all samples: what cures save.
 */
#include "analyses/path/path_replay.h"

#include <math.h>
#include <stdlib.h>

#include "analyses/path/path_run.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/parallel.h"
#include "base/persistence.h"
#include "base/sorting.h"
#include "base/statistics.h"

#define MOST_LATE 6 /* ranks that are late in some steps, of which this is looked at */

static u32 first_sample(const struct analysis *a) {
  u32 first = 0;
  while (first < a->graph->n_samples &&
         !(a->graph->replays[first] && a->graph->outcomes[first].valid))
    first++;
  return first;
}

struct question {
  const struct analysis *a;
  const struct cure *cures;
  u32 n;
  enum asked_of what;
  i64 **saved;           /* [n_samples][cure * steps + step] in all, up to the end of that step */
  i64 **hidden;          /* [n_samples][cure] */
  u32 together, batches; /* so many cures side by side, so many times in each sample */
};

static bool is_asked(const struct question *q, u32 sample) {
  const struct graph *graph = q->a->graph;
  return graph->replays[sample] && graph->outcomes[sample].valid &&
         !(q->what == ASKED_OF_FIRST && sample != first_sample(q->a));
}

/* What the sample is like without a cure. */
static void begin_sample(void *user, u32 sample, unsigned thread) {
  struct question *q = user;
  struct replay *r = q->a->graph->replays[sample];
  const struct cure none = {0};
  if (!is_asked(q, sample))
    return;
  q->saved[sample] = memory_zeroed(size_product(q->n, r->n_steps), sizeof(i64));
  q->hidden[sample] = memory_zeroed(q->n, sizeof(i64));
  if (q->what != ASKED_WITH_EXPOSED || r->exposed >= 0)
    return;
  struct runs *runs = &q->a->graph->runs[thread];
  runs_cure(runs, 1, r, &none);
  r->exposed = run_exposed_time(runs->at);
}

/* Some cures in one sample: with many ranks there are few samples, and many cures. */
static void ask_cures(void *user, u32 index, unsigned thread) {
  struct question *q = user;
  u32 sample = index / q->batches, first = index % q->batches * q->together;
  u32 n = first >= q->n ? 0 : MIN(q->n - first, q->together);
  struct replay *r = q->a->graph->replays[sample];
  if (!n || !is_asked(q, sample))
    return;
  struct runs *runs = &q->a->graph->runs[thread];
  runs_cure(runs, n, r, &q->cures[first]);
  for (u32 i = 0; i < n; i++) {
    i64 *saved = &q->saved[sample][(size_t)(first + i) * r->n_steps];
    run_step_ends(&runs->at[i], saved);
    for (u32 k = 0; k < r->n_steps; k++)
      saved[k] = saved[k] == INT64_MIN ? 0 : r->step_ends[k] - saved[k];
    if (q->what == ASKED_WITH_EXPOSED)
      q->hidden[sample][first + i] = r->exposed - run_exposed_time(&runs->at[i]);
  }
}

/* Which of the ranks that are late in some steps are so in this one; one bit each. */
static u32 who_is_late(const struct analysis *a, u32 step) {
  u32 late = 0, n = 0;
  FOR_EACH(a->results->ranks, a->results->n_ranks, rank)
    if (rank->n_late && n < MOST_LATE)
      late |= (u32)straggler_is_late_in(rank, a->model->steps.first + step) << n++;
  return late;
}

/* Of the steps in which the same ranks are late there are not as many among those that are replayed
 * as chance would have it, but as in the run: each replayed one stands for so many of these. */
static void weigh_steps(const struct analysis *a) {
  struct graph *graph = a->graph;
  u32 all[1u << MOST_LATE] = {0}, sampled[1u << MOST_LATE] = {0};
  u32 *late = arena_array(a->arena, a->n_steps, sizeof(*late));
  graph->weights = arena_array(a->arena, a->n_steps, sizeof(*graph->weights));
  for (u32 i = 0; i < a->n_steps; i++) {
    late[i] = who_is_late(a, a->first_step + i);
    all[late[i]] += analysis_is_training(a, a->first_step + i);
  }
  for (u32 s = 0; s < graph->n_samples; s++)
    for (u32 k = 0; k < graph->samples[s].n && graph->outcomes[s].valid; k++)
      sampled[late[graph->samples[s].first - a->first_step + k]]++;
  for (u32 i = 0; i < a->n_steps; i++)
    graph->weights[i] = sampled[late[i]] ? (double)all[late[i]] / sampled[late[i]] : 1;
}

/* Since which step ranks made no more, but were there to the end: their batches had run out. */
static void find_ranks_without_more(const struct analysis *a) {
  const struct steps *steps = &a->model->steps;
  u32 n = a->model->n_ranks;
  a->graph->no_more_from = arena_array(a->arena, n, sizeof(u32));
  FILL(a->graph->no_more_from, n, INDEX_NONE);
  if (a->whole_run)
    return;
  size_t last = cell_of_step(a->model, steps->n - 1, 0);
  i64 end = steps->end[last];
  for (u32 rank = 1; rank < n; rank++)
    end = MAX(end, steps->end[last + rank]);
  for (u32 rank = 0; rank < n; rank++) {
    if (!a->ranks[rank].steps || !a->model->ranks[rank].closed || a->model->ranks[rank].end < end)
      continue;
    u32 from = steps->n;
    while (from > 0 && steps->begin[cell_of_step(a->model, from - 1, rank)] == NS_UNKNOWN)
      from--;
    a->graph->no_more_from[rank] = from;
  }
}

/* Whether all of a step is recorded of a rank: of a recording that was cut, not the last. */
static bool has_step(const struct analysis *a, u32 rank, u32 step) {
  struct window window;
  if (!analysis_window(a, rank, step, &window))
    return step >= a->graph->no_more_from[rank];
  return a->model->ranks[rank].closed || a->whole_run ||
         (step + 1 < a->model->steps.n && analysis_window(a, rank, step + 1, &window));
}

static void find_lacking_steps(const struct analysis *a) {
  find_ranks_without_more(a);
  a->graph->lacks_ranks = arena_array(a->arena, a->n_steps, sizeof(bool));
  for (u32 i = 0; i < a->n_steps; i++)
    a->graph->lacks_ranks[i] =
        ANY_NUMBER(0, a->model->n_ranks, rank, !has_step(a, rank, a->first_step + i));
}

static double weighted_mean(const double *values, const double *weights, u32 n) {
  double sum = 0, of = 0;
  for (u32 i = 0; i < n; i++) {
    sum += weights[i] * values[i];
    of += weights[i];
  }
  return sum / of;
}

static bool has_change(const struct cure *cure, enum change_kind kind) {
  return ANY(cure->changes, cure->n, one, one->kind == kind);
}

/* If steps that are longer than the median of those with the same part in turn take as long as it:
 * `saved` grows by what is left of them above that. */
static void shorten_long_steps(double *saved, const double *length, const double *turn, u32 turns,
                               double *scratch, u32 n) {
  for (u32 t = 0; t <= turns; t++) {
    u32 of_turn = LIST_WHERE(scratch, 0, n, i, turn[i] == t, length[i] - saved[i]);
    double usual = median_of(scratch, of_turn);
    for (u32 i = 0; i < n; i++)
      if (turn[i] == t)
        saved[i] += fmax(0, length[i] - saved[i] - usual);
  }
}

/* Where the rank that ends last begins. */
static i64 begin_of_last(const struct sample_graph *g) {
  return g->slices[g->last_rank].begin;
}

/* What is known of the steps that are asked about, of each sample one after the other. */
struct asked_steps {
  double *saved_ms, *length_ms, *turn, *weight, *own_ms; /* [n] own: as the report has it */
  double *scratch;
  double hidden_ms; /* in each, of one rank; of steps that tell nothing too */
  u32 n;
};

#define FIGURES_OF_STEP 6 /* arrays above */

/* Which steps tell what a cure saves: those in which all ranks were recorded, if there are enough;
 * else those in which the ranks were that it changes; all are what is left to ask of all ranks if
 * one has no steps. */
enum telling { STEPS_OF_ALL, STEPS_OF_CHANGED, ALL_STEPS };

#define ENOUGH_STEPS 2u

/* Of steps in which ranks were not recorded the replay keeps what others wait for them. */
static bool step_tells(const struct analysis *a, const struct cure *cure, u32 step,
                       enum telling telling) {
  if (telling == ALL_STEPS || !a->graph->lacks_ranks[step - a->first_step])
    return true;
  if (telling == STEPS_OF_ALL)
    return false;
  FOR_EACH(cure->changes, cure->n, change)
    for (u32 rank = 0; rank < a->model->n_ranks; rank++)
      if ((change->kind == CHANGE_EVERY_RANK ||
           (change->kind == CHANGE_RANKS && change->ranks[rank])) &&
          !has_step(a, rank, step))
        return false;
  return true;
}

static double own_length_ms(const struct analysis *a, u32 step) {
  return a->whole_run ? analysis_length_ms(a) : a->results->step_ms[step];
}

static void list_steps(const struct question *q, u32 cure, u32 samples, enum telling telling,
                       struct asked_steps *s) {
  const struct graph *graph = q->a->graph;
  i64 hidden = 0;
  u32 steps = 0;
  s->n = 0;
  for (u32 i = 0; i < samples; i++) {
    const struct sample *in = &graph->samples[i];
    const struct replay *r = graph->replays[i];
    const i64 *saved = q->saved[i] ? &q->saved[i][(size_t)cure * in->n] : NULL;
    for (u32 k = 0; saved && k < in->n; k++) {
      i64 from = k ? r->step_ends[k - 1] : begin_of_last(r->g), to = r->step_ends[k];
      if (!step_tells(q->a, &q->cures[cure], in->first + k, telling))
        continue;
      s->saved_ms[s->n] = ns_to_ms(saved[k] - (k ? saved[k - 1] : 0));
      s->length_ms[s->n] = from == NS_UNKNOWN || to == NS_UNKNOWN ? 0 : ns_to_ms(to - from);
      s->turn[s->n] = analysis_turn_of(q->a, in->first + k);
      s->weight[s->n] = graph->weights[in->first - q->a->first_step + k];
      s->own_ms[s->n++] = own_length_ms(q->a, in->first + k);
    }
    hidden += saved ? q->hidden[i][cure] : 0;
    steps += saved ? in->n : 0;
  }
  s->hidden_ms = steps ? ns_to_ms(hidden) / steps / q->a->model->n_ranks : 0;
}

/* Ranks that do not wait for each other drift apart. A replayed step is then one of the rank that
 * ends last, and the step that the report speaks of the mean over ranks: what is saved of the one
 * is the same share of the other. */
static double as_share(const struct asked_steps *s) {
  double replayed = 0, own = 0;
  for (u32 i = 0; i < s->n; i++) {
    if (isnan(s->own_ms[i]) || !(s->length_ms[i] > 0))
      continue;
    replayed += s->weight[i] * s->length_ms[i];
    own += s->weight[i] * s->own_ms[i];
  }
  return replayed > own ? own / replayed : 1;
}

#define ENOUGH_FOR_A_SLOPE 8u

/* Of a long run some steps are replayed, and where steps are uneven these can be shorter or longer
 * than all are on average. What a cure saves of longer steps shows what it would save of the
 * others: the regression estimate of a mean over all from a sample [Cochran 1977, chapter 7]. A
 * step that is longer by a time saves at most that much more. */
static double mean_saved(const struct asked_steps *s, double all_ms) {
  double saved = weighted_mean(s->saved_ms, s->weight, s->n),
         own = weighted_mean(s->own_ms, s->weight, s->n);
  double slope = 0, square = 0;
  for (u32 i = 0; i < s->n; i++) {
    slope += s->weight[i] * (s->own_ms[i] - own) * (s->saved_ms[i] - saved);
    square += s->weight[i] * (s->own_ms[i] - own) * (s->own_ms[i] - own);
  }
  if (s->n < ENOUGH_FOR_A_SLOPE || !(square > 0)) /* or one is not known */
    return saved;
  return saved + CLAMP(slope / square, 0, 1) * (all_ms - own);
}

/* The mean over all steps, and quartiles of what each step saves. */
static struct saving summarise(const struct question *q, u32 cure, double *scratch, u32 room,
                               u32 samples) {
  struct asked_steps s = {.saved_ms = scratch,
                          .length_ms = scratch + room,
                          .turn = scratch + 2 * room,
                          .weight = scratch + 3 * room,
                          .own_ms = scratch + 4 * room,
                          .scratch = scratch + 5 * room};
  list_steps(q, cure, samples, STEPS_OF_ALL, &s);
  if (s.n < ENOUGH_STEPS)
    list_steps(q, cure, samples, STEPS_OF_CHANGED, &s);
  if (!s.n && !has_change(&q->cures[cure], CHANGE_RANKS))
    list_steps(q, cure, samples, ALL_STEPS, &s);
  if (!s.n)
    return (struct saving){NAN, NAN, NAN, NAN, NAN};
  if (has_change(&q->cures[cure], CHANGE_LONG_STEPS))
    shorten_long_steps(s.saved_ms, s.length_ms, s.turn, q->a->results->n_turns, s.scratch, s.n);
  double kept = as_share(&s);
  FOR_EACH_CHANGED(s.saved_ms, s.n, saved_m)
    *saved_m *= kept;
  double mean = mean_saved(&s, analysis_length_ms(q->a)), spread = deviation_of(s.saved_ms, s.n);
  struct persistence persistence = {
      0}; /* of whether a step saves half of the mean, or how much less */
  for (u32 i = 0; i < s.n; i++)
    s.scratch[i] = fmin(2 * s.saved_ms[i], mean);
  persistence_add(&persistence, s.scratch, s.n);
  return (struct saving){.ms = fmax(0, mean),
                         .low_ms = fmax(0, quantile_of(s.saved_ms, s.n, 0.25)),
                         .high_ms = fmax(0, quantile_of(s.saved_ms, s.n, 0.75)),
                         .error_ms = isnan(spread) ? 0 : spread / sqrt(s.n),
                         .hidden_ms = fmax(0, kept * s.hidden_ms),
                         .correlation = persistence_of(&persistence),
                         .steps = s.n,
                         .half_saved = NUMBER_OF(s.saved_ms, s.n, one, 2 * *one >= mean)};
}

void replay_ask(const struct analysis *a, const struct cure *cures, u32 n, enum asked_of what,
                struct saving *savings) {
  struct question asked = {.a = a, .cures = cures, .n = n, .what = what}, *q = &asked;
  const struct graph *graph = a->graph;
  u32 samples = what == ASKED_OF_FIRST ? first_sample(a) + 1 : graph->n_samples;
  u32 steps = TOTAL(u32, graph->samples, samples, one, one->n);
  if (!graph->weights) {
    weigh_steps(q->a);
    find_lacking_steps(q->a);
  }
  unsigned threads = parallel_threads(samples * q->n, q->a->options->threads);
  u32 most = MOST_SIDE_BY_SIDE;
  for (u32 i = 0; i < samples; i++)
    if (is_asked(q, i) && side_by_side(graph->replays[i]->g) < most)
      most = side_by_side(graph->replays[i]->g);
  q->batches = (q->n + most - 1) / most;
  while (samples * q->batches % threads && q->batches < q->n)
    q->batches++; /* else some threads would have nothing to do in the end */
  q->together = (q->n + q->batches - 1) / q->batches;
  q->saved = memory_zeroed(samples, sizeof(i64 *));
  q->hidden = memory_zeroed(samples, sizeof(i64 *));
  SCOPED double *scratch = memory_array(size_product(FIGURES_OF_STEP, steps), sizeof(double));
  parallel_for(samples, threads, begin_sample, q);
  parallel_for(samples * q->batches, threads, ask_cures, q);
  for (u32 i = 0; i < q->n; i++)
    savings[i] = summarise(q, i, scratch, steps, samples);
  for (u32 i = 0; i < samples; i++)
    FREE_EACH(q, saved[i], hidden[i]);
  FREE_EACH(q, saved, hidden);
}

u32 replay_first_nodes(const struct analysis *a) {
  u32 first = a->graph && a->graph->replays ? first_sample(a) : 0;
  return a->graph && a->graph->replays && first < a->graph->n_samples
             ? a->graph->replays[first]->g->n
             : 0;
}
