/* SPDX-License-Identifier: MIT
 *
 * What is asked of the replays of all samples: what cures save, and of what the samples consist. No
 * cure is replayed twice.
 */
#include "analyses/path/path_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path_run.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/intervals.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "base/statistics.h"

static bool is_compute(const struct sample_graph *g, const struct node *node) {
  u8 phase = node->phase;
  return node->kind == NODE_KERNEL ||
         (!g->slices[node->rank].on_gpu && node->kind == NODE_HOST && phase &&
          phase != TSCOPE_PHASE_USER && phase != TSCOPE_PHASE_DATA);
}

/* The union of a rank's work of one class, as it was replayed. */
static void unite(const struct run *run, u32 rank, bool compute, struct interval *scratch,
                  struct intervals *out) {
  const struct sample_graph *g = run->r->g;
  u32 n = LIST_WHERE(scratch, g->base[rank], g->base[rank + 1], i,
                     compute ? is_compute(g, &g->nodes[i]) : g->nodes[i].kind == NODE_COLLECTIVE,
                     ((struct interval){run_start(run, i), run_end(run, i)}));
  SORT(scratch, n, by_i64);
  out->n = 0;
  for (u32 i = 0; i < n; i++)
    intervals_append(out, scratch[i].start, scratch[i].end);
}

static i64 exposed_time(const struct run *run) {
  const struct sample_graph *g = run->r->g;
  u32 most = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++)
    most = g->base[rank + 1] - g->base[rank] > most ? g->base[rank + 1] - g->base[rank] : most;
  SCOPED struct interval *scratch = memory_array(size_sum(most, 1), sizeof(*scratch));
  SCOPED struct intervals compute = {memory_array(size_sum(most, 1), sizeof(*compute.at)), 0};
  SCOPED struct intervals comm = {memory_array(size_sum(most, 1), sizeof(*comm.at)), 0};
  i64 exposed = 0;
  for (u32 rank = 0; rank < g->n_ranks; rank++) {
    u32 cursor = 0;
    unite(run, rank, true, scratch, &compute);
    unite(run, rank, false, scratch, &comm);
    for (u32 i = 0; i < comm.n; i++)
      exposed += comm.at[i].end - comm.at[i].start -
                 intervals_covered(&compute, &cursor, comm.at[i].start, comm.at[i].end);
  }
  return exposed;
}

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
  bool exposed, first_only;
  i64 **saved;           /* [n_samples][cure * steps + step] in all, up to the end of that step */
  i64 **hidden;          /* [n_samples][cure] */
  u32 together, batches; /* so many cures side by side, so many times in each sample */
};

static bool is_asked(const struct question *q, u32 sample) {
  const struct graph *graph = q->a->graph;
  return graph->replays[sample] && graph->outcomes[sample].valid &&
         !(q->first_only && sample != first_sample(q->a));
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
  if (!q->exposed || r->exposed >= 0)
    return;
  struct runs *runs = &q->a->graph->runs[thread];
  runs_cure(runs, 1, r, &none);
  r->exposed = exposed_time(runs->at);
}

/* Some cures in one sample: with many ranks there are few samples, and many cures. */
static void ask_cures(void *user, u32 index, unsigned thread) {
  struct question *q = user;
  u32 sample = index / q->batches, first = index % q->batches * q->together;
  u32 n = first >= q->n ? 0 : q->n - first < q->together ? q->n - first : q->together;
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
    if (q->exposed)
      q->hidden[sample][first + i] = r->exposed - exposed_time(&runs->at[i]);
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

/* Whether all of a step is recorded of a rank: of a recording that was cut, not the last. */
static bool has_step(const struct analysis *a, u32 rank, u32 step) {
  struct window window;
  return analysis_window(a, rank, step, &window) &&
         (a->model->ranks[rank].closed || a->whole_run ||
          (step + 1 < a->model->steps.n && analysis_window(a, rank, step + 1, &window)));
}

static void find_lacking_steps(const struct analysis *a) {
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

/* Of steps in which the ranks were not recorded that a cure changes, it is not known what it saves.
 */
static bool step_tells(const struct analysis *a, const struct cure *cure, u32 step) {
  if (!a->graph->lacks_ranks[step - a->first_step])
    return true;
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

/* Those that tell; or all, which is what is left to ask of all ranks if one has no steps. */
static void list_steps(const struct question *q, u32 cure, u32 samples, bool all,
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
      if (!all && !step_tells(q->a, &q->cures[cure], in->first + k))
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

/* The mean over all steps, and quartiles of what each step saves. */
static struct saving summarise(const struct question *q, u32 cure, double *scratch, u32 room,
                               u32 samples) {
  struct asked_steps s = {scratch,
                          scratch + room,
                          scratch + 2 * room,
                          scratch + 3 * room,
                          scratch + 4 * room,
                          scratch + 5 * room,
                          0,
                          0};
  list_steps(q, cure, samples, false, &s);
  if (!s.n && !has_change(&q->cures[cure], CHANGE_RANKS))
    list_steps(q, cure, samples, true, &s);
  if (!s.n)
    return (struct saving){NAN, NAN, NAN, NAN, NAN};
  if (has_change(&q->cures[cure], CHANGE_LONG_STEPS))
    shorten_long_steps(s.saved_ms, s.length_ms, s.turn, q->a->results->n_turns, s.scratch, s.n);
  double kept = as_share(&s);
  for (u32 i = 0; i < s.n; i++)
    s.saved_ms[i] *= kept;
  double mean = weighted_mean(s.saved_ms, s.weight, s.n),
         spread = fabs(mean * variation_of(s.saved_ms, s.n));
  return (struct saving){.ms = fmax(0, mean),
                         .low_ms = fmax(0, quantile_of(s.saved_ms, s.n, 0.25)),
                         .high_ms = fmax(0, quantile_of(s.saved_ms, s.n, 0.75)),
                         .error_ms = isnan(spread) ? 0 : spread / sqrt(s.n),
                         .hidden_ms = fmax(0, kept * s.hidden_ms)};
}

static void ask_samples(struct question *q, struct saving *savings) {
  const struct graph *graph = q->a->graph;
  u32 samples = q->first_only ? first_sample(q->a) + 1 : graph->n_samples;
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

static bool same_ranks(const bool *x, const bool *y, u32 n_ranks) {
  return x == y || (x && y && memcmp(x, y, n_ranks * sizeof(bool)) == 0);
}

static bool same_change(const struct cure_change *x, const struct cure_change *y, u32 n_ranks) {
  return x->kind == y->kind && x->which == y->which && x->of == y->of && x->left == y->left &&
         x->left_of == y->left_of && x->both_ways == y->both_ways && x->since == y->since &&
         same_ranks(x->ranks, y->ranks, n_ranks) && same_ranks(x->from, y->from, n_ranks) &&
         same_ranks(x->to, y->to, n_ranks);
}

static bool same_cure(const struct cure *x, const struct cure *y, u32 n_ranks) {
  return x->n == y->n &&
         !ANY_NUMBER(0, x->n, i, !same_change(&x->changes[i], &y->changes[i], n_ranks));
}

struct cure cure_by(const struct analysis *a, struct cure_change change) {
  return (struct cure){arena_elements(a->arena, &change, 1, sizeof(change)), 1};
}

bool cure_has(const struct analysis *a, const struct cure *cure, const struct cure_change *change) {
  return ANY(cure->changes, cure->n, one, same_change(one, change, a->model->n_ranks));
}

static const struct asked *asked_before(const struct analysis *a, const struct cure *cure,
                                        bool exposed) {
  const struct graph *graph = a->graph;
  return FIND(graph->asked.at, graph->asked.n, one,
              same_cure(&one->cure, cure, a->model->n_ranks) &&
                  (!exposed || !isnan(one->saving.hidden_ms)));
}

static void remember(const struct analysis *a, const struct cure *cure, struct saving saving) {
  struct cure_change *changes = memory_array(cure->n, sizeof(*changes));
  for (u32 i = 0; i < cure->n; i++)
    changes[i] = cure->changes[i];
  VECTOR_PUSH(&a->graph->asked, ((struct asked){{changes, cure->n}, saving}));
}

/* How much of a rank's compute a change leaves, and of its copies. */
struct left {
  double compute, copies;
};

static struct left left_by(const struct cure_change *change, u32 rank, bool on_gpu) {
  const struct left all = {1, 1}, none = {0, 0};
  switch (change->kind) {
  case CHANGE_COMMUNICATION:
  case CHANGE_TRANSFERS:
  case CHANGE_INPUT:
  case CHANGE_LINE:
  case CHANGE_ASLEEP:
    return all;
  case CHANGE_GPU_AWAY:
  case CHANGE_LAUNCHES:
  case CHANGE_OUTSIDE:
    return on_gpu ? all : none;
  case CHANGE_COPIES:
  case CHANGE_FILLS:
    return (struct left){1, change->left};
  case CHANGE_COMPUTE:
    return on_gpu ? (struct left){change->left, 1} : none;
  case CHANGE_NAME:
    return change->of == NODE_COLLECTIVE || (on_gpu && !NODE_ON_DEVICE(change->of)) ? all : none;
  case CHANGE_RANKS:
    return change->ranks[rank] ? none : all;
  case CHANGE_EVERY_RANK: /* of which least_ms() knows more */
    return all;
  case CHANGE_PHASE:
  case CHANGE_LONG_STEPS:
    break;
  }
  return none;
}

/* The least time that a step takes: compute and copies that the cure leaves. Work of two streams
 * that only met in a replay would not run as fast, and the steps that are replayed may be shorter
 * than the others. Where every rank gets as fast as the median, none is faster than the fastest. */
static double least_ms(const struct analysis *a, const struct cure *cure) {
  bool every = ANY(cure->changes, cure->n, one, one->kind == CHANGE_EVERY_RANK);
  double most = 0, fastest = INFINITY;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    struct left left = {1, 1};
    if (!rank->steps || !rank->has_compute)
      continue;
    FOR_EACH(cure->changes, cure->n, change) {
      struct left one = left_by(change, i, rank->on_gpu);
      left = (struct left){left.compute * one.compute, left.copies * one.copies};
    }
    double ns = left.compute * (double)rank->compute + left.copies * (double)rank->exposed_memcpy;
    most = fmax(most, ns / 1e6 / rank->steps);
    if (left.compute > 0)
      fastest = fmin(fastest, left.compute * ns_to_ms(rank->compute) / rank->steps);
  }
  return !every ? most : isinf(fastest) ? 0 : fastest;
}

static bool is_among(const struct analysis *a, const struct cure *cures, u32 n,
                     const struct cure *cure) {
  return ANY(cures, n, one, same_cure(one, cure, a->model->n_ranks));
}

void replay_savings(const struct analysis *a, const struct cure *cures, u32 n, bool exposed,
                    struct saving *savings) {
  bool replays = a->graph && a->graph->replays && !a->results->what_if_reason;
  double now_ms = analysis_length_ms(a);
  struct question q = {.a = a, .exposed = exposed};
  SCOPED struct cure *unknown = memory_array(n, sizeof(*unknown));
  SCOPED struct saving *found = memory_array(n, sizeof(*found));
  for (u32 i = 0; i < n && replays; i++)
    if (cures[i].n && !asked_before(a, &cures[i], exposed) && !is_among(a, unknown, q.n, &cures[i]))
      unknown[q.n++] = cures[i];
  q.cures = unknown;
  if (q.n)
    ask_samples(&q, found);
  for (u32 i = 0; i < q.n; i++) {
    double most_ms = isnan(found[i].ms) ? NAN : fmax(0, now_ms - least_ms(a, &unknown[i]));
    found[i].error_ms *= found[i].ms > most_ms ? most_ms / found[i].ms : 1;
    found[i].ms = fmin(found[i].ms, most_ms);
    found[i].low_ms = fmin(found[i].low_ms, most_ms);
    found[i].high_ms = fmin(found[i].high_ms, most_ms);
    found[i].hidden_ms = exposed ? found[i].hidden_ms : NAN;
    remember(a, &unknown[i], found[i]);
  }
  for (u32 i = 0; i < n; i++) {
    const struct asked *asked = replays && cures[i].n ? asked_before(a, &cures[i], exposed) : NULL;
    double nothing = replays && !cures[i].n ? 0 : NAN;
    savings[i] = asked ? asked->saving
                       : (struct saving){nothing, nothing, nothing, 0, exposed ? nothing : NAN};
  }
}

bool saving_pays(const struct saving *saving, double step_ms) {
  return saving->ms >= fmax(REPLAY_TOLERANCE * step_ms, saving->error_ms);
}

u32 replay_first_nodes(const struct analysis *a) {
  u32 first = a->graph && a->graph->replays ? first_sample(a) : 0;
  return a->graph && a->graph->replays && first < a->graph->n_samples
             ? a->graph->replays[first]->g->n
             : 0;
}

void replay_many_savings(const struct analysis *a, const struct cure *cures, u32 n, double visits,
                         struct saving *savings) {
  struct question q = {.a = a, .cures = cures, .n = n, .first_only = true};
  double nodes =
      TOTAL(double, a->graph->replays, a->graph->n_samples, one, *one ? (*one)->g->n : 0);
  if (nodes * n <= visits)
    replay_savings(a, cures, n, false, savings);
  else if (n)
    ask_samples(&q, savings);
}

ORDER_BY(by_name_and_kind, struct work_of_name, UP(label) UP(kind))

void replay_names(const struct analysis *a, struct work_of_name **works, u32 *n) {
  VECTOR(struct work_of_name) all = {0};
  for (u32 s = 0; s < a->graph->n_samples; s++) {
    const struct replay *r = a->graph->replays[s];
    for (u32 key = HOST_KEYS; r && key < r->g->n_keys; key++) {
      if (r->g->node_of_key[key] == INDEX_NONE)
        continue;
      const struct node *node = &r->g->nodes[r->g->node_of_key[key]];
      struct work_of_name work = {.label = node->label, .kind = node->kind};
      for (u32 rank = 0; rank < r->g->n_ranks; rank++)
        work.ns += r->peers.work[(size_t)key * r->g->n_ranks + rank];
      if (node->kind != NODE_BLOCKED)
        VECTOR_PUSH(&all, work);
    }
  }
  *n = SORT_AND_JOIN(all.at, all.n, by_name_and_kind, sum, more, sum->ns += more->ns);
  *works = all.at;
}

void replay_excess(const struct analysis *a, double *excess_ms) {
  const struct graph *graph = a->graph;
  u32 steps = 0;
  memset(excess_ms, 0, a->model->n_ranks * sizeof(double));
  for (u32 s = 0; graph && graph->replays && s < graph->n_samples; s++) {
    const struct replay *r = graph->replays[s];
    if (!r || !graph->outcomes[s].valid)
      continue;
    steps += graph->samples[s].n;
    for (u32 key = 0; key < r->g->n_keys; key++)
      for (u32 rank = 0; rank < r->g->n_ranks; rank++) {
        size_t at = (size_t)key * r->g->n_ranks + rank;
        excess_ms[rank] += (1 - r->peers.as_peers[at]) * r->peers.work[at] / 1e6;
      }
  }
  for (u32 rank = 0; steps && rank < a->model->n_ranks; rank++)
    excess_ms[rank] /= steps;
}
