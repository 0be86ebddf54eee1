/* SPDX-License-Identifier: MIT
 *
 * Which what-ifs are asked, and their results over the sampled steps.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyses/lines/lines.h"
#include "analyses/path/path_graph.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"

#define MAX_RANK_EDITS 3u
#define MAX_LINE_EDITS 3u
#define MAX_STAGE_EDITS 4u

/* The rank that costs its peers most and has no edit yet, INDEX_NONE if none does. */
static u32 costliest_rank(const struct analysis *a, bool stragglers_only) {
  const struct results *r = a->results;
  u32 worst = INDEX_NONE;
  double most = 0;
  for (u32 i = 0; i < r->n_ranks; i++) {
    bool taken = false;
    for (u32 k = 0; k < a->graph->n_edits; k++)
      taken |= a->graph->edits[k].rank == (i64)i ||
               (a->graph->edits[k].group && a->graph->edits[k].group[i]);
    if (taken || (stragglers_only && !r->ranks[i].straggler) ||
        !(r->ranks[i].imposed_wait_ms > most))
      continue;
    worst = i;
    most = r->ranks[i].imposed_wait_ms;
  }
  return worst;
}

static bool same_host(const struct model *model, u32 one, u32 other) {
  const char *a = model->ranks[one].host, *b = model->ranks[other].host;
  return a && b && strcmp(a, b) == 0;
}

/* A straggler, or all stragglers of its host, if the job has others: what slows a host slows its
 * ranks together, and taking it from one of them alone saves nothing. */
static int choose_straggler(struct analysis *a, u32 worst) {
  const struct model *model = a->model;
  struct edit edit = {.rank = worst, .stage = -1};
  bool others = false;
  bool *group = arena_array(a->arena, model->n_ranks + 1u, sizeof(bool));
  if (!group)
    return -ENOMEM;
  for (u32 i = 0; i < model->n_ranks; i++) {
    group[i] = i == worst || (a->results->ranks[i].straggler && same_host(model, worst, i));
    edit.n_group += group[i];
    others |= !same_host(model, worst, i);
  }
  if (others && edit.n_group > 1)
    edit.group = group;
  a->graph->edits[a->graph->n_edits++] = edit;
  return 0;
}

static bool is_taken(const struct graph *graph, i64 stage) {
  for (u32 i = 0; i < graph->n_edits; i++)
    if (graph->edits[i].stage == stage)
      return true;
  return false;
}

/* The stages of a pipeline that wait least: for one of them the others wait. */
static int choose_stages(struct analysis *a) {
  const struct results *r = a->results;
  for (u32 chosen = 0; chosen < MAX_STAGE_EDITS && chosen < r->n_pipeline_stage; chosen++) {
    const struct pipeline_stage *best = NULL;
    for (u32 i = 0; i < r->n_pipeline_stage; i++) {
      const struct pipeline_stage *stage = &r->pipeline_stage[i];
      if (stage->n_ranks && !is_taken(a->graph, i) && (!best || stage->bubble_ms < best->bubble_ms))
        best = stage;
    }
    bool *group = arena_array(a->arena, a->model->n_ranks + 1u, sizeof(bool));
    if (!group)
      return -ENOMEM;
    if (!best)
      return 0;
    for (u32 i = 0; i < a->model->n_ranks; i++)
      for (u32 k = 0; k < best->n_ranks; k++)
        group[i] |= best->ranks[k] == a->model->ranks[i].rank;
    a->graph->edits[a->graph->n_edits++] = (struct edit){
        .rank = NO_RANK, .group = group, .n_group = best->n_ranks, .stage = best->stage};
  }
  return 0;
}

/* The lines at which the host waits longest for the GPU. */
static void choose_lines(struct analysis *a) {
  const struct lines_result *lines = &a->results->lines;
  struct graph *graph = a->graph;
  for (u32 chosen = 0; chosen < MAX_LINE_EDITS && graph->n_edits < MAX_EDITS; chosen++) {
    u32 best = INDEX_NONE;
    for (u32 i = 0; i < lines->n_at; i++) {
      bool taken = false;
      for (u32 k = 0; k < graph->n_edits; k++)
        taken |= graph->edits[k].free_line && graph->edits[k].line == i;
      if (!taken && lines->at[i].idle_ms > 0 &&
          (best == INDEX_NONE || lines->at[i].idle_ms > lines->at[best].idle_ms))
        best = i;
    }
    if (best == INDEX_NONE)
      return;
    graph->edits[graph->n_edits++] = (struct edit){
        .rank = NO_RANK,
        .stage = -1,
        .free_line = line_key(lines->at[best].file,
                              isnan(lines->at[best].line) ? 0 : (u32)lines->at[best].line,
                              lines->at[best].function),
        .line = best};
  }
}

int what_if_choose(struct analysis *a) {
  struct graph *graph = a->graph;
  bool any_phases = false, any_gpu = false, any_comm = false;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    any_phases |= a->ranks[i].data > 0;
    any_gpu |= a->ranks[i].on_gpu;
    any_comm |= a->ranks[i].all.comm > 0;
  }
  u32 rank;
  int error = 0;
  while (!error && graph->n_edits < MAX_RANK_EDITS &&
         (rank = costliest_rank(a, true)) != INDEX_NONE)
    error = choose_straggler(a, rank);
  if (!error && graph->n_edits == 0 && (rank = costliest_rank(a, false)) != INDEX_NONE)
    error = choose_straggler(a, rank);
  if (!error)
    error = choose_stages(a);
  if (a->model->n_ranks > 1)
    graph->edits[graph->n_edits++] = (struct edit){.rank = EVERY_RANK, .stage = -1};
  if (any_comm)
    graph->edits[graph->n_edits++] =
        (struct edit){.rank = NO_RANK, .stage = -1, .free_communication = true};
  if (any_gpu)
    graph->edits[graph->n_edits++] =
        (struct edit){.rank = NO_RANK, .stage = -1, .free_launches = true};
  if (any_phases)
    graph->edits[graph->n_edits++] =
        (struct edit){.rank = NO_RANK, .stage = -1, .free_input = true};
  choose_lines(a);
  return error;
}

static enum what_if_kind kind_of(const struct edit *edit) {
  return edit->stage >= 0           ? WHAT_IF_STAGE
         : edit->rank >= 0          ? WHAT_IF_RANK
         : edit->rank == EVERY_RANK ? WHAT_IF_EVERY_RANK
         : edit->free_communication ? WHAT_IF_COMMUNICATION
         : edit->free_launches      ? WHAT_IF_LAUNCHES
         : edit->free_line          ? WHAT_IF_LINE
                                    : WHAT_IF_INPUT;
}

static char *describe(struct analysis *a, const struct edit *edit) {
  switch (kind_of(edit)) {
  case WHAT_IF_STAGE:
    return arena_printf(a->arena, "stage %u as fast as the others", (u32)edit->stage);
  case WHAT_IF_RANK:
    if (edit->group)
      return arena_printf(a->arena, "%u ranks on %s as fast as their peers", edit->n_group,
                          a->model->ranks[edit->rank].host);
    return arena_printf(a->arena, "rank %u as fast as its peers", a->model->ranks[edit->rank].rank);
  case WHAT_IF_EVERY_RANK:
    return arena_text(a->arena, "every rank as fast as the median");
  case WHAT_IF_COMMUNICATION:
    return arena_text(a->arena, "communication takes no time");
  case WHAT_IF_LAUNCHES:
    return arena_text(a->arena, "no launch gaps");
  case WHAT_IF_LINE:
    return arena_printf(a->arena, "no wait at %s", a->results->lines.at[edit->line].place);
  default:
    return arena_text(a->arena, "input always ready");
  }
}

/* The least time that a step takes, whatever the edit: compute and copies of ranks that the edit
 * does not change. The replay is of samples, and their mean may differ from that of all steps. */
static double unchanged_ms(const struct analysis *a, const struct edit *edit) {
  double most = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    bool edited = edit->group ? edit->group[i] : edit->rank == EVERY_RANK || edit->rank == (i64)i;
    if (!edited && rank->steps && rank->has_compute)
      most = fmax(most, ns_to_ms(rank->compute + rank->exposed_memcpy) / rank->steps);
  }
  return most;
}

static const char *why_unreliable(struct analysis *a, double contradictions) {
  const struct results *r = a->results;
  if (fabs(r->path_selfcheck) > REPLAY_TOLERANCE)
    return arena_printf(
        a->arena, "a replay of the steps without changes differs by %+.1f %% from the measurement",
        100 * r->path_selfcheck);
  if (contradictions > 0)
    return arena_printf(a->arena, "%.0f dependencies contradict each other", contradictions);
  for (u32 i = 0; i < r->n_path_by_category; i++)
    if (i == PATH_UNKNOWN && r->path_by_category[i].ms > PATH_UNKNOWN_LIMIT * r->path_length_ms)
      return arena_printf(a->arena, "%.0f %% of the critical path has no recorded reason",
                          100 * r->path_by_category[i].ms / r->path_length_ms);
  return NULL;
}

int what_if_report(struct analysis *a) {
  struct results *r = a->results;
  const struct graph *graph = a->graph;
  double replayed = 0, measured = 0, contradictions = 0;
  if (r->path_steps_used == 0) {
    r->what_if_reason = r->path_reason;
    return 0;
  }
  r->what_if = arena_array(a->arena, MAX_EDITS, sizeof(*r->what_if));
  if (!r->what_if)
    return -ENOMEM;
  for (u32 i = 0; i < graph->n_samples; i++) {
    replayed += (double)graph->outcomes[i].replayed;
    measured += (double)graph->outcomes[i].measured;
    contradictions += (double)graph->outcomes[i].contradictions;
  }
  r->path_selfcheck = replayed / measured - 1;
  r->what_if_reason = why_unreliable(a, contradictions);
  double now_ms = a->whole_run ? r->path_length_ms : r->step_mean_ms;
  for (u32 e = 0; e < graph->n_edits; e++) {
    i64 saved = 0;
    for (u32 i = 0; i < graph->n_samples; i++)
      saved += graph->outcomes[i].saved[e];
    double saved_ms = ns_to_ms(saved) / r->path_steps_used;
    double most_ms = fmax(0, now_ms - unchanged_ms(a, &graph->edits[e]));
    saved_ms = fmax(0, fmin(saved_ms, most_ms));
    struct what_if *what_if = &r->what_if[r->n_what_if++];
    what_if->kind = kind_of(&graph->edits[e]);
    what_if->change = describe(a, &graph->edits[e]);
    what_if->step_ms = now_ms - saved_ms;
    what_if->saving_fraction = saved_ms / now_ms;
    what_if->rank = -1;
    if (graph->edits[e].rank >= 0)
      what_if->rank = a->model->ranks[graph->edits[e].rank].rank;
    if (graph->edits[e].stage >= 0)
      what_if->rank = graph->edits[e].stage;
    if (graph->edits[e].free_line && !r->what_if_reason)
      r->lines.at[graph->edits[e].line].without_ms = what_if->step_ms;
    if (!what_if->change)
      return -ENOMEM;
  }
  return 0;
}
