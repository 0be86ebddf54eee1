/* SPDX-License-Identifier: MIT
 *
 * From ranks on their own to one run: communicators, collectives, clocks, steps, phases.
 */
#ifndef TSCOPE_JOIN_RANKS_H
#define TSCOPE_JOIN_RANKS_H

#include "model/model.h"

/* Joins the ranks that an importer brought (model/building.h). 0, or negative errno. */
int join_ranks(struct model *model, const struct model_options *options);

#endif
