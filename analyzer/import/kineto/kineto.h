/* SPDX-License-Identifier: MIT
 *
 * From the traces of all ranks to a model: events, collectives matched by order, timelines.
 */
#pragma once

#include "import/kineto/kineto_trace.h"
#include "model/building.h"
#include "model/rank_timeline.h"

/* All traces, by rank of the model: what the timelines are made from. */
struct kineto_traces {
  struct kineto_trace *at;
  u32 n;
};

/* Which call of the runtime has which correlation id. Freed with free(calls.at). */
struct kineto_correlation {
  u32 number, item;
};

typedef VECTOR(struct kineto_correlation) kineto_calls;

kineto_calls kineto_calls_index(const struct kineto_trace *trace);
u32 kineto_call_of(const kineto_calls *calls, u32 correlation);

/* Whether an item is work of a device. */
bool kineto_is_device_item(const struct kineto_item *item);

/* Whether an item is a collective as it ran; the k-th of them is events.runs.at[k]. */
bool kineto_is_run(const struct kineto_trace *trace, const struct kineto_item *item);

/* Whether an item is the host calling a collective. */
bool kineto_is_comm_call(const struct kineto_trace *trace, const struct kineto_item *item);

/* From here on: identities of process groups that the trace does not name, one for each stream that
 * their collectives run on. They are assumed to include all ranks. */
#define KINETO_UNNAMED 0x756e6e616d656400ull

/* Makes the retained records of one rank. */
void kineto_events(const struct kineto_trace *trace, u32 rank, u32 world_size,
                   struct rank_events *events);

/* Where recordings pause between marked steps, keeps the steps of one part: that of which all ranks
 * have most. How many are left out on the rank that has most others. */
u32 kineto_keep_one_part(struct rank_events *all, u32 n_ranks);

/* Numbers the collectives of all ranks if the traces do not, so that the same one has the same
 * number in each process group. Reports how well they agree. */
void kineto_number_collectives(struct model *model);

/* Finds the ranks of traces that do not say theirs, from the process groups that they are in and
 * from file names; the remaining traces get free numbers, with a note. Sorts the traces by rank. */
void kineto_find_ranks(struct import *import, struct kineto_traces *traces);

/* Sets the timeline's call sites where the trace has Python's functions. `span_of` [items] is the
 * span of each item, or INDEX_NONE. */
void kineto_lines(const struct kineto_trace *trace, const struct rank_clock *clock,
                  struct timeline *timeline, const u32 *span_of, struct arena *arena);

/* An operator with a sequence number: of a forward pass (thread 0), or of the gradient of one. */
static inline bool kineto_is_numbered(const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_OP && item->what != INDEX_NONE;
}

static inline u64 kineto_forward_key(u32 lane, u32 sequence) {
  return (u64)lane << 32 | sequence;
}

/* The lane of each thread that runs forward passes, as PyTorch numbers them; INDEX_NONE. Not
 * certain if as many of its sequence numbers are found on another lane, nor for the last number,
 * which all threads beyond have. */
enum { KINETO_FORWARD_THREADS = UINT8_MAX + 1 };
struct kineto_forward_lane {
  u32 lane;
  bool certain;
};
void kineto_find_forward_lanes(const struct kineto_trace *trace,
                               struct kineto_forward_lane *lane_of);

/* Autograd's functions as close as this are one backward pass. */
#define KINETO_BACKWARD_GAP_NS 1000000

/* Leaves out what the host did once what it launched is not in the recording any more. `cut`: the
 * end of the file is missing. */
void kineto_end_at_lost_work(struct kineto_trace *trace, bool cut);

/* Says when the device was not seen, because what was launched then is missing. Its captures are
 * known. */
void kineto_add_lost_stretches(const struct kineto_trace *trace, const kineto_calls *calls,
                               struct rank_events *events);

/* Adds forward passes that nobody marks, after the last item. */
void kineto_find_forward_passes(struct kineto_trace *trace);

/* Add waits that no call shows, after the last item: for kernels, and for collectives that workers
 * of the host run. */
void kineto_find_spins(struct kineto_trace *trace);
void kineto_find_worker_waits(struct kineto_trace *trace);

extern const struct timeline_source kineto_timelines;
