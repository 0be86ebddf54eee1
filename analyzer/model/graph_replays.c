/* SPDX-License-Identifier: MIT */
#include "graph_replays.h"

#include <errno.h>

/* A file that claims more than this many calls in replays is not believed beyond it. */
#define MOST_REPLAYED_CALLS (1u << 24)

static bool take_replay(struct graph_replays *graphs, struct arena *arena,
                        const struct tscope_record *record, struct interval span, u32 thread) {
  const struct tscope_graph_replay_record *launch = (const void *)record;
  u32 room = (u32)(8u * record->words - sizeof *launch) / (u32)sizeof(struct tscope_graph_comm);
  u32 n = launch->comms < room ? launch->comms : room;
  struct tscope_graph_comm *comms = arena_array(arena, n + 1, sizeof *comms);
  if (!comms)
    return false;
  memcpy(comms, launch + 1, n * sizeof *comms);
  struct replay replay = {.start = span.start,
                          .end = span.end,
                          .graph = launch->graph,
                          .thread = thread,
                          .n_comms = n,
                          .stream = record->tag,
                          .failed = span.end != NS_UNKNOWN && launch->result != 0,
                          .comms = comms};
  return VECTOR_PUSH(&graphs->replays, replay);
}

bool graph_replays_take(struct graph_replays *graphs, struct arena *arena,
                        const struct tscope_record *record, struct interval span, u32 thread) {
  switch (record->type) {
  case TSCOPE_REC_GRAPH: {
    const struct tscope_graph_record *graph = (const void *)record;
    struct executable executable = {graph->graph, graph->captured};
    return VECTOR_PUSH(&graphs->executables, executable);
  }
  case TSCOPE_REC_GRAPH_COLLECTIVE: {
    const struct tscope_graph_collective_record *call = (const void *)record;
    struct captured_call captured = {call->captured, graphs->captured.n, *call};
    return VECTOR_PUSH(&graphs->captured, captured);
  }
  default:
    return take_replay(graphs, arena, record, span, thread);
  }
}

/* One capture may have gone on in several threads, whose records come chunk by chunk; on one
 * communicator the index tells the order, else that in which they were written is the best there
 * is. */
static int by_capture(const void *left, const void *right) {
  const struct captured_call *a = left, *b = right;
  if (a->captured != b->captured)
    return a->captured < b->captured ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

static int by_graph(const void *left, const void *right) {
  const struct executable *a = left, *b = right;
  return a->graph < b->graph ? -1 : a->graph > b->graph;
}

static const struct tscope_graph_comm *comm_of(const struct replay *replay, u32 comm) {
  for (u32 i = 0; i < replay->n_comms; i++)
    if (replay->comms[i].comm == comm)
      return &replay->comms[i];
  return NULL;
}

/* The captured call as this replay made it. */
static struct spine_call call_of(const struct spine *spine, const struct replay *replay,
                                 const struct captured_call *captured, u32 place, u32 groups) {
  const struct tscope_graph_collective_record *record = &captured->record;
  const struct tscope_graph_comm *comm = comm_of(replay, record->comm);
  bool transfer = record->header.tag >= TSCOPE_OP_SEND;
  u32 first = !comm ? TSCOPE_UNKNOWN : transfer ? comm->first_transfer : comm->first_collective;
  bool numbered = first != TSCOPE_UNKNOWN && record->index != TSCOPE_UNKNOWN;
  return (struct spine_call){.start = replay->start + place,
                             .end = replay->end,
                             .launched = replay->start + place,
                             .count = record->count,
                             .bytes = record->bytes,
                             .comm = numbered ? spine_comm_index(&spine->definitions, record->comm)
                                              : INDEX_NONE,
                             .seq = numbered ? first + record->index : TSCOPE_UNKNOWN,
                             .group = record->group ? groups + record->group : 0,
                             .peer = record->peer,
                             .thread = replay->thread,
                             .run = INDEX_NONE,
                             .collective = INDEX_NONE,
                             .arrival = INDEX_NONE,
                             .stream = replay->stream,
                             .op = (u8)record->header.tag,
                             .dtype = record->dtype,
                             .redop = record->redop,
                             .failed = replay->failed,
                             .replayed = true};
}

/* Where a captured graph's calls begin in the sorted list; n if it has none. */
static u32 first_captured(const struct graph_replays *graphs, u32 captured) {
  u32 low = 0, high = graphs->captured.n;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (graphs->captured.at[middle].captured < captured)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Groups of a replay have numbers of their own, beyond all that were recorded. */
static u32 groups_recorded(const struct graph_replays *graphs, const struct spine *spine) {
  u32 most = 0;
  for (u32 i = 0; i < spine->calls.n; i++)
    most = spine->calls.at[i].group > most ? spine->calls.at[i].group : most;
  for (u32 i = 0; i < graphs->captured.n; i++)
    most = graphs->captured.at[i].record.group > most ? graphs->captured.at[i].record.group : most;
  return most;
}

int graph_replays_expand(struct graph_replays *graphs, struct spine *spine) {
  u32 span = groups_recorded(graphs, spine), groups = span, added = 0;
  if (graphs->captured.n)
    qsort(graphs->captured.at, graphs->captured.n, sizeof *graphs->captured.at, by_capture);
  if (graphs->executables.n)
    qsort(graphs->executables.at, graphs->executables.n, sizeof *graphs->executables.at, by_graph);
  for (u32 i = 0; i < graphs->replays.n; i++, groups += span) {
    const struct replay *replay = &graphs->replays.at[i];
    struct executable wanted = {.graph = replay->graph};
    const struct executable *executable =
        graphs->executables.n ? bsearch(&wanted, graphs->executables.at, graphs->executables.n,
                                        sizeof wanted, by_graph)
                              : NULL;
    if (!executable || !executable->captured)
      continue;
    u32 first = first_captured(graphs, executable->captured);
    for (u32 j = first;
         j < graphs->captured.n && graphs->captured.at[j].captured == executable->captured &&
         added < MOST_REPLAYED_CALLS;
         j++, added++)
      if (!VECTOR_PUSH(&spine->calls,
                       call_of(spine, replay, &graphs->captured.at[j], j - first, groups)))
        return -ENOMEM;
  }
  return 0;
}

void graph_replays_release(struct graph_replays *graphs) {
  free(graphs->captured.at);
  free(graphs->executables.at);
  free(graphs->replays.at);
}
