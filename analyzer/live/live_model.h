/* SPDX-License-Identifier: MIT
 *
 * The last calls of all ranks as the report's model, for questions that the report's own functions
 * answer.
 */
#ifndef TSCOPE_LIVE_MODEL_H
#define TSCOPE_LIVE_MODEL_H

#include "live/live_view.h"
#include "model/model.h"

/* One rank of the model for each of view.ranks, in the same order, joined up to collectives on one
 * axis. Of the calls of each communicator that are over it has at most the last `over`. What it
 * refers to is good until the next poll; model_free(). */
struct model *live_model_make(const struct live_view *view, u32 over);

#endif
