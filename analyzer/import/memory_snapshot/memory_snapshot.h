/* SPDX-License-Identifier: MIT
 *
 * Snapshots of PyTorch's caching allocator: torch.cuda.memory._dump_snapshot(), a pickled
 * _snapshot(), and the bare list of segments from torch.cuda.memory_snapshot(). Unknown keys are
 * ignored.
 */
#pragma once

#include "import/value.h"
#include "model/memory_history.h"

/* Whether this value has the form of a snapshot. */
bool snapshot_looks_like(const struct value *root);

/* How many devices it describes: one more than the highest number of a device that has segments
 * or events. */
u32 snapshot_devices(const struct value *root);

/* One device's history, in `arena`, without pointers into the values. A device
 * that is not in the snapshot has neither segments nor events. */
void snapshot_history(const struct value *root, u32 device, struct arena *arena,
                      struct memory_history *history);

/* For that, once the events are there. snapshot_gradients.c: the category of what the backward pass
 * allocates and the optimizer uses: gradients of parameters. */
void snapshot_find_gradients(struct memory_history *history, struct arena *arena);

/* snapshot_steps.c: finds the training steps, and numbers the events: the profiler's step ranges,
 * else the ends of the optimizer's steps, both from the snapshot's annotations, else the ends of
 * what the optimizer allocates, else the period of all that is allocated. */
void snapshot_steps(const struct value *root, struct memory_history *history);
