/* SPDX-License-Identifier: MIT */

#include "base/checked_memory.h"
#include "base/parallel.h"
#include "join/joining.h"
#include "model/phase_times.h"
#include "model/rank_timeline.h"

struct measuring {
  struct model *model;
  bool *found; /* [n_ranks] whether the rank gave any evidence */
};

static void add_other(const struct model *model, u32 rank) {
  for (u32 s = 0; s < model->steps.n; s++) {
    size_t cell = cell_of_step(model, s, rank);
    struct phase_times *times = &model->phases[cell];
    if (model->steps.host_begin[cell] == NS_UNKNOWN)
      continue;
    i64 sum = phases_sum(times);
    if (sum != NS_UNKNOWN)
      times->other = model->steps.host_end[cell] - model->steps.host_begin[cell] - sum;
  }
}

/* How many intervals begin in each step. */
static void count_passes(const struct model *model, u32 rank, u8 kind,
                         const struct intervals *set) {
  for (u32 s = 0, i = 0; s < model->steps.n; s++) {
    size_t cell = cell_of_step(model, s, rank);
    struct phase_times *times = &model->phases[cell];
    if (model->steps.host_begin[cell] == NS_UNKNOWN)
      continue;
    while (i < set->n && set->at[i].start < model->steps.host_begin[cell])
      i++;
    if (kind == TSCOPE_PHASE_BACKWARD && i < set->n)
      times->backward_begin = set->at[i].start;
    for (; i < set->n && set->at[i].start < model->steps.host_end[cell]; i++)
      *(kind == TSCOPE_PHASE_DATA      ? &times->batches
        : kind == TSCOPE_PHASE_FORWARD ? &times->forwards
                                       : &times->backwards) += 1;
  }
}

/* Time of one kind in each step. */
static void fill_kind(const struct model *model, u32 rank, u8 kind, const struct intervals *set) {
  u32 cursor = 0;
  for (u32 s = 0; s < model->steps.n; s++) {
    size_t cell = cell_of_step(model, s, rank);
    if (model->steps.host_begin[cell] != NS_UNKNOWN)
      *phase_time_at(&model->phases[cell], kind) = intervals_covered(
          set, &cursor, model->steps.host_begin[cell], model->steps.host_end[cell]);
  }
}

/* Removes from `outer` the intervals of `inner` that lie completely within one of outer's; with
 * `before`, also what is before them there. */
static void remove_nested(struct arena *arena, struct intervals *outer,
                          const struct intervals *inner, bool before) {
  struct intervals nested = {.at = arena_array(arena, inner->n, sizeof(*nested.at))}, rest;
  for (u32 i = 0, k = 0; i < inner->n; i++) {
    while (k < outer->n && outer->at[k].end < inner->at[i].end)
      k++;
    if (k < outer->n && outer->at[k].start <= inner->at[i].start)
      intervals_append(&nested, before ? outer->at[k].start : inner->at[i].start, inner->at[i].end);
  }
  intervals_subtract(arena, outer, &nested, &rest);
  *outer = rest;
}

/* An optimizer's step that gets a closure (LBFGS; Lightning always) runs the forward and backward
 * pass inside. What comes before the last backward pass is the closure's, or not known to be the
 * optimizer's: a forward pass may have no mark. Of single spans phase_begin() (analyses/queries.h)
 * says the same. */
static void unite_optimizer(const struct rank_events *events, struct arena *arena,
                            struct intervals *out) {
  static const u8 closure[] = {TSCOPE_PHASE_BACKWARD, TSCOPE_PHASE_FORWARD, TSCOPE_PHASE_DATA};
  unite_phases(events, TSCOPE_PHASE_OPTIMIZER, arena, out);
  FOR_EACH(closure, sizeof(closure), item) {
    struct intervals inner;
    unite_phases(events, *item, arena, &inner);
    remove_nested(arena, out, &inner, *item == TSCOPE_PHASE_BACKWARD);
  }
}

/* No instant counts twice. An optimizer that runs inside backward is optimizer; what an optimizer
 * runs in its closure is not. A forward pass recomputed inside backward (activation checkpointing)
 * is backward. What remains of data loading is data. */
static void measure_rank(void *user, u32 r, unsigned worker) {
  static const u8 order[] = {TSCOPE_PHASE_OPTIMIZER, TSCOPE_PHASE_BACKWARD, TSCOPE_PHASE_FORWARD,
                             TSCOPE_PHASE_DATA};
  struct measuring *measuring = user;
  const struct model *model = measuring->model;
  const struct rank_events *events = model_events(model, r);
  SCOPED_ARENA struct arena arena = {0};
  struct intervals covered = {0}, all, own, rest;
  (void)worker;
  for (u32 s = 0; s < model->steps.n; s++)
    model->phases[cell_of_step(model, s, r)] = PHASES_UNKNOWN;
  for (u32 i = 0; i < sizeof(order); i++, covered = all) {
    if (order[i] == TSCOPE_PHASE_OPTIMIZER) {
      unite_optimizer(events, &arena, &own);
    } else {
      unite_phases(events, order[i], &arena, &own);
    }
    intervals_subtract(&arena, &own, &covered, &rest);
    intervals_union(&arena, &own, &covered, &all);
    if (own.n == 0)
      continue;
    measuring->found[r] = true;
    fill_kind(model, r, order[i], &rest);
    if (order[i] != TSCOPE_PHASE_OPTIMIZER)
      count_passes(model, r, order[i], &rest);
  }
  if (measuring->found[r])
    add_other(model, r);
}

static void infer_rank(void *user, u32 r, unsigned worker) {
  struct measuring *measuring = user;
  struct model *model = measuring->model;
  (void)worker;
  measuring->found[r] = model->timelines->infer_input(model, r);
  if (measuring->found[r])
    add_other(model, r);
}

static bool any_rank_measured(const struct measuring *measuring) {
  return ANY(measuring->found, measuring->model->n_ranks, one, *one);
}

void measure_phases(struct model *model, const struct model_options *options) {
  size_t cells = (size_t)model->steps.n * model->n_ranks;
  struct measuring measuring = {.model = model,
                                .found = memory_zeroed(size_sum(model->n_ranks, 1), 1)};
  model->phases = arena_array(model_arena(model), cells, sizeof(*model->phases));
  u64 launches = TOTAL(u64, model->ranks, model->n_ranks, one, one->launches);
  parallel_for(model->n_ranks, options->threads, measure_rank, &measuring);
  if (any_rank_measured(&measuring)) {
    model->phase_method = "ranges of the framework or the user";
  } else if (launches && cells && model->timelines && model->timelines->infer_input) {
    parallel_for(model->n_ranks, options->threads, infer_rank, &measuring);
    if (any_rank_measured(&measuring))
      model->phase_method =
          "inferred from the host's pause before each step's first copy to the GPU";
  }
  if (!model->phase_method)
    model->phases = NULL;
  free(measuring.found);
}
