/* SPDX-License-Identifier: MIT
 *
 * Joins single ranks to one run: communicators, collectives, clocks, steps, phases.
 */
#pragma once

#include "model/rank_events.h"

/* Communicators and collectives of the ranks that an importer delivered (model/building.h), on one
 * axis. */
void join_collectives(struct model *model, const struct model_options *options);

/* That, and steps, phases and values. */
void join_ranks(struct model *model, const struct model_options *options);

/* Events of a rank that were read once more after ranks were joined: gives them what joining found.
 * False if they are others than those that were joined. */
bool join_again(const struct model *model, u32 rank, struct rank_events *events);
