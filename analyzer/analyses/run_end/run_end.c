/* SPDX-License-Identifier: MIT */
#include "analyses/run_end/run_end.h"
#include "base/sorting.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

/* Launchers kill those that their signal has not ended: torchrun, Slurm and Kubernetes after 30 s.
 */
#define PATIENCE_NS (2 * 1000 * 1000 * 1000ll)

static i64 time_of(const struct ending *ending) {
  return ending->what == ENDING_SILENT ? ending->at : ending->from;
}

ORDER_BY(by_time, struct ending, UP_OF(time_of) UP(global))

static bool traces_record_ends(const struct model *model) {
  return model->n_ranks && ALL(model->ranks, model->n_ranks, one, one->ending.known);
}

/* A file that is older than those of other ranks does not show how its rank ended. */
static void mark_older_files(struct analysis *a, struct endings *endings) {
  const bool *older = model_find_older_files(a->model, a->arena);
  FOR_EACH_CHANGED(endings->at, endings->n, ending) {
    if (ending->what != ENDING_SILENT || !older[ending->rank])
      continue;
    ending->what = ENDING_OLDER;
    ending->why = "its file is older than those of its peers, which then ended collectives that it "
                  "is needed for";
  }
}

static i64 lived_until(const struct rank *rank) {
  const struct rank_end *end = &rank->ending;
  i64 until = rank_alive_until(rank);
  return end->kind != TSCOPE_END_UNSEEN ? MAX(end->end, until) : until;
}

/* A launcher may look at its processes seconds after one of them has ended. If one told meanwhile
 * that it had lost another, and all but one lived on, that one had ended by then. */
static void date_lost_rank(const struct analysis *a, struct endings *endings) {
  const struct rank *ranks = a->model->ranks;
  i64 told = INT64_MAX;
  FOR_EACH(endings->at, endings->n, ending) {
    i64 at = ending->rank == INDEX_NONE ? NS_UNKNOWN : told_loss_at(&ranks[ending->rank].ending);
    told = at == NS_UNKNOWN ? told : MIN(at, told);
  }
  struct ending *gone = NULL;
  u32 n_gone = 0;
  FOR_EACH_CHANGED(endings->at, endings->n, ending) {
    if (ending->rank != INDEX_NONE && lived_until(&ranks[ending->rank]) >= told)
      continue;
    gone = ending;
    n_gone++;
  }
  if (n_gone == 1 && gone->rank != INDEX_NONE && gone->at > told && model_all_aligned(a->model))
    gone->at = told;
}

/* Who is killed long after another was stopped, or interrupted, was to end with that one. */
static void find_killed_late(const struct analysis *a, struct endings *endings) {
  const struct ending *first =
      LARGEST(endings->at, endings->n, one, one->what == ENDING_STOPPED, -(double)one->from);
  if (!first || !model_all_aligned(a->model))
    return;
  FOR_EACH_CHANGED(endings->at, endings->n, ending) {
    ending->killed_late = ending->what == ENDING_OWN && ending->cause == END_SIGNAL &&
                          a->model->ranks[ending->rank].ending.signal == SIGKILL &&
                          ending->from - first->from >= PATIENCE_NS;
    if (ending->killed_late)
      ending->what = ENDING_STOPPED;
  }
}

static void list_endings(struct analysis *a, struct endings *out) {
  const struct model *model = a->model;
  u32 *missing = arena_array(a->arena, model->world_size, sizeof(*missing));
  u32 n = model_missing_ranks(model, missing);
  out->at = arena_array(a->arena, size_sum(model->n_ranks, n), sizeof(*out->at));
  FOR_EACH(missing, n, one)
    out->at[out->n++] = (struct ending){.rank = INDEX_NONE,
                                        .global = *one,
                                        .what = ENDING_NONE,
                                        .from = INT64_MAX,
                                        .at = INT64_MAX,
                                        .cause = END_NO_RECORD,
                                        .why = "it left no record"};
  for (u32 r = 0; r < model->n_ranks; r++)
    ending_of_rank(a, r, &out->at[out->n++]);
  mark_older_files(a, out);
  date_lost_rank(a, out);
  find_killed_late(a, out);
  SORT(out->at, out->n, by_time);
  calls_compare(a, &out->counts);
}

void run_end_analyse(struct analysis *a) {
  struct run_end *end = &a->results->run_end;
  *end = (struct run_end){.ahead_s = NAN, .followed = NAN};
  if (!traces_record_ends(a->model))
    return;
  struct endings *endings = a->endings = arena_alloc(a->arena, sizeof(*endings));
  list_endings(a, endings);
  if (ALL(endings->at, endings->n, one, one->what == ENDING_IN_ORDER))
    end->how = RUN_ENDED_IN_ORDER;
}
