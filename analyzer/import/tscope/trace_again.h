/* SPDX-License-Identifier: MIT
 *
 * The trace of a rank that is in the model without it, as from a summary.
 */
#ifndef TSCOPE_TRACE_AGAIN_H
#define TSCOPE_TRACE_AGAIN_H

#include "model/rank_events.h"

/* Reads the events of the rank from the file at its path, after ranks were joined. The file must be
 * the one that its process wrote, with as many records as the model knows. 0, or negative errno
 * with a reason that follows the file's name. */
int trace_read_again(const struct model *model, u32 rank, struct kernel_names *kernel_names,
                     struct rank_events *events, char *why, size_t why_bytes);

#endif
