/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_SNAPSHOT_GRADIENTS_H
#define TSCOPE_SNAPSHOT_GRADIENTS_H

#include "model/memory_history.h"

/* The category of what the backward pass allocates and the optimizer uses: gradients of
 * parameters. */
void snapshot_find_gradients(struct memory_history *history, struct arena *arena);

#endif
