/* SPDX-License-Identifier: MIT
 *
 * The parts of join_ranks(), in order.
 */
#pragma once

#include "model/internal.h"

/* Whether files of `seen` ranks bear out a size that they claim. Each rank that is claimed and not
 * here costs memory, and a claim costs nothing. */
static inline bool size_is_borne_out(u32 claimed, u32 seen) {
  enum { BELIEVED = 65536, BELIEVED_FOR_EACH = 1024 };
  return claimed <= BELIEVED || claimed / BELIEVED_FOR_EACH < seen;
}

/* Notes about what ranks lack. */
void note_of_ranks(struct model *model);

/* Kernels that communicate without a call: gives them communicators and numbers. */
void group_kernels(struct model *model);

/* Communicators of all ranks by identity: fills model.comms and internal.comm_of. */
void unify_comms(struct model *model);

/* All-to-alls that programs make of sends and receives become one call of each rank (exchanges.h).
 */
void merge_exchanges(struct model *model, unsigned threads);

/* The same with the calls of a rank that are read again, before they are merged. */
void merge_calls_again(const struct rank_events *joined, struct rank_events *events);

/* Collectives of all ranks by (communicator, sequence), sends by their receives: fills
 * model.collectives and model.arrivals with local times. */
void match_collectives(struct model *model, unsigned threads);

/* After alignment: everything onto the model's axis, then what follows from it. */
void place_on_axis(struct model *model, unsigned threads);
/* When each rank's GPU was watched, on the model's axis. */
void list_gpu_windows(struct model *model);
void finish_collectives(struct model *model);

void find_steps(struct model *model, const struct model_options *options);

/* Fills model.phases and phase_method from PHASE records, else as the input infers them
 * (timeline_source.infer_input). */
void measure_phases(struct model *model, const struct model_options *options);
