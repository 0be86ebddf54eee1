/* SPDX-License-Identifier: MIT
 *
 * The model while its ranks are being joined: only for model/ and join/.
 */
#pragma once

#include "model/building.h"

/* A collective in which not all ranks of its communicator take part, as those of an all-to-all that
 * have nothing to give or to take. */
struct sparse_collective {
  u32 comm, seq, members;
};

struct model_internal {
  struct arena arena;
  struct rank_events *events; /* [n_ranks] */
  u32 **comm_of;              /* [n_ranks][events.n_comms] index into model.comms */
  struct rank_clock *clocks;  /* [n_ranks] local CLOCK_MONOTONIC -> the model's axis */
  u32 n_events;               /* for clean-up */
  const char *marks_are; /* what the marks of steps are, if they are not calls of tscope_step() */
  VECTOR(const char *) notes;
  VECTOR(struct sparse_collective) sparse; /* by communicator and seq */
  void *imported;                          /* an importer's own, freed by free_imported(); NULL */
  void (*free_imported)(void *imported);
};

static inline struct model_internal *internal_of(const struct model *model) {
  return model->internal;
}
