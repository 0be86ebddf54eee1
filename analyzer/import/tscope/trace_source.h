/* SPDX-License-Identifier: MIT
 *
 * What our own traces answer about a rank: the members of trace_timelines (struct timeline_source
 * of model.h), each in a file of its own.
 */
#pragma once

#include "import/tscope/events/definitions.h"
#include "model/flight_record.h"
#include "model/named_ranges.h"
#include "model/rank_timeline.h"

extern const struct timeline_source trace_timelines;

bool trace_infer_input(const struct model *model, u32 rank);
int trace_named_ranges(const struct model *model, u32 rank, struct arena *arena,
                       struct named_range **ranges, u32 *n);

/* The flight record of a run that did not end normally, or in which ranks made different calls:
 * each rank's last calls, and how far they got. NULL for other runs. Calls count as pending only
 * when one of them has waited longer than the run has ever waited, because a run that is still
 * going on has calls in flight. */
const struct flight_record *trace_flight_record(const struct model *model, struct arena *arena);

/* trace_flight_nccl.c: adds what NCCL reported; `rank_of` is the position in the flight record of
 * each rank of the model. */
void trace_flight_nccl(const struct model *model, const u32 *rank_of, struct arena *arena,
                       struct flight_record *flight);

/* Fills model.memories from the records of memory. */
void list_memories(struct model *model);
