/* SPDX-License-Identifier: MIT
 *
 * What stacks show of training: which part of it a function is, and a library that runs the whole
 * loop, as trainers do.
 */
#pragma once

#include "model/span_call_sites.h"

enum training_part {
  TRAINING_NONE,
  TRAINING_FORWARD,
  TRAINING_BACKWARD,
  TRAINING_OPTIMIZER,
  TRAINING_SCHEDULE, /* of a pipeline: forward and backward passes in turn */
};

/* The part that a function of a library is by its name (training_functions.def). */
enum training_part frame_training_part(const struct call_frame *frame);

/* Where one line of the user's own code calls an installed library that then trains (at least two
 * parts of training are below), or where the program has no code of its own, each moment of the
 * training would be at that line, or at PyTorch's. The packages that train there count as the
 * user's own: sets runs_training of their frames, and sites->loop. From the shape of stacks alone,
 * so that all ranks of a job agree. */
void call_sites_find_library(struct call_sites *sites);
