/* SPDX-License-Identifier: MIT
 *
 * Runs the analyses in order, and the ranks in parallel.
 */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../diff/diff.h"
#include "analysis.h"
#include "graph.h"
#include "parallel.h"

struct rank_loop {
  struct analysis *a;
  atomic_uint done;
};

static int analyse_rank(void *user, u32 rank, unsigned worker) {
  struct rank_loop *loop = user;
  struct analysis *a = loop->a;
  struct timeline timeline;
  memset(&timeline, 0, sizeof(timeline));
  /* A rank that cannot be decoded is left out and shows as partial; the others still count. */
  if (a->source.load(a->model, rank, &timeline) == 0) {
    int error = overlap_rank(a, &timeline);
    if (error == 0)
      error = kernel_times_rank(a, &timeline);
    if (error == 0)
      error = gpu_timeline_rank(a, &timeline);
    if (error == 0)
      error = launches_rank(a, &timeline);
    if (error == 0)
      error = flops_rank(a, &timeline);
    if (error == 0)
      error = slice_cut(a, &timeline);
    a->source.release(&timeline);
    if (error)
      return error;
    a->ranks[rank].loaded = true;
  }
  u32 done = atomic_fetch_add(&loop->done, 1) + 1;
  if (worker == 0 && a->options->progress)
    a->options->progress(a->options->user, "analysing ranks", (double)done / a->model->n_ranks);
  return 0;
}

static int prepare(struct analysis *a) {
  const struct model *model = a->model;
  size_t cells = (size_t)model->n_ranks * a->n_steps;
  a->ranks = arena_array(a->arena, model->n_ranks + 1u, sizeof(*a->ranks));
  a->compute_ms = arena_array(a->arena, cells + 1, sizeof(*a->compute_ms));
  a->waited_elsewhere = arena_array(a->arena, model->n_arrivals + 1u, sizeof(i64));
  if (!a->ranks || !a->compute_ms || !a->waited_elsewhere)
    return -ENOMEM;
  for (size_t i = 0; i < cells; i++)
    a->compute_ms[i] = NAN;
  return 0;
}

static int run_all(struct analysis *a) {
  struct rank_loop loop = {.a = a};
  int (*const before[])(struct analysis *) = {steps_analyse,        prepare,
                                              collectives_prepare,  group_calls_join,
                                              graph_plan,           kernel_times_prepare,
                                              gpu_timeline_prepare, launches_prepare};
  int error = 0;
  for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && !error; i++)
    error = before[i](a);
  if (!error)
    error = parallel_for(a->model->n_ranks, a->options->threads, analyse_rank, &loop);

  int (*const after[])(struct analysis *) = {
      overlap_summarise,     phases_analyse,        collectives_analyse,    stragglers_analyse,
      last_arrivals_analyse, critical_path_analyse, kernel_times_summarise, gpu_timeline_summarise,
      launches_summarise,    pipeline_analyse,      named_ranges_analyse,   budget_analyse,
      memory_analyse,        verdict_analyse,       modules_analyse,        convergence_analyse,
      quality_analyse,       findings_analyse, /* rules come last */
  };
  for (size_t i = 0; i < sizeof(after) / sizeof(after[0]) && !error; i++)
    error = after[i](a);
  return error;
}

int analyse_with(const struct model *model, const struct analyse_options *options,
                 const struct timeline_source *source, struct results **results) {
  struct arena *arena = calloc(1, sizeof(*arena));
  if (!arena)
    return -ENOMEM;
  struct results *out = arena_alloc(arena, sizeof(*out));
  if (!out) {
    free(arena);
    return -ENOMEM;
  }
  out->model = model;
  out->diff = diff_result_none();
  out->internal = arena;
  struct analysis a = {
      .model = model, .options = options, .source = *source, .results = out, .arena = arena};
  int error = run_all(&a);
  graph_free(&a);
  kernel_times_free(&a);
  launches_free(&a);
  if (error) {
    results_free(out);
    out = NULL;
  }
  *results = out;
  return error;
}

void results_free(struct results *results) {
  if (!results)
    return;
  struct arena *arena = results->internal;
  arena_release(arena);
  free(arena);
}

bool analysis_window(const struct analysis *a, u32 rank, u32 step, struct window *window) {
  const struct steps *steps = &a->model->steps;
  i64 begin, end;
  if (a->whole_run) {
    begin = a->model->ranks[rank].begin;
    end = a->model->ranks[rank].end;
  } else {
    begin = steps->begin[(size_t)step * a->model->n_ranks + rank];
    end = steps->end[(size_t)step * a->model->n_ranks + rank];
  }
  *window = (struct window){begin, end, step};
  return begin != NS_UNKNOWN && end != NS_UNKNOWN && end > begin;
}

bool analysis_gpu_seen(const struct analysis *a, u32 rank, const struct window *window) {
  return a->whole_run || model_gpu_seen(&a->model->ranks[rank], window->begin, window->end);
}

bool analysis_looks_at(const struct analysis *a, const struct collective *collective) {
  return a->whole_run ||
         (collective->step >= (i32)a->first_step && collective->step < (i32)a->model->steps.n);
}

const char *op_name(u8 op) {
  switch (op) {
#define X(NAME, value, text)                                                                       \
  case value:                                                                                      \
    return text;
    TSCOPE_OPS(X)
#undef X
  default:
    return "unknown";
  }
}

bool op_is_barrier_like(u8 op) {
  return op == TSCOPE_OP_ALLREDUCE || op == TSCOPE_OP_ALLGATHER || op == TSCOPE_OP_REDUCE_SCATTER ||
         op == TSCOPE_OP_ALLTOALL || op == TSCOPE_OP_BARRIER;
}
