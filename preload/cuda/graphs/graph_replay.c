/* SPDX-License-Identifier: MIT
 *
 * The record of a replay with collectives: which numbers they got. Also the nodes of a graph that
 * contain other graphs.
 */
#include <stddef.h>

#include "cuda/graphs/graph_nodes.h"
#include "cuda/graphs/graph_record.h"

struct replay {
  struct tscope_graph_replay_record record;
  struct tscope_graph_comm comms[GRAPH_COMMS];
};

u64 *graph_replay_open(struct tscope_thread *thread, u64 start, u16 stream, u32 graph,
                       const struct graph_content *content) {
  struct replay replay = {.record = {.graph = graph}};
  u32 n = 0;
  for (const struct graph_comm *comm = graph_comm_first(content); comm && n < GRAPH_COMMS;
       comm = graph_comm_next(comm))
    replay.comms[n++] = (struct tscope_graph_comm){
        .comm = comm->comm,
        .first_collective =
            comm->next_collective
                ? __atomic_fetch_add(comm->next_collective, comm->collectives, __ATOMIC_RELAXED)
                : TSCOPE_UNKNOWN,
        .first_transfer =
            comm->next_transfer
                ? __atomic_fetch_add(comm->next_transfer, comm->transfers, __ATOMIC_RELAXED)
                : TSCOPE_UNKNOWN,
    };
  replay.record.comms = n;
  u32 bytes = (u32)(sizeof(replay.record) + n * sizeof(*replay.comms));
  return tscope_span_open(thread, start, TSCOPE_REC_GRAPH_REPLAY, stream, &replay, bytes);
}

/* The layout is the driver's too. */
void record_graph_node(struct tscope_thread *thread, u64 start, cudaError_t result,
                       const cudaGraphNode_t *node, cudaGraph_t graph, const void *made_of) {
  const struct cudaGraphNodeParams *parameters = made_of;
  (void)start;
  if (result != cudaSuccess)
    return;
  if (parameters->type == cudaGraphNodeTypeGraph)
    graph_child_added(thread, graph, parameters->graph.graph);
  if (parameters->type != cudaGraphNodeTypeConditional)
    return;
  const struct cudaConditionalNodeParams *made = &parameters->conditional;
  for (u32 i = 0; i < made->size; i++)
    graph_destroyed(made->phGraph_out[i]);
  graph_bodies_created(*node, (u32)made->type, made->phGraph_out, made->size);
}

void graph_replay_close(const struct tscope_thread *thread, u64 *dur, u64 start, i32 result) {
  if (dur && result) {
    struct tscope_graph_replay_record *record = tscope_span_record(dur);
    __atomic_store_n(&record->result, result, __ATOMIC_RELAXED);
  }
  tscope_span_close(thread, dur, start);
}
