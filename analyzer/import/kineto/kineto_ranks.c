/* SPDX-License-Identifier: MIT
 *
 * Which trace belongs to which rank.
 */

#include "base/each.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/kineto/kineto.h"

/* The one rank that is in every process group a trace names; INDEX_NONE if several are. */
static u32 rank_in_groups(const struct kineto_trace *trace) {
  const struct kineto_group *first = NULL;
  u32 found = INDEX_NONE, candidates = 0;
  FOR_EACH(trace->groups.at, trace->groups.n, each)
    if (each->n_members && (!first || each->n_members < first->n_members))
      first = each;
  for (u32 i = 0; first && i < first->n_members; i++) {
    bool everywhere = true;
    for (u32 g = 0; g < trace->groups.n && everywhere; g++) {
      const struct kineto_group *group = &trace->groups.at[g];
      everywhere = !group->n_members ||
                   ANY(group->members, group->n_members, one, *one == first->members[i]);
    }
    if (everywhere && candidates++ == 0)
      found = first->members[i];
  }
  return candidates == 1 ? found : INDEX_NONE;
}

/* The number after "rank" or "worker" in a file's name. */
static u32 rank_in_name(const char *path) {
  const char *name = last_part(path);
  u32 said = rank_said_by_name(name);
  const char *worker = strcasestr(name, "worker");
  if (said != INDEX_NONE || !worker)
    return said;
  worker += strlen("worker");
  worker += strspn(worker, "_-.");
  const char *end;
  u64 rank = leading_number(worker, KINETO_MOST_RANKS, &end);
  return end > worker && rank < KINETO_MOST_RANKS ? (u32)rank : INDEX_NONE;
}

static bool is_used(const struct kineto_traces *traces, u32 rank) {
  return ANY(traces->at, traces->n, one, one->rank == rank);
}

ORDER_BY(by_rank, struct kineto_trace, UP(rank) DOWN(begin))

/* A rank may have been recorded several times: the last time counts. */
static void drop_earlier(struct import *import, struct kineto_traces *traces) {
  u32 kept = 0;
  for (u32 i = 0; i < traces->n; i++) {
    if (kept && traces->at[kept - 1].rank == traces->at[i].rank) {
      model_note(import->model, "%s is left out: it also has rank %u, and begins no later than %s",
                 traces->at[i].path, traces->at[i].rank, traces->at[kept - 1].path);
      kineto_trace_free(&traces->at[i]);
    } else {
      traces->at[kept++] = traces->at[i];
    }
  }
  traces->n = kept;
}

/* Jobs of other sizes are other jobs, or other starts of one: the last counts. */
static void drop_other_worlds(struct import *import, struct kineto_traces *traces) {
  const struct kineto_trace *last =
      LARGEST(traces->at, traces->n, one, one->world_size, (double)one->begin);
  u32 kept = 0, world = last ? last->world_size : 0;
  const char *path = last ? last->path : NULL;
  for (u32 i = 0; i < traces->n; i++) {
    struct kineto_trace *trace = &traces->at[i];
    if (trace->world_size && trace->world_size != world) {
      model_note(import->model,
                 "%s is left out: its job has %s, and that of %s, which begins no earlier, has %u",
                 trace->path, plural(trace->world_size, "rank").text, path, world);
      kineto_trace_free(trace);
    } else {
      traces->at[kept++] = *trace;
    }
  }
  traces->n = kept;
}

/* A rank that its own world does not have is a mistake of who wrote it. */
static bool is_outside_world(const struct kineto_trace *trace) {
  return trace->world_size && trace->rank != INDEX_NONE && trace->rank >= trace->world_size;
}

void kineto_find_ranks(struct import *import, struct kineto_traces *traces) {
  FOR_EACH_CHANGED(traces->at, traces->n, trace)
    if (is_outside_world(trace))
      trace->rank = INDEX_NONE;
  drop_other_worlds(import, traces);
  FOR_EACH_CHANGED(traces->at, traces->n, trace)
    if (trace->rank == INDEX_NONE)
      trace->rank = rank_in_groups(trace);
  FOR_EACH_CHANGED(traces->at, traces->n, trace)
    if (trace->rank == INDEX_NONE)
      trace->rank = rank_in_name(trace->path);
  for (u32 i = 0, next = 0; i < traces->n; i++) {
    struct kineto_trace *trace = &traces->at[i];
    if (trace->rank != INDEX_NONE)
      continue;
    while (is_used(traces, next))
      next++;
    trace->rank = next;
    if (traces->n > 1) {
      model_note(import->model, "the rank of %s is not known; it is shown as %u", trace->path,
                 next);
    }
  }
  SORT(traces->at, traces->n, by_rank);
  drop_earlier(import, traces);
}
