/* SPDX-License-Identifier: MIT
 *
 * Runs the table of analyses, and the ranks in parallel.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/gpu_gaps.h"
#include "base/checked_memory.h"
#include "base/parallel.h"

static const struct {
  void (*prepare)(struct analysis *a);
  void (*per_rank)(struct analysis *a, const struct timeline *timeline);
  void (*carry)(struct analysis *a, u32 rank, struct carrier *c);
  void (*summarise)(struct analysis *a);
  void (*release)(struct analysis *a);
} analyses[] = {
#define A(name, parts) {parts},
#define PREPARE(f) .prepare = f,
#define PER_RANK(f) .per_rank = f,
#define CARRIES(f) .carry = f,
#define SUMMARISE(f) .summarise = f,
#define RELEASE(f) .release = f,
    TSCOPE_ANALYSES(A, PREPARE, PER_RANK, CARRIES, SUMMARISE, RELEASE)
#undef A
#undef PREPARE
#undef PER_RANK
#undef CARRIES
#undef SUMMARISE
#undef RELEASE
};

#define ANALYSES LENGTH_OF(analyses)

struct rank_loop {
  struct analysis *a;
  bool *damaged; /* [n_ranks] what was found when it was reduced is not to be read */
  atomic_uint done;
  atomic_bool again; /* one of them was read half-way */
};

static void count_spans(struct rank_summary *sum, const struct timeline *timeline) {
  FOR_EACH(timeline->spans, timeline->n_spans, span)
    sum->spans[span->kind]++;
}

static int load_timeline(struct analysis *a, u32 rank, struct timeline *timeline) {
  if (rank != 0 || !a->timeline_of_rank0)
    return a->source.load(a->model, rank, timeline);
  *timeline = *a->timeline_of_rank0;
  a->timeline_of_rank0 = NULL;
  return 0;
}

/* Each analysis has a part of its own in what is kept. */
static void find_in_timeline(struct analysis *a, const struct timeline *timeline,
                             struct carrier *keeps) {
  struct rank_summary *sum = &a->ranks[timeline->rank];
  struct gpu_gaps gaps;
  count_spans(sum, timeline);
  gpu_gaps_find(timeline, &gaps);
  sum->gaps = &gaps;
  FOR_EACH(analyses, ANALYSES, analyse) {
    if (!analyse->per_rank)
      continue;
    if (keeps)
      CARRY_PART(keeps, analyse->per_rank(a, timeline); analyse->carry(a, timeline->rank, keeps));
    else
      analyse->per_rank(a, timeline);
  }
  free(gaps.at);
  free(sum->exposed);
  sum->gaps = NULL;
  sum->exposed = NULL;
}

/* What was found when the rank was reduced. The rank's own sums come first: others look at them. If
 * it turns out to be damaged, part of it is in sums of all ranks already. */
static bool read_found(struct analysis *a, u32 rank, bool *damaged) {
  SCOPED_ARENA struct arena arena = {0};
  struct carrier found;
  bool there = !*damaged && model_found(a->model, rank, true, &arena, &found);
  if (there) {
    CARRY_PART(&found, rank_summary_carry(&a->ranks[rank], &found));
    for (size_t i = 0; i < ANALYSES && !found.bad; i++)
      if (analyses[i].carry)
        CARRY_PART(&found, analyses[i].carry(a, rank, &found));
    *damaged = found.bad;
    carrier_free(&found);
  }
  return there;
}

/* As find_in_timeline(), for `tscope reduce`. */
static void find_and_keep(struct analysis *a, const struct timeline *timeline) {
  const struct rank_keeper *keeper = a->options->keeper;
  u32 rank = timeline->rank;
  SCOPED_ARENA struct arena texts = {0};
  struct carrier all = carrier_to_write(&texts), parts = carrier_to_write(&texts);
  if (keeper->begin(keeper->keeping, a->model, rank, &all)) {
    a->keeps[rank] = &parts;
    find_in_timeline(a, timeline, &parts);
    a->keeps[rank] = NULL;
    CARRY_PART(&all, rank_summary_carry(&a->ranks[rank], &all));
    carrier_append(&all, &parts);
    keeper->end(keeper->keeping, a->model, rank, &all);
  }
  carrier_free(&all);
  carrier_free(&parts);
}

static void analyse_rank(void *user, u32 rank, unsigned worker) {
  struct rank_loop *loop = user;
  struct analysis *a = loop->a;
  struct timeline timeline;
  memset(&timeline, 0, sizeof(timeline));
  /* A rank that cannot be decoded is left out and shows as partial; the others still count. */
  if (read_found(a, rank, &loop->damaged[rank])) {
    a->ranks[rank].loaded = true;
    if (loop->damaged[rank])
      atomic_store(&loop->again, true);
  } else if (load_timeline(a, rank, &timeline) == 0) {
    if (a->keeps)
      find_and_keep(a, &timeline);
    else
      find_in_timeline(a, &timeline, NULL);
    a->source.release(&timeline);
    a->ranks[rank].loaded = true;
  }
  u32 done = atomic_fetch_add(&loop->done, 1) + 1;
  if (worker == 0 && a->options->progress)
    a->options->progress(a->options->user, "analysing ranks", (double)done / a->model->n_ranks);
}

/* False if what damaged summaries have left among the sums makes all of them useless. */
static bool run_all(struct analysis *a, bool *damaged) {
  struct rank_loop loop = {.a = a, .damaged = damaged};
  FOR_EACH(analyses, ANALYSES, analyse)
    if (analyse->prepare)
      analyse->prepare(a);
  if (a->options->keeper)
    a->keeps = arena_array(a->arena, a->model->n_ranks, sizeof(struct carrier *));
  parallel_for(a->model->n_ranks, a->options->threads, analyse_rank, &loop);
  if (a->options->keeper)
    return true; /* what was found on a rank is all that is wanted */
  for (size_t i = 0; i < ANALYSES && !loop.again; i++)
    if (analyses[i].summarise)
      analyses[i].summarise(a);
  return !loop.again;
}

/* What outputs may use afterwards (results.analysis) lives in the arena and stays. */
static void free_sums(struct analysis *a) {
  if (a->timeline_of_rank0)
    a->source.release(a->timeline_of_rank0);
  FOR_EACH(analyses, ANALYSES, analyse)
    if (analyse->release)
      analyse->release(a);
  a->timeline_of_rank0 = NULL;
  a->graph = NULL;
  a->kernel_names = a->options->kernel_names;
}

/* NULL if damaged summaries were found, which the next try leaves aside. */
static struct results *try_to_analyse(const struct model *model,
                                      const struct analyse_options *options,
                                      const struct timeline_source *source, bool *damaged) {
  struct arena *arena = memory_zeroed(1, sizeof(*arena));
  struct results *out = arena_alloc(arena, sizeof(*out));
  *out = unknown_results;
  out->model = model;
  out->internal = arena;
  struct analysis *a = arena_alloc(arena, sizeof(*a));
  struct analyse_options *kept = arena_alloc(arena, sizeof(*kept));
  *kept = *options;
  *a = (struct analysis){
      .model = model, .options = kept, .source = *source, .results = out, .arena = arena};
  bool good = run_all(a, damaged);
  free_sums(a);
  out->analysis = a;
  if (good)
    return out;
  results_free(out);
  return NULL;
}

struct results *analyse_with(const struct model *model, const struct analyse_options *options,
                             const struct timeline_source *source) {
  SCOPED bool *damaged = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(*damaged));
  struct results *results;
  while (!(results = try_to_analyse(model, options, source, damaged)))
    ;
  return results;
}

void results_free(struct results *results) {
  if (!results)
    return;
  struct arena *arena = results->internal;
  arena_release(arena);
  free(arena);
}
