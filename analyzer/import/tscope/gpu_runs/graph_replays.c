/* SPDX-License-Identifier: MIT */
#include "import/tscope/gpu_runs/graph_replays.h"

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/file_budget.h"
#include "kernels/communication.h"

enum { MOST_COMMS = 128 };

/* One capture may have used several threads, whose records come chunk by chunk. */
ORDER_BY(by_capture, struct captured_item, UP(captured) UP(time) UP(order))

ORDER_BY(by_graph, struct rank_graph, UP(graph))

const struct rank_graph *rank_find_graph(const struct rank_events *events, u32 graph) {
  return FIND_SORTED(events->graphs.at, events->graphs.n, &(struct rank_graph){.graph = graph},
                     by_graph);
}

bool rank_graph_is_conditional(const struct rank_events *events, u32 graph) {
  return FIND_SORTED(events->graph_bodies.at, events->graph_bodies.n, &graph, by_u32) != NULL;
}

static const struct tscope_graph_comm *comm_of(const struct graph_comms *comms, u32 comm) {
  return FIND(comms->at, comms->n, one, one->comm == comm);
}

struct expanding {
  struct graph_replays *graphs;
  struct rank_events *events;
  const struct called_replay *replay;
  u32 number; /* of the replay */
  u32 groups; /* groups of a replay have numbers of their own, beyond all recorded */
  u32 place;  /* calls of this replay so far */
  u32 gpu_graph;
};

/* The captured call as this replay made it. */
static struct rank_call call_of(const struct expanding *x, const struct captured_item *item,
                                const struct graph_comms *comms, u32 part) {
  const struct tscope_graph_collective_record *record = &item->call;
  const struct tscope_graph_comm *comm = comm_of(comms, record->comm);
  const struct called_replay *replay = x->replay;
  bool transfer = op_is_message((u8)record->header.tag);
  u32 first = !comm ? TSCOPE_UNKNOWN : transfer ? comm->first_transfer : comm->first_collective;
  bool numbered = first != TSCOPE_UNKNOWN && record->index != TSCOPE_UNKNOWN;
  return (struct rank_call){.start = replay->start + x->place,
                            .launched = replay->start + x->place,
                            .comm =
                                numbered ? rank_comm_index(x->events, record->comm) : INDEX_NONE,
                            .seq = numbered ? first + record->index : TSCOPE_UNKNOWN,
                            .group = record->group ? x->groups + record->group : 0,
                            .run = INDEX_NONE,
                            .part = part,
                            .op = (u8)record->header.tag,
                            .replayed = true,
                            SAME(replay, end, thread, stream, failed),
                            SAME(record, count, bytes, peer, dtype, redop)};
}

/* Where the content of a captured graph begins in the sorted list; n if it has none. */
static u32 first_item(const struct graph_replays *graphs, u32 captured) {
  return FIRST_NOT(0, graphs->items.n, i, graphs->items.at[i].captured < captured);
}

/* The numbers of a child's calls, from those of the graph that it is in. */
static struct graph_comms number_child_calls(const struct graph_comms *outer,
                                             const struct graph_comms *child,
                                             struct tscope_graph_comm *room) {
  u32 n = MIN(child->n, MOST_COMMS);
  for (u32 i = 0; i < n; i++) {
    const struct tscope_graph_comm *comm = comm_of(outer, child->at[i].comm);
    room[i] = (struct tscope_graph_comm){child->at[i].comm, TSCOPE_UNKNOWN, TSCOPE_UNKNOWN, 0};
    if (comm && comm->first_collective != TSCOPE_UNKNOWN &&
        child->at[i].first_collective != TSCOPE_UNKNOWN)
      room[i].first_collective = comm->first_collective + child->at[i].first_collective;
    if (comm && comm->first_transfer != TSCOPE_UNKNOWN &&
        child->at[i].first_transfer != TSCOPE_UNKNOWN)
      room[i].first_transfer = comm->first_transfer + child->at[i].first_transfer;
  }
  return (struct graph_comms){room, n};
}

static bool expand_graph(struct expanding *x, u32 captured, const struct graph_comms *comms,
                         u32 depth) {
  const struct graph_replays *graphs = x->graphs;
  u32 part = x->events->parts.n;
  if (!budget_take(BUDGET_REPLAYED, 1))
    return false;
  VECTOR_PUSH(&x->events->parts, (struct rank_part){.start = x->replay->start,
                                                    .replay = x->number,
                                                    .gpu_graph = x->gpu_graph});
  for (u32 i = first_item(graphs, captured);
       i < graphs->items.n && graphs->items.at[i].captured == captured; i++) {
    const struct captured_item *item = &graphs->items.at[i];
    struct tscope_graph_comm room[MOST_COMMS];
    if (item->child) {
      struct graph_comms inner = number_child_calls(comms, &item->comms, room);
      if (depth < BUDGET_GRAPHS_DEEP && !expand_graph(x, item->child, &inner, depth + 1))
        return false;
      continue;
    }
    if (!budget_take(BUDGET_REPLAYED, 1))
      return false;
    VECTOR_PUSH(&x->events->calls, call_of(x, item, comms, part));
    x->place++;
  }
  return true;
}

static u32 find_last_group(const struct graph_replays *graphs, const struct rank_events *events) {
  u32 called = MOST_OF(u32, events->calls.at, events->calls.n, one, one->group);
  u32 captured = MOST_OF(u32, graphs->items.at, graphs->items.n, one, one->call.group);
  return MAX(called, captured);
}

void graph_replays_expand(struct graph_replays *graphs, struct rank_events *events) {
  u32 span = find_last_group(graphs, events);
  struct expanding x = {.graphs = graphs, .events = events, .groups = span};
  SORT(graphs->items.at, graphs->items.n, by_capture);
  SORT(events->graphs.at, events->graphs.n, by_graph);
  SORT(events->graph_bodies.at, events->graph_bodies.n, by_u32);
  for (u32 i = 0; i < graphs->replays.n; i++, x.groups += span) {
    const struct rank_graph *graph = rank_find_graph(events, graphs->replays.at[i].graph);
    if (!graph || !graph->captured)
      continue;
    x.replay = &graphs->replays.at[i];
    x.number = i;
    x.place = 0;
    x.gpu_graph = graph->gpu_graph;
    if (!expand_graph(&x, graph->captured, &x.replay->comms, 0))
      return;
  }
}

void graph_replays_release(struct graph_replays *graphs) {
  FREE_EACH(graphs, items.at, replays.at);
}
