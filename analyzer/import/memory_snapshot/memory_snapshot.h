/* SPDX-License-Identifier: MIT
 *
 * Snapshots of PyTorch's caching allocator: torch.cuda.memory._dump_snapshot(), _snapshot() pickled
 * by hand, and the bare list of segments that torch.cuda.memory_snapshot() gives. Keys that are not
 * known are passed over.
 */
#ifndef TSCOPE_MEMORY_SNAPSHOT_H
#define TSCOPE_MEMORY_SNAPSHOT_H

#include "import/value.h"
#include "model/memory_history.h"

/* Whether this is what a snapshot looks like. */
bool snapshot_looks_like(const struct value *root);

/* How many devices it tells of: those with a number below that, if they have any segments or
 * events. */
u32 snapshot_devices(const struct value *root);

/* One device's history, in `arena`; nothing in it points into the values. 0 or -ENOMEM. A device
 * that is not in the snapshot has neither segments nor events. */
int snapshot_history(const struct value *root, u32 device, struct arena *arena,
                     struct memory_history *history);

#endif
