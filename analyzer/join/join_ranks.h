/* SPDX-License-Identifier: MIT
 *
 * Joins single ranks to one run: communicators, collectives, clocks, steps, phases.
 */
#ifndef TSCOPE_JOIN_RANKS_H
#define TSCOPE_JOIN_RANKS_H

#include "model/model.h"

/* Communicators and collectives of the ranks that an importer delivered (model/building.h), on one
 * axis. */
void join_collectives(struct model *model, const struct model_options *options);

/* That, and steps, phases and values. 0, or what options->before_join returned. */
int join_ranks(struct model *model, const struct model_options *options);

#endif
