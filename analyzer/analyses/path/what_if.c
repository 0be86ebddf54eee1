/* SPDX-License-Identifier: MIT
 *
 * Which changes are tried in the replay, and what each saves. What causes a delay together is taken
 * away together: the slow ranks of a host, a pipeline's stage, ranks that are equally slow.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_graph.h"
#include "analyses/path/path_replay.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/sorting.h"

enum {
  MOST_ROWS = 24, /* more than are ever added */
  RANKS_TRIED = 3,
  LINES_TRIED = 3,
  STAGES_TRIED = 4,
  EQUALS_TRIED = 8 /* ranks that may be slow together without being neighbours */
};

#define OUTSIDE_SHOWN 0.01 /* of a step, on the host in no phase */

/* A row of the table that is not yet replayed; `ranks` is NULL if the change is not about some. */
static struct what_if *add_row(struct analysis *a, enum what_if_kind kind, enum change_kind change,
                               u32 which, const bool *ranks) {
  struct results *r = a->results;
  /* Forward passes that the job does not mark stay. */
  double left = change == CHANGE_OUTSIDE ? lines_unmarked_training(a) : 0;
  struct what_if *row = &r->what_if[r->n_what_if++];
  *row = (struct what_if){
      .kind = kind,
      .rank = -1,
      .cure = cure_by(
          a, (struct cure_change){.kind = change, .which = which, .ranks = ranks, .left = left})};
  return row;
}

/* The rank that costs its peers most, INDEX_NONE if none does. */
static u32 costliest_rank(const struct analysis *a) {
  const struct results *r = a->results;
  const struct rank_result *worst =
      LARGEST(r->ranks, r->n_ranks, one, one->imposed_wait_ms > 0 && a->ranks[one - r->ranks].steps,
              one->imposed_wait_ms);
  return worst ? (u32)(worst - r->ranks) : INDEX_NONE;
}

/* "rank 3", "2 ranks on node7", "ranks 1, 5", as fast as their peers */
static const char *describe_group(struct analysis *a, const bool *group, u32 first, u32 n) {
  const struct model *model = a->model;
  const char *host = model_host_of(model, group);
  if (n == 1)
    return say(a, "rank %u as fast as its peers", model->ranks[first].rank);
  if (host)
    return say(a, "%u ranks on %s as fast as their peers", n, host);
  u32 *ranks = arena_array(a->arena, n, sizeof(u32));
  LIST_WHERE(ranks, 0, model->n_ranks, i, group[i], model->ranks[i].rank);
  return say(a, "%s as fast as their peers", ranks_in(a->arena, ranks, n));
}

static void add_ranks(struct analysis *a, const bool *group, u32 first, u32 n) {
  struct what_if *row = add_row(a, WHAT_IF_RANK, CHANGE_RANKS, 0, group);
  row->rank = a->model->ranks[first].rank;
  row->change = describe_group(a, group, first, n);
}

static void add_one_rank(struct analysis *a, u32 rank) {
  bool *alone = arena_array(a->arena, a->model->n_ranks, sizeof(bool));
  alone[rank] = true;
  add_ranks(a, alone, rank, 1);
}

/* Without a straggler, the rank that comes closest to one, and that on which the path lies: others
 * may wait for it elsewhere than in collectives. */
static void add_late_ranks(struct analysis *a) {
  const struct results *r = a->results;
  u32 costliest = costliest_rank(a), of_path = rank_of_path(r);
  for (u32 i = 0; i < r->n_straggler_groups && i < RANKS_TRIED; i++) {
    const struct straggler_group *group = &r->straggler_groups[i];
    if (a->ranks[group->worst].steps)
      add_ranks(a, group->ranks, group->worst, group->n);
  }
  if (r->n_straggler_groups)
    return;
  if (costliest != INDEX_NONE)
    add_one_rank(a, costliest);
  if (of_path != INDEX_NONE && of_path != costliest)
    add_one_rank(a, of_path);
}

/* The stages of a pipeline that wait least: for one of them the others wait. */
static void add_stages(struct analysis *a) {
  const struct results *r = a->results;
  bool *tried = arena_array(a->arena, r->n_pipeline_stage, sizeof(bool));
  for (u32 n = 0; n < STAGES_TRIED && n < r->n_pipeline_stage; n++) {
    const struct pipeline_stage *best =
        LARGEST(r->pipeline_stage, r->n_pipeline_stage, one,
                one->n_ranks && !tried[one - r->pipeline_stage], -one->bubble_ms);
    if (!best)
      return;
    tried[best->stage] = true;
    struct what_if *row =
        add_row(a, WHAT_IF_STAGE, CHANGE_RANKS, 0, mark_ranks(a, best->ranks, best->n_ranks));
    row->rank = best->stage;
    row->change = say(a, "stage %u as fast as the others", best->stage);
  }
}

/* Stages of which each alone would have to wait for the others: those that wait about as little as
 * the one that waits least, where most wait longer. */
static void add_stages_together(struct analysis *a) {
  const struct results *r = a->results;
  u32 n = r->n_pipeline_stage, stages = 0;
  double *waits = arena_array(a->arena, n, sizeof(*waits));
  u32 *numbers = arena_array(a->arena, n, sizeof(*numbers));
  bool *in = arena_array(a->arena, a->model->n_ranks, sizeof(*in));
  if (LIST_KNOWN(waits, 0, n, i, r->pipeline_stage[i].bubble_ms) < n || n < 4)
    return;
  SORT(waits, n, by_double);
  double least = waits[0], most = (least + waits[n / 2]) / 2;
  FOR_EACH(r->pipeline_stage, n, one) {
    if (one->bubble_ms >= most)
      continue;
    numbers[stages++] = one->stage;
    const bool *its = mark_ranks(a, one->ranks, one->n_ranks);
    for (u32 i = 0; i < a->model->n_ranks; i++)
      in[i] |= its[i];
  }
  if (stages < 2 || 2 * stages > n)
    return;
  struct what_if *row = add_row(a, WHAT_IF_STAGES, CHANGE_RANKS, 0, in);
  row->change = say(a, "stages %s as fast as the others", rank_list_in(a->arena, numbers, stages));
}

/* The lines at which the host waits longest for the GPU. */
static void add_lines(struct analysis *a) {
  const struct lines_result *lines = &a->results->lines;
  bool *tried = arena_array(a->arena, lines->n_at, sizeof(bool));
  for (u32 n = 0; n < LINES_TRIED; n++) {
    const struct line_result *line = LARGEST(
        lines->at, lines->n_at, one, !tried[one - lines->at] && one->idle_ms > 0, one->idle_ms);
    if (!line)
      return;
    tried[line - lines->at] = true;
    struct what_if *row = add_row(
        a, WHAT_IF_LINE, CHANGE_LINE,
        line_key(line->file, isnan(line->line) ? 0 : (u32)line->line, line->function), NULL);
    row->rank = line - lines->at;
    row->change = say(a, "no wait at %s", line->place);
  }
}

static void choose_rows(struct analysis *a) {
  const struct results *r = a->results;
  bool away = r->path_by_category[PATH_GPU_AWAY].ms >= WORTH_MENTIONING * r->path_length_ms;
  bool outside = r->other_ms >= OUTSIDE_SHOWN * r->step_mean_ms, input = false, gpu = false,
       comm = false;
  FOR_EACH(a->ranks, a->model->n_ranks, each) {
    input |= each->data > 0;
    gpu |= each->on_gpu;
    comm |= each->all.comm > 0;
  }
  const struct {
    enum what_if_kind kind;
    enum change_kind change;
    bool applies;
    const char *text;
  } whole[] = {
      {WHAT_IF_EVERY_RANK, CHANGE_EVERY_RANK, a->model->n_ranks > 1,
       "every rank as fast as the median"},
      {WHAT_IF_COMMUNICATION, CHANGE_COMMUNICATION, comm, "communication takes no time"},
      {WHAT_IF_LAUNCHES, CHANGE_LAUNCHES, gpu, "no launch gaps"},
      {WHAT_IF_GPU_AWAY, CHANGE_GPU_AWAY, away, "the GPU always there"},
      {WHAT_IF_INPUT, CHANGE_INPUT, input, "input always ready"},
      {WHAT_IF_OUTSIDE, CHANGE_OUTSIDE, outside, "nothing outside the phases"},
  };
  add_late_ranks(a);
  add_stages(a);
  add_stages_together(a);
  FOR_EACH(whole, LENGTH_OF(whole), one) {
    if (!one->applies)
      continue;
    add_row(a, one->kind, one->change, 0, NULL)->change = one->text;
  }
  add_lines(a);
}

/* How much of the ranks' time is in collectives whose other members have clocks that are not on the
 * axis: they take as long in a replay whatever these do. */
static double share_with_nobody(const struct analysis *a) {
  const struct model *model = a->model;
  double alone = 0, all = 0;
  FOR_EACH(a->graph->joined, a->graph->n_samples, g) {
    FOR_EACH(g->joins, g->n_joins, join) {
      const struct node *node = &g->nodes[g->members[join->first]];
      bool known = node->kind == NODE_COLLECTIVE && node->arrival != INDEX_NONE;
      u32 collective = known ? model->arrivals[node->arrival].collective : INDEX_NONE;
      if (join->n == 1 && collective != INDEX_NONE && model->collectives[collective].n_arrivals > 1)
        alone += (double)(node->end - node->start);
    }
    FOR_EACH(g->slices, g->n_ranks, slice)
      all += slice->present ? (double)(slice->end - slice->begin) : 0;
  }
  return all > 0 ? alone / all : 0;
}

/* How much of the ranks' time may be waiting in messages of which the recording does not say whose
 * they are: by what they take longer than the shortest of the same name. A replay keeps that. */
static double share_with_unknown(const struct analysis *a) {
  double waits = 0, all = 0;
  FOR_EACH(a->graph->joined, a->graph->n_samples, g) {
    SCOPED i64 *shortest = memory_array(size_sum(g->n_keys, 1), sizeof(*shortest));
    FILL(shortest, g->n_keys, INT64_MAX);
    for (u32 pass = 0; pass < 2; pass++)
      for (u32 n = 0; n < g->n; n++) {
        const struct node *node = &g->nodes[n];
        i64 ns = node->end - node->start;
        if (node->kind != NODE_COLLECTIVE || node->cut || joins_others(g, n))
          continue;
        shortest[node->key] = MIN(ns, shortest[node->key]);
        waits += pass ? (double)(ns - shortest[node->key]) : 0;
      }
    FOR_EACH(g->slices, g->n_ranks, slice)
      all += slice->present ? (double)(slice->end - slice->begin) : 0;
  }
  return all > 0 ? waits / all : 0;
}

/* `not_launched`: of the GPUs' work, of which it is not known what launched it: a replay keeps what
 * that waited for as it was. */
static const char *why_unreliable(struct analysis *a, double contradictions, double not_launched) {
  const struct results *r = a->results;
  double unknown_ms = r->path_by_category[PATH_UNKNOWN].ms;
  double with_unknown = a->model->n_ranks > 1 ? share_with_unknown(a) : 0;
  double with_nobody = model_all_aligned(a->model) ? 0 : share_with_nobody(a);
  if (!(r->path_length_ms > 0))
    return "the critical path explains none of the steps";
  if (fabs(r->path_selfcheck) > REPLAY_TOLERANCE)
    return say(a, "a replay of the steps without changes differs by %+.1f %% from the measurement",
               100 * r->path_selfcheck);
  if (with_nobody >= WORTH_MENTIONING)
    return say(a, "%s of the time is in collectives with ranks whose clocks are not aligned",
               percent(with_nobody).text);
  if (with_unknown >= WORTH_MENTIONING)
    return say(a,
               "%s of the time may be waiting in messages, and the recording does not say between "
               "which ranks they are",
               percent(with_unknown).text);
  if (contradictions > 0)
    return say(a, "%.0f dependencies contradict each other", contradictions);
  if (unknown_ms > PATH_UNKNOWN_LIMIT * r->path_length_ms)
    return say(a, "%s of the critical path has no recorded reason",
               percent(unknown_ms / r->path_length_ms).text);
  if (not_launched > PATH_UNKNOWN_LIMIT)
    return say(a, "of %s of the GPUs' work it is not recorded what launched it",
               percent(not_launched).text);
  return NULL;
}

const char *what_if_unreliable(struct analysis *a) {
  const struct graph *graph = a->graph;
  double replayed = 0, measured = 0, contradictions = 0, on_gpus = 0, not_launched = 0;
  FOR_EACH(graph->outcomes, graph->n_samples, out) {
    replayed += (double)out->replayed;
    measured += (double)out->measured;
    contradictions += (double)out->contradictions;
    on_gpus += (double)out->on_gpus;
    not_launched += (double)out->not_launched;
  }
  a->results->path_selfcheck = replayed / measured - 1;
  return why_unreliable(a, contradictions, on_gpus > 0 ? not_launched / on_gpus : 0);
}

/* A host that is ahead has work queued that a shorter step would use up: then the host itself may
 * be the limit. Rows of steps that are over before do not show that, and promise too much; what
 * saves nothing there saves nothing. */
static const char *why_too_much(struct analysis *a) {
  const struct graph *graph = a->graph;
  double ahead = a->results->host_ahead_max_steps;
  if (!a->model->steps.times || !(ahead >= 1) ||
      ANY(graph->samples, graph->n_samples, row, row->n >= STEPS_IN_A_ROW))
    return NULL;
  return say(a,
             "hosts are up to %s ahead of their GPUs, and there are no %u steps in a row "
             "whose collectives have times, which would show how long that lasts",
             plural(round(ahead), "step").text, STEPS_IN_A_ROW);
}

/* Replays the rows from `first` on. */
static void fill_rows(struct analysis *a, u32 first) {
  struct results *r = a->results;
  struct cure cures[MOST_ROWS];
  struct saving savings[MOST_ROWS];
  double now_ms = analysis_length_ms(a);
  for (u32 i = first; i < r->n_what_if; i++)
    cures[i] = r->what_if[i].cure;
  replay_savings(a, &cures[first], r->n_what_if - first, false, &savings[first]);
  for (u32 i = first; i < r->n_what_if; i++) {
    struct what_if *row = &r->what_if[i];
    row->saving = savings[i];
    row->step_ms = fmax(0, now_ms - row->saving.ms);
    row->saving_fraction = row->saving.ms / now_ms;
    row->saving_low = row->saving.low_ms / now_ms;
    row->saving_high = row->saving.high_ms / now_ms;
  }
}

struct slow_rank {
  u32 rank;
  double excess_ms;
};

ORDER_BY(slower_first, struct slow_rank, DOWN(excess_ms) UP(rank))

/* Ranks that have more work than their peers, most first: the fewest without which a step saves
 * nearly what it would save if all ranks were equal. One alone is in a row already. */
static void find_equals(struct analysis *a, double all_ms) {
  u32 n_ranks = a->model->n_ranks, tried = MIN(n_ranks / 2, EQUALS_TRIED);
  struct slow_rank *slow = arena_array(a->arena, n_ranks, sizeof(*slow));
  double *excess = arena_array(a->arena, n_ranks, sizeof(double));
  struct cure_change changes[EQUALS_TRIED];
  struct cure cures[EQUALS_TRIED];
  struct saving savings[EQUALS_TRIED];
  replay_excess(a, excess);
  for (u32 i = 0; i < n_ranks; i++)
    slow[i] = (struct slow_rank){i, excess[i]};
  SORT(slow, n_ranks, slower_first);
  for (u32 n = 0; n < tried; n++) {
    bool *group = arena_array(a->arena, n_ranks, sizeof(bool));
    for (u32 i = 0; i <= n; i++)
      group[slow[i].rank] = true;
    changes[n] = (struct cure_change){.kind = CHANGE_RANKS, .ranks = group};
    cures[n] = (struct cure){&changes[n], 1};
  }
  replay_savings(a, cures, tried, false, savings);
  for (u32 n = 0; n < tried; n++) {
    if (!(savings[n].ms >= EQUALS_SHARE * all_ms))
      continue;
    add_ranks(a, changes[n].ranks, slow[0].rank, n + 1);
    fill_rows(a, a->results->n_what_if - 1);
    return;
  }
}

/* What a step saves if every rank is as fast as the median. */
static double saved_by_all(const struct results *r) {
  const struct what_if *row = FIND(r->what_if, r->n_what_if, one, one->kind == WHAT_IF_EVERY_RANK);
  return row ? row->saving.ms : 0;
}

/* If equal ranks would save much and no rank or stage named so far does: ranks that act together.
 */
static void add_equals(struct analysis *a) {
  const struct results *r = a->results;
  double all_ms = saved_by_all(r), named_ms = 0;
  FOR_EACH(r->what_if, r->n_what_if, row)
    named_ms = row->cure.changes->ranks ? fmax(named_ms, row->saving.ms) : named_ms;
  if (!(all_ms >= WORTH_MENTIONING * r->step_mean_ms) || named_ms >= all_ms / 2)
    return;
  find_equals(a, all_ms);
}

/* How much of the exposed communication goes if all ranks come together. */
static void find_exposed_late(struct analysis *a, double all_ms) {
  const struct cure_change together = {.kind = CHANGE_EVERY_RANK};
  struct results *r = a->results;
  struct saving saving = {.hidden_ms = NAN};
  if (all_ms >= LATE_LEAST * r->step_mean_ms && r->ov_comm_ms > 0)
    replay_savings(a, &(struct cure){&together, 1}, 1, true, &saving);
  r->ov_exposed_late_ms = isnan(saving.hidden_ms) ? NAN : fmin(saving.hidden_ms, r->ov_exposed_ms);
}

void what_if_analyse(struct analysis *a) {
  struct results *r = a->results;
  if (r->path_reason) {
    r->what_if_reason = r->path_reason;
    return;
  }
  r->what_if = arena_array(a->arena, MOST_ROWS, sizeof(*r->what_if));
  const char *unreliable = what_if_unreliable(a);
  unreliable = unreliable ? unreliable : why_too_much(a);
  choose_rows(a);
  fill_rows(a, 0);
  if (!unreliable) {
    add_equals(a);
    find_exposed_late(a, saved_by_all(r));
  }
  r->what_if_reason = unreliable; /* from here on nothing is promised */
}
