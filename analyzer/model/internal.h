/* SPDX-License-Identifier: MIT
 *
 * The model while it is being built, and what timeline_load() needs of it afterwards.
 */
#ifndef TSCOPE_MODEL_INTERNAL_H
#define TSCOPE_MODEL_INTERNAL_H

#include "align/align.h"
#include "model/rank_events.h"

struct model_internal {
  struct arena arena;
  struct spine *spines;      /* [n_ranks] */
  u32 **comm_of;             /* [n_ranks][spine.definitions.n_comms] index into model.comms */
  struct rank_clock *clocks; /* [n_ranks] local CLOCK_MONOTONIC -> the model's axis */
  u32 n_spines;              /* of which have been read, for clean-up */
  const char *marks_are; /* what the marks of steps are, where they are no calls of tscope_step() */
  VECTOR(const char *) notes;
  void *imported; /* an importer's own, freed by free_imported(); NULL */
  void (*free_imported)(void *imported);
};

static inline struct model_internal *internal_of(const struct model *model) {
  return model->internal;
}

/* How tscope's own traces give timelines. */
extern const struct timeline_source trace_timelines;

/* Room for n ranks and their spines, for an input that brings them: ranks in order of their global
 * number, spines in their own clocks. model_join_ranks() then does the rest: communicators,
 * collectives, clocks, steps, phases. Both 0, or negative errno. */
int model_make_ranks(struct model *model, u32 n);
int model_join_ranks(struct model *model, const struct model_options *options);

/* The parts of model_join_ranks(), in order. All return 0 or -ENOMEM. */

/* Communicators of all ranks by identity: fills model.comms and internal.comm_of. */
int unify_comms(struct model *model);

/* Collectives of all ranks by (communicator, sequence), sends by their receives: fills
 * model.collectives and model.arrivals with local times. */
int match_collectives(struct model *model);

/* After alignment: everything onto the model's axis, then what follows from it. */
int place_on_axis(struct model *model, unsigned threads);
/* When each rank's GPU was watched, on the model's axis. */
int list_gpu_windows(struct model *model);
int finish_collectives(struct model *model);

int find_steps(struct model *model, const struct model_options *options);

/* Fills model.phases and phase_method from PHASE records, else from the host's pauses before the
 * first host-to-device copy of each step. */
int measure_phases(struct model *model, const struct model_options *options);

/* Fills model.memories with what tscope's own records tell of memory. */
int list_memories(struct model *model);

/* Training phases of one rank and kind, united over threads. `out` lives in the arena. */
int unite_phases(const struct spine *spine, u8 kind, struct arena *arena, struct intervals *out);

#endif
