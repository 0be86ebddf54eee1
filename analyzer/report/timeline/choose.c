/* SPDX-License-Identifier: MIT
 *
 * Which steps and ranks are shown. Unless the reader says: the median step, the slowest, and the
 * first after the run became slower for good; all ranks up to a number, those that findings name
 * always among them.
 */
#include <math.h>
#include <string.h>

#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/vector.h"
#include "model/flight_record.h"
#include "model/memory_history.h"
#include "report/selection.h"
#include "report/timeline/shown.h"

/* Spans that are kept for the path until it is walked, about 100 bytes each. */
#define PATH_EVENTS 2e6
/* Steps before the one that is drawn, in which its work may have been launched. */
#define MOST_STEPS_AHEAD 4u

struct choosing {
  struct shown_scope *scope;
  const struct results *results;
  const struct model *model;
  bool *wanted; /* [n_ranks] named by findings: kept when others go */
  u32 n_wanted;
  double per_step; /* events of one rank in one step, mean; without steps: in the run */
  VECTOR(const char *) left_out;
};

/* A sentence of what is left out. */
#define leave_out(c, ...) VECTOR_PUSH(&(c)->left_out, arena_printf(&(c)->scope->arena, __VA_ARGS__))

const char *const shown_reason_words[] = {
#define R(name, text) text,
    SHOWN_REASONS(R)
#undef R
};

static void add_step(struct shown_scope *scope, u32 step, enum shown_reason why) {
  if (!ANY(scope->steps, scope->n_steps, one, one->step == step))
    scope->steps[scope->n_steps++] = (struct shown_step){step, why};
}

/* By the wall time of the analysed steps, mean over ranks. */
static void add_notable_steps(struct choosing *c) {
  const struct results *r = c->results;
  u32 first = first_analysed_step(r), n = r->n_step_ms,
      slowest = NUMBER_OF_LARGEST(first, n, i, r->step_ms[i]),
      median = NUMBER_OF_LARGEST(first, n, i, -fabs(r->step_ms[i] - r->step_median_ms));
  if (first >= n || isnan(r->step_ms[slowest]))
    return;
  if (r->changed_step)
    add_step(c->scope, r->changed_step, SHOWN_AFTER_CHANGE);
  add_step(c->scope, slowest, SHOWN_SLOWEST);
  add_step(c->scope, median, SHOWN_MEDIAN);
  SORT(c->scope->steps, c->scope->n_steps, by_u32);
}

static void choose_steps(struct choosing *c, bool all) {
  struct shown_scope *scope = c->scope;
  u32 n = c->model->steps.n;
  bool requested = scope->request.steps_requested;
  scope->n_steps = 0;
  scope->steps = arena_array(&scope->arena, n, sizeof(*scope->steps));
  if (requested || all)
    for (u32 i = 0; i < n; i++)
      scope->steps[scope->n_steps++] =
          (struct shown_step){i, requested ? SHOWN_REQUESTED : SHOWN_ALL};
  else
    add_notable_steps(c);
}

/* As long as there are fewer than `most`. */
static void add_wanted(struct choosing *c, u32 global, u32 most) {
  u32 index = c->n_wanted < most ? model_rank_index(c->model, global) : INDEX_NONE;
  if (index == INDEX_NONE || c->wanted[index])
    return;
  c->wanted[index] = true;
  c->n_wanted++;
}

/* Findings come with the most saving first; of very many ranks that are named alike not all. */
static void add_named_ranks(struct choosing *c, u32 most) {
  const struct results *r = c->results;
  FOR_EACH(r->ranks, r->n_ranks, rank)
    if (rank->straggler)
      add_wanted(c, rank->rank, most);
  FOR_EACH(r->check.suspects, r->check.n_suspects, suspect)
    add_wanted(c, suspect->rank, most);
  FOR_EACH(r->findings, r->n_findings, finding)
    FOR_EACH(finding->ranks, finding->n_ranks, rank)
      add_wanted(c, *rank, most);
}

static void choose_requested_ranks(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  scope->n_ranks = LIST_WHERE(scope->ranks, 0, c->model->n_ranks, i,
                              selection_has_rank(scope->request.ranks, c->model->ranks[i].rank), i);
}

/* Those that findings name, and of the others as many as there is room for, evenly over the run. */
static void choose_some_ranks(struct choosing *c, u32 most) {
  struct shown_scope *scope = c->scope;
  u32 n = c->model->n_ranks;
  scope->n_ranks = 0;
  memset(c->wanted, 0, n * sizeof(bool));
  c->n_wanted = 0;
  if (n > most)
    add_named_ranks(c, most);
  u32 others = n - c->n_wanted, room = most < n ? most - c->n_wanted : others, seen = 0, taken = 0;
  for (u32 i = 0; i < n; i++) {
    bool take = c->wanted[i];
    if (!take && (u64)taken * others <= (u64)seen * room && taken < room) {
      take = true;
      taken++;
    }
    seen += !c->wanted[i];
    if (take)
      scope->ranks[scope->n_ranks++] = i;
  }
}

static double events_per_step(const struct model *model) {
  double records = TOTAL(double, model->ranks, model->n_ranks, one, (double)one->records);
  u32 steps = MAX(model->steps.n, 1);
  return model->n_ranks ? records / model->n_ranks / steps / model_share_kept(model) : 0;
}

static double estimate_events(const struct choosing *c, u32 steps, u32 ranks) {
  return c->per_step * MAX(steps, 1) * ranks;
}

/* How many of `n` there is room for if each has so many events; one at least. */
static u32 count_that_fit(double room, double each, u32 n) {
  double fit = each > 0 ? floor(room / each) : n;
  return fit >= n ? n : fit < 1 ? 1 : (u32)fit;
}

/* Fewer ranks, unless they were requested; then fewer steps, of those chosen the slowest last. */
static void fit_into_limit(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  double room = scope->request.most_events;
  u32 steps = MAX(scope->n_steps, 1);
  if (estimate_events(c, steps, scope->n_ranks) <= room)
    return;
  if (!scope->request.ranks)
    choose_some_ranks(c, count_that_fit(room, c->per_step * steps, scope->n_ranks));
  if (scope->n_steps < 2 || estimate_events(c, steps, scope->n_ranks) <= room)
    return;
  u32 fit = count_that_fit(room, c->per_step * scope->n_ranks, scope->n_steps);
  u32 first = c->model->steps.first;
  if (scope->request.steps_requested) {
    u32 left = scope->n_steps - fit, at = first + scope->steps[fit].step;
    scope->n_steps = fit;
    leave_out(c,
              "The last %u of the %u steps, from step %u on, are left out because they do not fit.",
              left, steps, at);
    return;
  }
  struct shown_step kept[2];
  u32 n_kept = 0;
  for (u32 i = 0; i < scope->n_steps && n_kept < fit; i++)
    if (scope->steps[i].why == SHOWN_SLOWEST || (fit > 1 && scope->steps[i].why != SHOWN_MEDIAN))
      kept[n_kept++] = scope->steps[i];
  scope->n_steps = n_kept;
  memcpy(scope->steps, kept, n_kept * sizeof(*kept));
}

/* Without steps: the end of the run is cut off if it is too long. */
static void cut_run(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  scope->begin = c->model->begin;
  scope->end = c->model->end;
  double events = estimate_events(c, 1, scope->n_ranks);
  if (events <= scope->request.most_events || scope->end <= scope->begin)
    return;
  double share = scope->request.most_events / events;
  double all = (double)scope->end - (double)scope->begin;
  scope->end = scope->begin + (i64)(all * share);
  leave_out(
      c,
      "No steps were found, and the whole run does not fit: the first %.3g s of %.3g s are shown.",
      all * share / 1e9, all / 1e9);
}

/* From the first begin to the last end of what is shown. */
static void find_bounds(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  bool any = false;
  FOR_EACH(scope->steps, scope->n_steps, step)
    FOR_EACH(scope->ranks, scope->n_ranks, rank) {
      struct window window;
      if (!analysis_window(c->results->analysis, *rank, step->step, &window))
        continue;
      scope->begin = any ? MIN(window.begin, scope->begin) : window.begin;
      scope->end = any ? MAX(window.end, scope->end) : window.end;
      any = true;
    }
}

/* Whether anything was recorded of the ranks shown before the first step shown, or after the last.
 */
static bool outside_steps(const struct choosing *c) {
  const struct shown_scope *scope = c->scope;
  for (u32 i = 0; scope->n_steps && i < scope->n_ranks; i++) {
    const struct rank *rank = &c->model->ranks[scope->ranks[i]];
    if (rank->begin < scope->begin || rank->end > scope->end)
      return true;
  }
  return false;
}

static void describe_left_out(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  u32 n = c->model->n_ranks, steps = c->model->steps.n;
  if (scope->n_ranks < n)
    leave_out(c,
              scope->request.ranks ? "Of %u ranks, the %u selected ones are shown."
                                   : "Of %u ranks, %u are shown, including those named by "
                                     "findings; --ranks selects others.",
              n, scope->n_ranks);
  if (!scope->request.steps_requested && scope->n_steps && scope->n_steps < steps) {
    const char *list = "";
    FOR_EACH(scope->steps, scope->n_steps, one)
      list = arena_list(&scope->arena, list, ", ", "%u (%s)", c->model->steps.first + one->step,
                        shown_reason_words[one->why]);
    leave_out(c, "Of %u steps, %u %s shown: %s; --steps selects others.", steps, scope->n_steps,
              scope->n_steps == 1 ? "is" : "are", list);
  }
  if (outside_steps(c))
    leave_out(c, "What ran before the first step shown, or after the last, is not shown.");
  u32 incomplete =
      NUMBER_OF(c->model->ranks, n, rank, ANY(rank->lost, TSCOPE_LOSS_REASONS, lost, *lost > 0));
  if (incomplete)
    leave_out(c, "%s lost some events while recording.", plural(incomplete, "rank").text);
}

/* The path needs all ranks, also those that are not shown; one step is walked however large. */
static void choose_paths(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  const struct results *r = c->results;
  scope->path_reason = r->path_reason;
  if (!scope->path_reason && c->model->timelines->unreachable)
    scope->path_reason = "it needs the traces of all ranks, and this report is from summaries";
  u32 ahead =
      r->host_ahead_max_steps > 0 ? (u32)fmin(r->host_ahead_max_steps + 1, MOST_STEPS_AHEAD) : 0;
  double each = c->per_step * c->model->n_ranks;
  u32 n = MAX(scope->n_steps, 1);
  scope->path_lead = each * (ahead + 1) <= PATH_EVENTS ? ahead : 0;
  scope->path_steps = count_that_fit(PATH_EVENTS, each * (scope->path_lead + 1), n);
  if (scope->path_reason || scope->path_steps == n)
    return;
  leave_out(c,
            "The critical path is drawn through the first %u of the %u steps shown: the others do "
            "not fit into memory.",
            scope->path_steps, n);
}

static void choose_from_timelines(struct choosing *c) {
  struct shown_scope *scope = c->scope;
  u32 n = c->model->n_ranks;
  scope->ranks = arena_array(&scope->arena, n, sizeof(u32));
  c->wanted = arena_array(&scope->arena, n, sizeof(bool));
  c->per_step = events_per_step(c->model);
  u32 most = scope->request.most_ranks ? MIN(scope->request.most_ranks, n) : n;
  if (scope->request.ranks)
    choose_requested_ranks(c);
  else
    choose_some_ranks(c, most);
  bool all = estimate_events(c, c->model->steps.n, scope->n_ranks) <=
             fmin(scope->request.all_steps, scope->request.most_events);
  choose_steps(c, all);
  fit_into_limit(c);
  if (scope->n_steps == 0)
    cut_run(c);
  else
    find_bounds(c);
  choose_paths(c);
  describe_left_out(c);
}

/* Recordings with a clock of their own cannot be shown beside timelines. */
static void describe_other_clocks(struct choosing *c) {
  if (c->model->flight)
    leave_out(c, "The flight recorder's calls use another clock than the timelines: give only the "
                 "dumps to see them.");
  if (ANY(c->model->memories, c->model->n_memories, one, !one->on_axis))
    leave_out(c, "Memory snapshots use another clock than the timelines: give only the snapshots "
                 "to see memory over time.");
}

static enum shown_source source_of(const struct results *results) {
  const struct flight_record *flight = results->check.flight;
  if (!results->analysis)
    return SHOWN_NOTHING;
  if (results->model->timelines && results->model->n_ranks)
    return SHOWN_TIMELINES;
  if (flight && flight->n_calls)
    return SHOWN_RECORDED_CALLS;
  if (results->model->n_memories)
    return SHOWN_MEMORIES;
  return results->model->n_scalars ? SHOWN_SCALARS : SHOWN_NOTHING;
}

void shown_choose(const struct results *results, const struct shown_request *request,
                  struct shown_scope *scope) {
  *scope =
      (struct shown_scope){.results = results, .request = *request, .source = source_of(results)};
  struct choosing c = {.scope = scope, .results = results, .model = results->model};
  if (scope->source == SHOWN_TIMELINES) {
    choose_from_timelines(&c);
    describe_other_clocks(&c);
  } else {
    choose_recorded(scope);
    scope->path_reason = "the input has no timelines";
  }
  scope->n_left_out = c.left_out.n;
  scope->left_out = VECTOR_KEPT(&c.left_out, &scope->arena);
  free(c.left_out.at);
}

void shown_release(struct shown_scope *scope) {
  arena_release(&scope->arena);
}
