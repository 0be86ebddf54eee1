/* SPDX-License-Identifier: MIT
 *
 * What our own traces answer about a rank: the members of trace_timelines (struct timeline_source
 * of model.h), each in a file of its own.
 */
#ifndef TSCOPE_TRACE_SOURCE_H
#define TSCOPE_TRACE_SOURCE_H

#include "import/tscope/events/definitions.h"
#include "model/ledger.h"
#include "model/named_ranges.h"

extern const struct timeline_source trace_timelines;

int trace_infer_input(const struct model *model, u32 rank, bool *found);
int trace_named_ranges(const struct model *model, u32 rank, struct arena *arena,
                       struct named_range **ranges, u32 *n);

/* The ledger of a run that did not end normally, or in which ranks made different calls: each
 * rank's last calls, and how far they got. NULL for other runs. Calls count as pending only when
 * one of them has waited longer than the run has ever waited, because a run that is still going on
 * has calls in flight. */
const struct ledger *trace_ledger(const struct model *model, struct arena *arena);

/* trace_ledger_nccl.c: adds what NCCL reported; `rank_of` is the position in the ledger of each
 * rank of the model. */
void trace_ledger_nccl(const struct model *model, const u32 *rank_of, struct arena *arena,
                       struct ledger *ledger);

/* Fills model.memories from the records of memory. */
void list_memories(struct model *model);

#endif
