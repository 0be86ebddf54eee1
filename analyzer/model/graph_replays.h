/* SPDX-License-Identifier: MIT
 *
 * Collectives inside CUDA graphs: captured once, called again by each replay. What is captured is
 * collected while the spine is read and becomes calls like any other when all of it is known.
 */
#ifndef TSCOPE_GRAPH_REPLAYS_H
#define TSCOPE_GRAPH_REPLAYS_H

#include "spine.h"

struct captured_call {
  u32 captured; /* the captured graph */
  u32 order;    /* in which it was read */
  struct tscope_graph_collective_record record;
};

struct executable {
  u32 graph, captured;
};

struct replay {
  i64 start, end; /* end NS_UNKNOWN if the launch never returned */
  u32 graph, thread, n_comms;
  u16 stream;
  bool failed;
  struct tscope_graph_comm *comms; /* in the spine's arena */
};

struct graph_replays {
  VECTOR(struct captured_call) captured;
  VECTOR(struct executable) executables;
  VECTOR(struct replay) replays;
};

/* One record of a graph; `span` is a replay's start and end. False when memory ran out. */
bool graph_replays_take(struct graph_replays *graphs, struct arena *arena,
                        const struct tscope_record *record, struct interval span, u32 thread);

/* Adds the calls of all replays to the spine, unsorted; those of one replay a nanosecond apart, in
 * the order of capture. 0, or -ENOMEM. */
int graph_replays_expand(struct graph_replays *graphs, struct spine *spine);

void graph_replays_release(struct graph_replays *graphs);

#endif
