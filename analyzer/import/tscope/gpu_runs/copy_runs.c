/* SPDX-License-Identifier: MIT
 *
 * Collectives that copy engines run, without a kernel: on the call's stream NCCL copies a flag to
 * its peers when this rank is there, waits for theirs, copies the data, and copies flags again
 * (src/ce_coll.cc of NCCL 2.30). What is seen on the GPU:
 *
 *   flag flag flag  data data data  flag flag flag
 *
 * Its run is from the first flag to the last. In a graph, or on the default stream, NCCL stops a
 * large collective of many ranks after every eight copies: flags are between them too, and once
 * more at the end if the times would be odd. Copies count as a collective only with the flags, and
 * if a call on the stream, or of the graph, moves just as much: others stay copies.
 *
 * Over several nodes (2.29 and later, all-gather and all-to-all) flags and copies are between the
 * ranks of a node, and the network brings the rest in between: each rank copies its own part, and
 * those of its peers on other nodes, to the others of its node. With a multicast address one copy
 * of an all-gather's part is for all. A rank that sends nothing, as in a scatter all but the root,
 * copies flags alone.
 */
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/gpu_runs/pair_runs.h"

#define FLAG_BYTES 4u
#define NO_GRAPH 0u
/* Parts that are looked at in a row, for each of its copies. A collective's own are looked at once;
 * other copies with flags between them could be looked at from each on. */
#define PARTS_PER_COPY 16u

/* What calls copy on a stream, or in a graph, in all. */
struct copied {
  u64 total;
  u32 ranks;
  u32 graph;  /* the source's id of the graph, TSCOPE_UNKNOWN; NO_GRAPH for a call on a stream */
  u16 stream; /* 0 in a graph: it may run on any */
  u8 op;      /* as kernels are called; 0: either of several */
};

/* Calls on a stream that can be copied, and of them those that may move nothing here. */
struct stream_calls {
  u32 n, silent, ranks; /* 0 ranks: of several sizes */
  u8 op;                /* of the silent ones; 0: of both kinds */
};

struct copy_search {
  struct rank_events *events;
  struct stream_calls *streams; /* [UINT16_MAX + 1] */
  VECTOR(struct copied) calls;  /* sorted; of each total one */
  u32 n_recorded;
};

/* Copies in a row on one stream, or in one replay of a graph. */
struct row {
  const struct rank_copy *at;
  u32 n;
  u64 parts_left;     /* to look at */
  u32 flags_each;     /* at most so many before the data of one, and behind */
  VECTOR(u32) unused; /* flags that belong to no data */
};

static u32 replay_of(const struct rank_copy *copy) {
  return copy->graph ? copy->correlation : 0;
}

ORDER_BY(by_row_and_time, struct rank_copy, UP(stream) UP_OF(replay_of) UP(start) UP(end))

ORDER_BY(by_start, struct rank_run, UP(start))

ORDER_BY(by_row_and_total, struct copied, UP(graph) UP(stream) UP(total))

/* What stays of calls with the same total is then the same each time. */
ORDER_BY(by_all, struct copied, THEN(by_row_and_total(a, b)) DOWN(ranks) UP(op))

/* What only moves data can be copied. */
static bool can_be_copied(u8 op) {
  return op == TSCOPE_OP_ALLGATHER || op == TSCOPE_OP_ALLTOALL || op == TSCOPE_OP_GATHER ||
         op == TSCOPE_OP_SCATTER;
}

static u32 graph_of(const struct rank_events *events, const struct rank_call *call) {
  if (!call->replayed)
    return NO_GRAPH;
  u32 graph = call->part < events->parts.n ? events->parts.at[call->part].gpu_graph : 0;
  return graph ? graph : TSCOPE_UNKNOWN;
}

static void list_call(struct copy_search *s, const struct rank_call *call, u32 ranks, u64 times) {
  if (call->bytes <= UINT64_MAX / times)
    VECTOR_PUSH(&s->calls, ((struct copied){.total = call->bytes * times,
                                            .ranks = ranks,
                                            .graph = graph_of(s->events, call),
                                            .stream = call->replayed ? 0 : call->stream,
                                            .op = kernel_op(call->op)}));
}

/* What a rank copies in all: to all ranks, with multicast to all at once, and if the ranks are on
 * so many nodes. Its own part is copied too, unless it is in place. */
static void list_parts(struct copy_search *s, const struct rank_call *call, u32 ranks) {
  for (u32 nodes = 1; nodes < ranks; nodes++) {
    if (ranks % nodes ||
        (nodes > 1 && call->op != TSCOPE_OP_ALLGATHER && call->op != TSCOPE_OP_ALLTOALL))
      continue;
    list_call(s, call, ranks, ranks - nodes);
    list_call(s, call, ranks, ranks - nodes + 1);
    if (call->op == TSCOPE_OP_ALLGATHER)
      list_call(s, call, ranks, nodes);
  }
}

static void count_call(struct copy_search *s, const struct rank_call *call, u32 ranks) {
  struct stream_calls *of = &s->streams[call->stream];
  if (call->replayed)
    return;
  of->ranks = of->n == 0 || of->ranks == ranks ? ranks : 0;
  of->n++;
  if (call->op == TSCOPE_OP_GATHER || call->op == TSCOPE_OP_SCATTER)
    of->op = of->silent++ == 0 || of->op == kernel_op(call->op) ? kernel_op(call->op) : 0;
}

static void list_calls(struct copy_search *s) {
  const struct rank_events *events = s->events;
  FOR_EACH(events->calls.at, events->calls.n, call) {
    u32 ranks = call->comm < events->n_comms ? events->comms[call->comm].size : 0;
    if (call->failed || !can_be_copied(call->op) || ranks < 2 || !call->bytes)
      continue;
    count_call(s, call, ranks);
    if (call->op == TSCOPE_OP_GATHER)
      list_call(s, call, ranks, 1);
    else
      list_parts(s, call, ranks);
  }
  SORT(s->calls.at, s->calls.n, by_all);
  s->calls.n = SORT_AND_JOIN(s->calls.at, s->calls.n, by_row_and_total, kept, other,
                             kept->op = kept->op == other->op ? kept->op : 0);
}

/* A call of the row that moves `bytes` in all. False if there is none. */
static bool find_call(const struct copy_search *s, const struct rank_copy *copy, u64 bytes,
                      struct copied *found) {
  found->ranks = 0;
  const u32 graphs[] = {copy->graph ? copy->graph : NO_GRAPH, TSCOPE_UNKNOWN};
  FOR_EACH(graphs, (copy->graph ? 2 : 1), graph) {
    struct copied wanted = {
        .graph = *graph, .stream = copy->graph ? 0 : copy->stream, .total = bytes};
    const struct copied *call = FIND_SORTED(s->calls.at, s->calls.n, &wanted, by_row_and_total);
    if (call && found->ranks && found->op != call->op)
      found->op = 0;
    else if (call)
      *found = *call;
  }
  return found->ranks;
}

static u32 count_flags(const struct row *row, u32 from) {
  u32 flags = 0;
  while (from + flags < row->n && row->at[from + flags].bytes == FLAG_BYTES)
    flags++;
  return flags;
}

static u32 count_data(const struct row *row, u32 from, u64 *bytes) {
  u32 data = 0;
  for (; from + data < row->n && row->at[from + data].bytes != FLAG_BYTES; data++)
    *bytes += row->at[from + data].bytes;
  return data;
}

/* The data of one collective, with the flags that are between its parts. */
struct data {
  struct copied call;
  u32 end;   /* behind the last copy of data */
  u32 parts; /* 0: it is none */
};

/* Reads data from `from` on, before which up to `flags` are for it. If as many flags follow, or
 * fewer, and then data again, that is another part: between two collectives are those of both. */
static struct data read_data(const struct copy_search *s, struct row *row, u32 from, u32 flags) {
  struct data data = {.end = from};
  u64 bytes = 0;
  for (u32 part = 1, at = from;; part++) {
    u32 n = count_data(row, at, &bytes);
    struct copied call;
    row->parts_left -= row->parts_left > 0;
    if (n && find_call(s, row->at, bytes, &call))
      data = (struct data){call, at + n, part};
    u32 between = count_flags(row, at + n);
    at += n + between;
    if (!n || !between || between > flags || at >= row->n || !row->parts_left)
      return data;
  }
}

static void add_run(struct copy_search *s, const struct row *row, u32 first, u32 last, u8 op) {
  VECTOR_PUSH(&s->events->runs, ((struct rank_run){.start = row->at[first].start,
                                                   .end = row->at[last].end,
                                                   .graph = row->at->graph,
                                                   .correlation = replay_of(row->at),
                                                   .comm = TSCOPE_UNKNOWN,
                                                   .seq = TSCOPE_UNKNOWN,
                                                   .first_call = INDEX_NONE,
                                                   .stream = row->at->stream,
                                                   .op = op,
                                                   .copies = true}));
}

static void keep_unused(struct row *row, u32 from, u32 end) {
  for (; from < end; from++)
    VECTOR_PUSH(&row->unused, from);
}

static u32 count_flags_of(const struct row *row) {
  return NUMBER_OF(row->at, row->n, one, one->bytes == FLAG_BYTES);
}

/* Collectives that are flags alone: only if they are just as many as calls are left. */
static void add_silent(struct copy_search *s, const struct row *row, u32 others) {
  const struct stream_calls *calls = &s->streams[row->at->stream];
  if (replay_of(row->at) || !calls->ranks || calls->silent <= others)
    return;
  u32 left = calls->silent - others, each = MIN(row->flags_each, calls->ranks - 1);
  if (row->unused.n != (u64)2 * each * left)
    return;
  for (u32 i = 0; i < row->unused.n; i += 2 * each)
    add_run(s, row, row->unused.at[i], row->unused.at[i + 2 * each - 1], calls->op);
}

static void search_row(struct copy_search *s, struct row *row) {
  u32 taken = 0;  /* of the flags ahead, by the collective before */
  u32 silent = 0; /* runs that could have been silent, and moved data */
  const struct stream_calls *calls = &s->streams[row->at->stream];
  bool one_for_all = !replay_of(row->at) && count_flags_of(row) == 2 * calls->n;
  row->flags_each = one_for_all ? 1 : UINT32_MAX;
  for (u32 at = 0; at < row->n;) {
    u32 before = count_flags(row, at), from = at + before;
    u32 open = before - MIN(taken, before);
    struct data data = read_data(s, row, from, open);
    u64 ignored = 0;
    at = data.parts ? data.end : from + count_data(row, from, &ignored);
    taken = 0;
    u32 flags = data.parts ? MIN(open, MIN(data.call.ranks - 1, row->flags_each)) : 0;
    keep_unused(row, from - open, from - flags);
    if (!data.parts)
      continue;
    u32 behind = count_flags(row, at);
    bool ends = at + behind == row->n; /* else those of the next collective are behind, too */
    bool twice = data.parts > 1 && data.parts % 2 == 0 && behind >= (ends ? 2 : 3) * flags;
    taken = MIN(twice ? 2 * flags : flags, behind);
    if (taken)
      add_run(s, row, from - flags, at + taken - 1, data.call.op);
    silent += taken && (data.call.op == kernel_op(TSCOPE_OP_GATHER) ||
                        data.call.op == kernel_op(TSCOPE_OP_SCATTER));
  }
  add_silent(s, row, silent);
  free(row->unused.at);
}

void runs_from_copies(struct rank_events *events) {
  struct copy_search s = {.events = events, .n_recorded = events->runs.n};
  u32 n = events->copies.n;
  if (n) {
    SORT(events->copies.at, n, by_row_and_time);
    s.streams = memory_zeroed((size_t)UINT16_MAX + 1, sizeof(*s.streams));
    list_calls(&s);
  }
  for (u32 i = 0, in_row; i < n && s.calls.n; i += in_row) {
    const struct rank_copy *at = &events->copies.at[i];
    in_row = ROW_OF_EQUALS(at, n - i, first, one,
                           one->stream == first->stream && replay_of(one) == replay_of(first));
    search_row(&s,
               &(struct row){.at = at, .n = in_row, .parts_left = (u64)PARTS_PER_COPY * in_row});
  }
  if (events->runs.n > s.n_recorded)
    SORT(events->runs.at, events->runs.n, by_start);
  FREE_EACH(&s, calls.at, streams);
  free(events->copies.at);
  events->copies.at = NULL;
  events->copies.n = events->copies.room = 0;
}
