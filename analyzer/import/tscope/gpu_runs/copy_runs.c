/* SPDX-License-Identifier: MIT
 *
 * Collectives that copy engines run, without a kernel: on the call's stream NCCL copies a flag to
 * its peers when this rank is there, waits for theirs, copies the data, and copies flags again
 * (src/ce_coll.cc of NCCL 2.30). What is seen on the GPU:
 *
 *   flag flag flag  data data data  flag flag flag
 *
 * Its run is from the first flag to the last. Copies count as a collective only with the flags, and
 * if a call on the stream moves just as much: others stay copies.
 */
#include <stdlib.h>

#include "base/checked_memory.h"
#include "import/tscope/gpu_runs/pair_runs.h"

#define FLAG_BYTES 4u

/* What one call on a stream may copy: `bytes` to each of up to `ranks`. */
struct copied {
  u64 bytes;
  u32 ranks;
  u8 op;
};

struct search {
  struct rank_events *events;
  VECTOR(struct copied) calls; /* those that differ, on the stream */
  u32 n_recorded;
};

static int by_stream_and_time(const void *left, const void *right) {
  const struct rank_copy *a = left, *b = right;
  if (a->stream != b->stream)
    return a->stream < b->stream ? -1 : 1;
  return a->start != b->start ? (a->start < b->start ? -1 : 1)
                              : (a->end > b->end) - (a->end < b->end);
}

static int by_start(const void *left, const void *right) {
  const struct rank_run *a = left, *b = right;
  return (a->start > b->start) - (a->start < b->start);
}

/* What only moves data can be copied. */
static bool can_be_copied(u8 op) {
  return op == TSCOPE_OP_ALLGATHER || op == TSCOPE_OP_ALLTOALL || op == TSCOPE_OP_GATHER ||
         op == TSCOPE_OP_SCATTER;
}

static void list_calls(struct search *s, u16 stream) {
  const struct rank_events *events = s->events;
  s->calls.n = 0;
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    u32 ranks = call->comm < events->n_comms ? events->comms[call->comm].size : 0;
    if (call->stream != stream || call->failed || !can_be_copied(call->op) || ranks < 2)
      continue;
    struct copied copied = {call->bytes, ranks, kernel_op(call->op)};
    bool known = !copied.bytes;
    for (u32 k = 0; k < s->calls.n && !known; k++)
      known = s->calls.at[k].bytes == copied.bytes && s->calls.at[k].ranks == copied.ranks &&
              s->calls.at[k].op == copied.op;
    if (!known)
      VECTOR_PUSH(&s->calls, copied);
  }
}

/* The call that moves `bytes`: its operation, 0 if several operations do. NULL if there is none. */
static const struct copied *call_of(const struct search *s, u64 bytes, struct copied *found) {
  found->ranks = 0;
  for (u32 i = 0; i < s->calls.n; i++) {
    const struct copied *call = &s->calls.at[i];
    if (bytes % call->bytes || bytes / call->bytes > call->ranks)
      continue;
    if (found->ranks && found->op != call->op)
      found->op = 0;
    else
      *found = *call;
  }
  return found->ranks ? found : NULL;
}

static u32 count_flags(const struct rank_copy *copies, u32 n) {
  u32 flags = 0;
  while (flags < n && copies[flags].bytes == FLAG_BYTES)
    flags++;
  return flags;
}

static u32 count_data(const struct rank_copy *copies, u32 n, u64 *bytes) {
  u32 data = 0;
  for (*bytes = 0; data < n && copies[data].bytes != FLAG_BYTES; data++)
    *bytes += copies[data].bytes;
  return data;
}

static u32 least(u32 a, u32 b) {
  return a < b ? a : b;
}

/* Of the flags between two collectives, one's come first and as many are the other's. `taken` are
 * those that the collective before has. */
static void search_stream(struct search *s, const struct rank_copy *copies, u32 n) {
  u32 taken = 0;
  list_calls(s, copies->stream);
  for (u32 at = 0; at < n && s->calls.n;) {
    u64 bytes;
    u32 before = count_flags(copies + at, n - at), data = at + before;
    u32 after = data + count_data(copies + data, n - data, &bytes);
    u32 behind = count_flags(copies + after, n - after);
    struct copied found;
    const struct copied *call = after > data ? call_of(s, bytes, &found) : NULL;
    u32 flags = call ? least(before - least(taken, before), call->ranks - 1) : 0;
    taken = least(flags, behind);
    if (taken)
      VECTOR_PUSH(&s->events->runs, ((struct rank_run){.start = copies[data - flags].start,
                                                       .end = copies[after + taken - 1].end,
                                                       .comm = TSCOPE_UNKNOWN,
                                                       .seq = TSCOPE_UNKNOWN,
                                                       .first_call = INDEX_NONE,
                                                       .stream = copies->stream,
                                                       .op = call->op,
                                                       .copies = true}));
    at = after > at ? after : n;
  }
}

void runs_from_copies(struct rank_events *events) {
  struct search s = {.events = events, .n_recorded = events->runs.n};
  u32 n = events->copies.n;
  if (n)
    qsort(events->copies.at, n, sizeof(*events->copies.at), by_stream_and_time);
  for (u32 i = 0, next; i < n; i = next) {
    for (next = i; next < n && events->copies.at[next].stream == events->copies.at[i].stream;)
      next++;
    search_stream(&s, events->copies.at + i, next - i);
  }
  if (events->runs.n > s.n_recorded)
    qsort(events->runs.at, events->runs.n, sizeof(*events->runs.at), by_start);
  free(s.calls.at);
  free(events->copies.at);
  events->copies.at = NULL;
  events->copies.n = events->copies.room = 0;
}
