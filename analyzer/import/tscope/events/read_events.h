/* SPDX-License-Identifier: MIT
 *
 * From one trace file to the events of a rank (model/rank_events.h).
 */
#pragma once

#include "import/tscope/events/definitions.h"
#include "model/rank_events.h"

struct kernel_names;

/* Reads a whole file: the retained records are decoded; of the ring's records the kernels that
 * communicate are kept, as `kernel_names` says (NULL: the built-in table), the others are counted.
 */
void rank_events_read(struct rank_events *events, const struct trace_file *file,
                      struct kernel_names *kernel_names);

/* The same within the budget of the file. 0, or negative errno with the reason in `why`, and
 * nothing to release. */
int rank_events_read_in_budget(struct rank_events *events, const struct trace_file *file,
                               struct kernel_names *kernel_names, char *why, size_t why_bytes);

/* A call as its record has it. `comm`: index into events.comms. */
struct rank_call collective_call(const struct tscope_collective_record *record,
                                 struct interval span, u32 comm, u32 thread);

/* If nothing else shows when collectives ran, uses NCCL's own records: adds runs on the host's
 * clock. Sets events.inside_error_ns. */
void runs_from_inside(struct rank_events *events);

/* Finds for each call the span in which it really ran, through the communicator and sequence where
 * the trace has them, else through the order of launch units and kernels on each stream. Fills
 * calls.run and the counts of what was left over. */
void pair_runs(struct rank_events *events);

/* The run of a send or receive on gloo, which no worker runs. A receive runs while the program
 * waits for it: until then nobody needs it. A send that no one waits for long was done when its
 * call returned. `wait` is over; NULL: there is none. */
void add_transfer_run(struct rank_events *events, u32 call, const struct rank_wait *wait);

/* For all of them. A transfer that the program still waits for has not ended: it has no run. */
void add_transfer_runs(struct rank_events *events);
