/* SPDX-License-Identifier: MIT
 *
 * The record of a replay that holds collectives: which numbers they got.
 */
#include <stddef.h>

#include "graph_record.h"

struct replay {
  struct tscope_graph_replay_record record;
  struct tscope_graph_comm comms[GRAPH_COMMS];
};

u64 *graph_replay_open(struct tscope_thread *thread, u64 start, u16 stream, u32 graph,
                       const struct graph_content *content) {
  struct replay replay = {.record = {.graph = graph, .comms = content->n_comms}};
  for (u32 i = 0; i < content->n_comms; i++) {
    const struct graph_comm *comm = &content->comms[i];
    replay.comms[i] = (struct tscope_graph_comm){
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
  }
  u32 bytes = (u32)(sizeof replay.record + content->n_comms * sizeof *replay.comms);
  return tscope_span_open(thread, start, TSCOPE_REC_GRAPH_REPLAY, stream, &replay, bytes);
}

void graph_replay_close(const struct tscope_thread *thread, u64 *dur, u64 start, i32 result) {
  if (result) {
    struct tscope_graph_replay_record *record =
        (void *)((u8 *)dur - offsetof(struct tscope_graph_replay_record, dur));
    __atomic_store_n(&record->result, result, __ATOMIC_RELAXED);
  }
  tscope_span_close(thread, dur, start);
}
