/* SPDX-License-Identifier: MIT */
#include "join/join_ranks.h"

#include "align/align.h"
#include "base/checked_memory.h"
#include "join/joining.h"

static void align(struct model *model, unsigned threads) {
  SCOPED struct clock_facts *facts = memory_array(model->n_ranks, sizeof(*facts));
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(model, r);
    facts[r] = (struct clock_facts){.realtime_minus_monotonic = events->realtime_minus_monotonic,
                                    .anchor_error_ns = events->anchor_error_ns,
                                    .begin = events->begin == NS_UNKNOWN ? 0 : events->begin};
  }
  align_clocks(model, facts, internal_of(model)->clocks, model_arena(model), threads);
}

/* The number of ranks of the job, 0 where what is claimed is not borne out. */
static void settle_world_size(struct model *model) {
  u32 claimed = model->world_size;
  if (!size_is_borne_out(claimed, model->n_ranks)) {
    model->world_size = 0;
    model_note(model,
               "a file says that the job has %u ranks, and %u %s here: how many there are is "
               "NOT KNOWN",
               claimed, model->n_ranks, model->n_ranks == 1 ? "is" : "are");
    return;
  }
  for (u32 c = 0; c < model->n_comms && model->world_size == 0; c++)
    if (model->comms[c].parent == 0 && model->comms[c].size > model->world_size)
      model->world_size = model->comms[c].size;
}

static void list_scalars(struct model *model) {
  struct model_internal *internal = internal_of(model);
  u64 total = TOTAL(u64, internal->events, model->n_ranks, one, one->scalars.n);
  model->scalars = arena_array(model_arena(model), total, sizeof(*model->scalars));
  if (total > UINT32_MAX)
    memory_is_short(total, sizeof(*model->scalars));
  for (u32 r = 0; r < model->n_ranks; r++)
    FOR_EACH(internal->events[r].scalars.at, internal->events[r].scalars.n, scalar)
      model->scalars[model->n_scalars++] =
          (struct scalar){.rank = r,
                          .step = scalar->step < INDEX_NONE ? (u32)scalar->step : INDEX_NONE,
                          SAME(scalar, name, time, value)};
}

void join_collectives(struct model *model, const struct model_options *options) {
  model_number_hosts(model);
  model_report_progress(options, "matching collectives", 0);
  group_kernels(model);
  unify_comms(model);
  merge_exchanges(model, options->threads);
  match_collectives(model, options->threads);
  model_report_progress(options, "aligning clocks", 0);
  align(model, options->threads);
  place_on_axis(model, options->threads);
  list_gpu_windows(model);
  finish_collectives(model);
}

void join_ranks(struct model *model, const struct model_options *options) {
  if (options->before_join)
    options->before_join(options->joiner, model);
  note_of_ranks(model);
  join_collectives(model, options);
  model_report_progress(options, "finding steps", 0);
  find_steps(model, options);
  measure_phases(model, options);
  list_scalars(model);
  settle_world_size(model);
}
