/* SPDX-License-Identifier: MIT
 *
 * Loads one rank after the other, on as many threads as there are, and hands each to the visitor in
 * order; then the critical path through the chosen steps, for which all ranks are needed, also
 * those that are not shown.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "analyses/path/path_labels.h"
#include "analyses/path/step_paths.h"
#include "analyses/queries.h"
#include "base/checked_memory.h"
#include "base/parallel.h"
#include "report/timeline/rank_lanes.h"

struct shown_walk {
  const struct shown_scope *scope;
  const struct shown_visitor *visitor;
  struct analysis analysis; /* the run's */
  struct step_paths *paths; /* NULL: none are wanted */
  u32 *drawn;               /* by row of the paths: the step it is for */
  u32 n_rows;
  bool *shown; /* [n_ranks] */
  /* ranks are taken in order, and handed over in order */
  pthread_mutex_t lock;
  pthread_cond_t turned;
  atomic_uint next;
  u32 turn;
  int error;
};

static void wait_for_turn(struct shown_walk *w, u32 rank) {
  while (w->turn != rank && !w->error)
    pthread_cond_wait(&w->turned, &w->lock);
}

/* Hands a rank over when all before it have been; `rank` NULL only counts it. */
static void deliver_rank(struct shown_walk *w, u32 index, const struct shown_rank *rank) {
  pthread_mutex_lock(&w->lock);
  wait_for_turn(w, index);
  if (!w->error && rank && w->visitor->rank)
    w->error = w->visitor->rank(w->visitor->user, rank);
  w->turn++;
  pthread_cond_broadcast(&w->turned);
  pthread_mutex_unlock(&w->lock);
}

static bool has_failed(struct shown_walk *w) {
  pthread_mutex_lock(&w->lock);
  bool failed = w->error != 0;
  pthread_mutex_unlock(&w->lock);
  return failed;
}

static void show_timeline(struct shown_walk *w, struct rank_lanes *lanes,
                          struct timeline *timeline) {
  if (w->paths)
    step_paths_add_rank(w->paths, timeline);
  if (!w->shown[timeline->rank])
    return;
  *lanes = (struct rank_lanes){.scope = w->scope, .analysis = &w->analysis, .timeline = timeline};
  rank_lanes_build(lanes);
  rank_counters_build(lanes);
}

static void add_reason_for_empty(const struct shown_walk *w, u32 rank, struct rank_lanes *lanes) {
  const struct model *model = w->analysis.model;
  const struct rank *of = &model->ranks[rank];
  const char *why =
      model->timelines->unreachable ? model->timelines->unreachable(model, rank) : NULL;
  lanes->shown = (struct shown_rank){.rank = rank,
                                     .number = of->rank,
                                     .host = of->host,
                                     .device = of->info[TSCOPE_INFO_GPU_NAME],
                                     .why_empty = why ? why : "its trace could not be read"};
}

static void show_rank(void *user, u32 ignored, unsigned worker) {
  struct shown_walk *w = user;
  (void)ignored;
  (void)worker;
  u32 rank = atomic_fetch_add(&w->next, 1);
  struct rank_lanes lanes = {.scope = NULL};
  struct timeline timeline = {.rank = rank};
  bool needed = (w->paths || w->shown[rank]) && !has_failed(w);
  bool loaded = needed && w->analysis.source.load(w->analysis.model, rank, &timeline) == 0;
  if (loaded)
    show_timeline(w, &lanes, &timeline);
  else
    add_reason_for_empty(w, rank, &lanes);
  deliver_rank(w, rank, w->shown[rank] ? &lanes.shown : NULL);
  rank_lanes_release(&lanes);
  if (loaded)
    w->analysis.source.release(&timeline);
}

/* A row for each step, with those before it. */
static void plan_paths(struct shown_walk *w) {
  const struct shown_scope *scope = w->scope;
  u32 n = scope->path_steps;
  if (scope->path_reason || !w->visitor->path)
    return;
  SCOPED struct sample *rows = memory_zeroed(size_sum(n, 1), sizeof(*rows));
  w->drawn = memory_zeroed(size_sum(n, 1), sizeof(*w->drawn));
  FOR_EACH(scope->steps, n, one) {
    u32 step = scope->n_steps ? one->step : 0;
    u32 first = step > scope->path_lead ? step - scope->path_lead : 0;
    rows[w->n_rows] = (struct sample){first, step - first + 1};
    w->drawn[w->n_rows++] = step;
  }
  if (w->n_rows)
    step_paths_new(&w->analysis, rows, w->n_rows, &w->paths);
}

/* When a step ends on the rank that ends it last, and when the one before did: the time between
 * them is drawn. */
static struct interval step_bounds(const struct shown_walk *w, u32 step) {
  struct interval bounds = {INT64_MAX, INT64_MIN};
  for (u32 rank = 0; rank < w->analysis.model->n_ranks; rank++) {
    struct window window;
    if (!analysis_window(&w->analysis, rank, step, &window))
      continue;
    bounds.start = MIN(window.begin, bounds.start);
    bounds.end = MAX(window.end, bounds.end);
  }
  return bounds;
}

static int show_path(struct shown_walk *w, u32 row) {
  struct path_segment *segments;
  u32 n, kept = 0;
  step_paths_walk(w->paths, row, &segments, &n);
  struct interval bounds = step_bounds(w, w->drawn[row]);
  SCOPED struct shown_stretch *stretches = memory_zeroed(size_sum(n, 1), sizeof(*stretches));
  for (u32 i = n; i-- > 0;) {
    const struct path_segment *from = &segments[i];
    if (from->end <= bounds.start || from->start >= bounds.end)
      continue;
    struct shown_stretch *to = &stretches[kept++];
    *to = (struct shown_stretch){
        .start = MAX(from->start, bounds.start),
        .end = MIN(from->end, bounds.end),
        .rank = from->rank,
        .name = step_paths_name(w->paths, from->label),
        .category = path_category_name(from->category),
        .reached_by = from->edge == PATH_EDGE_NONE ? NULL : path_edge_name(from->edge)};
  }
  struct shown_path path = {
      .step = w->scope->n_steps ? (i32)w->drawn[row] : -1, .stretches = stretches, .n = kept};
  int error = kept ? w->visitor->path(w->visitor->user, &path) : 0;
  free(segments);
  return error;
}

/* Ranks of inputs that have no timelines are few, and quick. */
static int show_recorded(const struct shown_scope *scope, const struct shown_visitor *visitor,
                         u32 index) {
  struct rank_lanes lanes = {.scope = scope, .analysis = scope->results->analysis};
  int error = 0;
  if (scope->source == SHOWN_RECORDED_CALLS) {
    rank_calls_build(&lanes, index);
  } else {
    const struct memory_origin *origin = &scope->results->model->memories[index];
    lanes.shown = (struct shown_rank){.rank = INDEX_NONE, .number = origin->rank};
    bool unread = rank_counters_of_memory(&lanes, origin) != 0;
    lanes.shown.why_empty = unread ? "its recording could not be read" : NULL;
  }
  if (visitor->rank)
    error = visitor->rank(visitor->user, &lanes.shown);
  rank_lanes_release(&lanes);
  return error;
}

static int walk_timelines(const struct shown_scope *scope, const struct shown_visitor *visitor) {
  const struct model *model = scope->results->model;
  struct shown_walk w = {.scope = scope,
                         .visitor = visitor,
                         .analysis = *scope->results->analysis,
                         .shown = memory_zeroed(size_sum(model->n_ranks, 1), sizeof(bool))};
  plan_paths(&w);
  FOR_EACH(scope->ranks, scope->n_ranks, rank)
    w.shown[*rank] = true;
  pthread_mutex_init(&w.lock, NULL);
  pthread_cond_init(&w.turned, NULL);
  parallel_for(model->n_ranks, scope->request.threads, show_rank, &w);
  int error = w.error;
  for (u32 row = 0; row < w.n_rows && w.paths && !error; row++)
    error = show_path(&w, row);
  pthread_cond_destroy(&w.turned);
  pthread_mutex_destroy(&w.lock);
  step_paths_free(w.paths);
  free(w.drawn);
  free(w.shown);
  return error;
}

int shown_walk(const struct shown_scope *scope, const struct shown_visitor *visitor) {
  if (scope->source == SHOWN_TIMELINES)
    return walk_timelines(scope, visitor);
  int error = 0;
  for (u32 i = 0; i < scope->n_ranks && !error; i++)
    error = show_recorded(scope, visitor, scope->ranks[i]);
  return error;
}
