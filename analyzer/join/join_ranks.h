/* SPDX-License-Identifier: MIT
 *
 * Joins single ranks to one run: communicators, collectives, clocks, steps, phases.
 */
#ifndef TSCOPE_JOIN_RANKS_H
#define TSCOPE_JOIN_RANKS_H

#include "model/model.h"

/* Communicators and collectives of the ranks that an importer delivered (model/building.h), on one
 * axis. 0, or negative errno. */
int join_collectives(struct model *model, const struct model_options *options);

/* That, and steps, phases and values. 0, or negative errno. */
int join_ranks(struct model *model, const struct model_options *options);

#endif
