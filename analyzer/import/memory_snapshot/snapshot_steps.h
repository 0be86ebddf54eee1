/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_SNAPSHOT_STEPS_H
#define TSCOPE_SNAPSHOT_STEPS_H

#include "import/value.h"
#include "model/memory_history.h"

/* Finds the training steps of a snapshot: the profiler's step ranges, else the ends of the
 * optimizer's steps, both from its annotations, else the ends of what the optimizer allocates, else
 * the period of all that is allocated. Numbers the events. */
void snapshot_steps(const struct value *root, struct memory_history *history);

#endif
