/* SPDX-License-Identifier: MIT
 *
 * Runs the analyses in order, and the ranks in parallel.
 */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analysis.h"
#include "analyses/path/path_graph.h"
#include "analyses/steps/series.h"
#include "base/parallel.h"
#include "diff/diff.h"

struct rank_loop {
  struct analysis *a;
  atomic_uint done;
};

static int load(struct analysis *a, u32 rank, struct timeline *timeline) {
  if (rank != 0 || !a->early)
    return a->source.load(a->model, rank, timeline);
  *timeline = *a->early;
  a->early = NULL;
  return 0;
}

static int analyse_rank(void *user, u32 rank, unsigned worker) {
  struct rank_loop *loop = user;
  struct analysis *a = loop->a;
  struct timeline timeline;
  memset(&timeline, 0, sizeof(timeline));
  /* A rank that cannot be decoded is left out and shows as partial; the others still count. */
  if (load(a, rank, &timeline) == 0) {
    int error = steps_on_gpu_rank(a, &timeline); /* all others go by its steps */
    if (error == 0)
      error = overlap_rank(a, &timeline);
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
  int (*const before[])(struct analysis *) = {
      steps_prepare,        steps_count_warmup, prepare,          untimed_prepare,
      collectives_prepare,  group_calls_join,   graph_plan,       kernel_times_prepare,
      gpu_timeline_prepare, launches_prepare,   products_prepare, series_prepare};
  int error = 0;
  for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && !error; i++)
    error = before[i](a);
  if (!error)
    error = parallel_for(a->model->n_ranks, a->options->threads, analyse_rank, &loop);

  int (*const after[])(struct analysis *) = {
      steps_analyse,          overlap_summarise,     phases_analyse,        collectives_analyse,
      stragglers_analyse,     last_arrivals_analyse, critical_path_analyse, kernel_times_summarise,
      gpu_timeline_summarise, launches_summarise,    pipeline_analyse,      named_ranges_analyse,
      products_summarise,     utilisation_analyse,   budget_analyse,        memory_analyse,
      verdict_analyse,        modules_analyse,       convergence_analyse,   quality_analyse,
      series_summarise,       undecided_analyse,     findings_analyse, /* rules come last */
      verdict_word_analyse,
  };
  for (size_t i = 0; i < sizeof(after) / sizeof(after[0]) && !error; i++)
    error = after[i](a);
  return error;
}

/* What outputs may ask afterwards (results.analysis) lives in the arena and stays. */
static void free_what_is_done(struct analysis *a) {
  if (a->early)
    a->source.release(a->early);
  graph_free(a);
  kernel_times_free(a);
  launches_free(a);
  products_free(a);
  series_free(a);
  a->early = NULL;
  a->graph = NULL;
  a->kernel_names = a->options->kernel_names;
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
  struct analysis *a = arena_alloc(arena, sizeof(*a));
  struct analyse_options *kept = arena_alloc(arena, sizeof(*kept));
  int error = a && kept ? 0 : -ENOMEM;
  if (!error) {
    *kept = *options;
    *a = (struct analysis){
        .model = model, .options = kept, .source = *source, .results = out, .arena = arena};
    error = run_all(a);
    free_what_is_done(a);
    out->analysis = a;
  }
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

static size_t cell_of(const struct analysis *a, u32 rank, u32 step) {
  return (size_t)step * a->model->n_ranks + rank;
}

static i64 host_end(const struct analysis *a, u32 rank, u32 step) {
  const struct steps *steps = &a->model->steps;
  return (steps->host_end ? steps->host_end : steps->end)[cell_of(a, rank, step)];
}

bool analysis_window(const struct analysis *a, u32 rank, u32 step, struct window *window) {
  i64 begin, end;
  if (a->whole_run) {
    begin = a->model->ranks[rank].begin;
    end = a->model->ranks[rank].end;
  } else {
    begin = a->begin[cell_of(a, rank, step)];
    end = a->end[cell_of(a, rank, step)];
  }
  *window = (struct window){begin, end, step};
  return begin != NS_UNKNOWN && end != NS_UNKNOWN && end > begin;
}

bool analysis_has_step(const struct analysis *a, u32 rank, u32 step) {
  return host_end(a, rank, step) != NS_UNKNOWN;
}

i32 analysis_step_at(const struct analysis *a, u32 rank, i64 time) {
  u32 low = 0, high = a->model->steps.n;
  struct window window;
  while (low < high) { /* the first step that begins later; those not known are few */
    u32 middle = low + (high - low) / 2, known = middle;
    while (known < high && !analysis_window(a, rank, known, &window))
      known++;
    if (known < high && window.begin <= time)
      low = known + 1;
    else
      high = middle;
  }
  while (low > 0 && !analysis_window(a, rank, low - 1, &window))
    low--;
  return low > 0 && window.begin <= time && time < window.end ? (i32)low - 1 : -1;
}

i64 analysis_host_ahead(const struct analysis *a, u32 rank, u32 step, u32 later) {
  size_t cell = cell_of(a, rank, step);
  i64 host = host_end(a, rank, later);
  bool known = (a->told[cell] & STEP_END_TOLD) && a->end[cell] != NS_UNKNOWN && host != NS_UNKNOWN;
  return known ? a->end[cell] - host : NS_UNKNOWN;
}

bool analysis_ends_on_gpu(const struct analysis *a, u32 rank, u32 step) {
  return !a->whole_run && analysis_host_ahead(a, rank, step, step) > 0;
}

/* What was launched while the GPU was watched is seen even where it runs on afterwards. */
bool analysis_gpu_seen(const struct analysis *a, u32 rank, const struct window *window) {
  if (a->whole_run)
    return true;
  i64 launched =
      analysis_ends_on_gpu(a, rank, window->step) ? host_end(a, rank, window->step) : window->end;
  return model_gpu_seen(&a->model->ranks[rank], window->begin, launched);
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

char *ranks_in_words(struct arena *arena, const u32 *ranks, u32 n) {
  enum { SHOWN = 8 };
  char text[SHOWN * 12 + 32];
  size_t used = 0;
  text[0] = 0;
  for (u32 i = 0; i < n && i < SHOWN; i++)
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i ? ", " : "", ranks[i]);
  if (n > SHOWN)
    snprintf(text + used, sizeof(text) - used, " and %u more", n - SHOWN);
  return arena_text(arena, text);
}
