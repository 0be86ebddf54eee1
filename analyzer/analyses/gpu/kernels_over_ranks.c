/* SPDX-License-Identifier: MIT
 *
 * The same kernel on every rank: a GPU that is slower than the others shows in the kernels that all
 * of them run. Collectives are left out, because their time depends on the last rank to arrive.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/kernel_times.h"
#include "analyses/queries.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/texts.h"
#include "base/vector.h"

#define KEPT_OF_RANK 64u
#define MOST_PEERS 256u  /* that a rank is compared with */
#define SAME_NUMBER 0.05 /* a kernel runs as often as on other ranks, within this */
#define LISTED 16u
#define LEAST_LISTED 4u
#define MOST_VALUES 16000u /* of all kernels and ranks together, so that reports stay small */

struct kernel_on_rank {
  const struct kernel *kernel;
  i64 ns;
  double mean_us, p95_us;
  i64 step_ns; /* of its steps alone, and how often it ran in them */
  u32 step_times;
};

struct kernels_of_rank {
  struct kernel_on_rank *at; /* KEPT_OF_RANK at most */
  u32 n;
};

struct times {
  i64 ns, step_ns;
  u32 count, step_times, name;
};

void kernels_over_ranks_prepare(struct analysis *a) {
  a->kernels_of_ranks = arena_array(a->arena, a->model->n_ranks, sizeof(*a->kernels_of_ranks));
}

void kernels_over_ranks_free(struct analysis *a) {
  FOR_EACH(a->kernels_of_ranks, a->model->n_ranks, rank)
    free(rank->at);
}

ORDER_BY(longer_first, struct times, DOWN(ns) UP(name))

/* As is_counted_work(), of a rank that knows its kernels. */
static bool is_counted(const struct timeline *t, const struct span *span) {
  return span->kind == SPAN_KERNEL && span->name && span->start >= t->ring_begin;
}

/* How long each run took, those of a name from its `next` on. */
static void list_runs(const struct timeline *t, const u32 *place_of, u32 *next, i64 *took) {
  FOR_EACH(t->spans, t->n_spans, span)
    if (is_counted(t, span) && place_of[span->name])
      took[next[place_of[span->name] - 1]++] = span->end - span->start;
}

static void keep_kernel(struct analysis *a, const struct timeline *t, const struct times *times,
                        i64 *took) {
  struct kernels_of_rank *out = &a->kernels_of_ranks[t->rank];
  const struct span named = {.name = times->name, .kind = SPAN_KERNEL};
  const struct kernel *kernel = kernel_of_span(a, t, &named);
  if (kernel->category == KERNEL_COMMUNICATION)
    return;
  u32 p95 = (u32)((u64)(times->count - 1) * 95 / 100);
  out->at[out->n++] =
      (struct kernel_on_rank){.kernel = kernel,
                              .ns = times->ns,
                              .mean_us = (double)times->ns / times->count / 1e3,
                              .p95_us = (double)ranked_i64(took, times->count, p95) / 1e3,
                              SAME(times, step_ns, step_times)};
}

/* `most` is greater than the number of all names. */
static void measure_kernels(struct analysis *a, const struct timeline *t, const struct times *names,
                            u32 n, u32 most) {
  u32 first[KEPT_OF_RANK + 1] = {0}, next[KEPT_OF_RANK];
  SCOPED u32 *place_of = memory_zeroed(size_sum(most, 1), sizeof(*place_of));
  for (u32 i = 0; i < n; i++) {
    next[i] = first[i];
    first[i + 1] = first[i] + names[i].count;
    place_of[names[i].name] = i + 1;
  }
  SCOPED i64 *took = memory_array(size_sum(first[n], 1), sizeof(*took));
  list_runs(t, place_of, next, took);
  a->kernels_of_ranks[t->rank].at = memory_array(n, sizeof(struct kernel_on_rank));
  for (u32 i = 0; i < n; i++)
    keep_kernel(a, t, &names[i], took + first[i]);
}

/* From the begin of the first step that the rank has to the end of the last: a recording may have
 * more, such as a step that is cut. */
static struct interval all_steps_of(const struct analysis *a, u32 rank) {
  const struct steps *steps = &a->model->steps;
  struct interval all = {NS_UNKNOWN, NS_UNKNOWN};
  for (u32 step = 0; step < steps->n && !a->whole_run; step++) {
    size_t cell = cell_of_step(a->model, step, rank);
    if (steps->begin[cell] == NS_UNKNOWN)
      continue;
    all.start = all.start == NS_UNKNOWN ? steps->begin[cell] : all.start;
    all.end = steps->end[cell];
  }
  return all.start == NS_UNKNOWN ? (struct interval){INT64_MIN, INT64_MAX} : all;
}

void kernels_over_ranks_rank(struct analysis *a, const struct timeline *t) {
  SCOPED VECTOR(struct times) by_name = {0};
  struct interval steps = all_steps_of(a, t->rank);
  if (a->model->n_ranks < 2 || !t->on_gpu || !t->has_compute)
    return;
  FOR_EACH(t->spans, t->n_spans, span) {
    if (!is_counted(t, span))
      continue;
    VECTOR_REACH(&by_name, span->name);
    struct times *times = &by_name.at[span->name];
    times->name = span->name;
    times->ns += span->end - span->start;
    times->count++;
    if (span->start >= steps.start && span->start < steps.end) {
      times->step_ns += span->end - span->start;
      times->step_times++;
    }
  }
  u32 most = by_name.n;
  u32 n = KEEP_WHERE(by_name.at, by_name.n, one, one->count);
  SORT(by_name.at, n, longer_first);
  measure_kernels(a, t, by_name.at, MIN(n, KEPT_OF_RANK), most);
}

void kernels_over_ranks_carry(struct analysis *a, u32 rank, struct carrier *c) {
  struct kernels_of_rank *of = &a->kernels_of_ranks[rank];
  of->n = carry_count(c, of->n, 18);
  c->bad |= of->n > KEPT_OF_RANK;
  of->n = c->bad ? 0 : of->n;
  if (c->reads)
    of->at = memory_zeroed(of->n, sizeof(*of->at));
  FOR_EACH_CHANGED(of->at, of->n, one) {
    const char *name = c->reads ? NULL : one->kernel->raw;
    CARRY(c, &name);
    CARRY_EACH(c, one, ns, mean_us, p95_us, step_ns, step_times);
    if (c->reads)
      one->kernel = kernel_lookup(a->kernel_names, text_or_empty(name));
  }
}

struct all_ranks {
  const struct kernel *kernel;
  i64 ns;
  u32 ranks;
};

ORDER_BY(most_time_first, struct all_ranks, DOWN(ns) BY_TEXT(kernel->raw))

static const struct kernel_on_rank *find_kernel(const struct kernels_of_rank *rank,
                                                const struct kernel *kernel) {
  return FIND(rank->at, rank->n, one, one->kernel == kernel);
}

static void list_kernel(struct analysis *a, const struct kernel *kernel, const u32 *ranks, u32 n,
                        double *values) {
  struct results *r = a->results;
  struct kernel_over_ranks_result *out = &r->kernels_over_ranks[r->n_kernels_over_ranks++];
  *out =
      (struct kernel_over_ranks_result){.name = arena_text(a->arena, kernel->demangled),
                                        .shortened = arena_text(a->arena, kernel->shortened),
                                        .n_values = n,
                                        .mean_us = arena_array(a->arena, n, sizeof(*out->mean_us)),
                                        .p95_us = arena_array(a->arena, n, sizeof(*out->p95_us)),
                                        .slowest = INDEX_NONE,
                                        .slowest_us = NAN};
  u32 known = 0;
  for (u32 i = 0; i < n; i++) {
    const struct kernel_on_rank *one = find_kernel(&a->kernels_of_ranks[ranks[i]], kernel);
    out->mean_us[i] = one ? one->mean_us : NAN;
    out->p95_us[i] = one ? one->p95_us : NAN;
    if (!one)
      continue;
    values[known++] = one->mean_us;
    if (!(one->mean_us <= out->slowest_us)) {
      out->slowest = a->model->ranks[ranks[i]].rank;
      out->slowest_us = one->mean_us;
    }
  }
  out->median_us = median_of(values, known);
}

/* The kernels that more than one rank ran, most time first; how many. */
static u32 sum_over_ranks(const struct analysis *a, struct all_ranks **sums) {
  VECTOR(struct all_ranks) by_kernel = {0};
  FOR_EACH(a->kernels_of_ranks, a->model->n_ranks, kernels_of_rank)
    FOR_EACH(kernels_of_rank->at, kernels_of_rank->n, one) {
      VECTOR_REACH(&by_kernel, one->kernel->number);
      struct all_ranks *all = &by_kernel.at[one->kernel->number];
      all->kernel = one->kernel;
      all->ns += one->ns;
      all->ranks++;
    }
  u32 n = KEEP_WHERE(by_kernel.at, by_kernel.n, one, one->ranks > 1);
  SORT(by_kernel.at, n, most_time_first);
  *sums = by_kernel.at;
  return n;
}

void kernels_over_ranks_summarise(struct analysis *a) {
  struct results *r = a->results;
  SCOPED struct all_ranks *sums = NULL;
  u32 n = sum_over_ranks(a, &sums), n_ranks = 0;
  SCOPED u32 *ranks = memory_zeroed(size_sum(a->model->n_ranks, 1), sizeof(*ranks));
  SCOPED double *values = memory_zeroed(size_sum(a->model->n_ranks, 1), sizeof(*values));
  r->over_ranks_of = arena_array(a->arena, a->model->n_ranks, sizeof(*r->over_ranks_of));
  r->kernels_over_ranks = arena_array(a->arena, LISTED, sizeof(*r->kernels_over_ranks));
  for (u32 i = 0; i < a->model->n_ranks && n; i++)
    if (a->kernels_of_ranks[i].n) {
      ranks[n_ranks++] = i;
      r->over_ranks_of[r->n_over_ranks_of++] = a->model->ranks[i].rank;
    }
  u32 most = n_ranks ? MOST_VALUES / n_ranks : 0;
  most = MIN(n, CLAMP(most, LEAST_LISTED, LISTED));
  FOR_EACH(sums, most, sum)
    list_kernel(a, sum->kernel, ranks, n_ranks, values);
}

/* Of many ranks so many are compared. */
static u32 apart(const struct analysis *a) {
  return a->model->n_ranks / MOST_PEERS + 1;
}

/* The steps that a rank has of those found; 1 where none were. */
static double steps_of(const struct analysis *a, u32 rank) {
  const struct steps *steps = &a->model->steps;
  u32 n = 0;
  for (u32 step = 0; step < steps->n && !a->whole_run; step++)
    n += steps->begin[cell_of_step(a->model, step, rank)] != NS_UNKNOWN;
  return MAX(n, 1);
}

/* What one kernel of the rank takes more than on the median of its peers, in as many steps. */
static void add_longer(const struct analysis *a, u32 rank, const struct kernel_on_rank *own,
                       const double *steps, double *ns, double *times, struct longer_kernels *found,
                       double *most) {
  u32 n = 0;
  for (u32 i = 0; i < a->model->n_ranks; i += apart(a)) {
    if (i == rank || !a->kernels_of_ranks[i].n)
      continue;
    const struct kernel_on_rank *peer = find_kernel(&a->kernels_of_ranks[i], own->kernel);
    double as_long = steps[rank] / steps[i];
    ns[n] = peer ? as_long * (double)peer->step_ns : 0;
    times[n++] = peer ? as_long * peer->step_times : 0;
  }
  double more = (double)own->step_ns - median_of(ns, n), peers_times = median_of(times, n);
  if (!n || !(more > 0))
    return;
  bool oftener = own->step_times > (1 + SAME_NUMBER) * peers_times;
  *(oftener ? &found->oftener_ns : &found->longer_ns) += more;
  if (more <= *most)
    return;
  *most = more;
  found->most = own->kernel->shortened;
  found->times = own->step_times;
  found->peers_times = peers_times;
}

bool kernels_that_take_longer(const struct analysis *a, u32 rank, struct longer_kernels *found) {
  const struct kernels_of_rank *of = &a->kernels_of_ranks[rank];
  u32 n = a->model->n_ranks;
  SCOPED double *scratch = memory_array(3 * size_sum(n, 1), sizeof(double));
  double most = 0, *steps = scratch + 2 * n;
  steps[rank] = steps_of(a, rank);
  for (u32 i = 0; i < n; i += apart(a))
    steps[i] = steps_of(a, i);
  *found = (struct longer_kernels){0};
  FOR_EACH(of->at, of->n, one)
    add_longer(a, rank, one, steps, scratch, scratch + n, found, &most);
  return most > 0;
}
