/* SPDX-License-Identifier: MIT
 *
 * Collectives inside CUDA graphs: captured once, called again by each replay. What is captured is
 * collected while the retained records are read, and becomes ordinary calls when all of it is
 * known.
 */
#pragma once

#include "model/rank_events.h"

/* The first number of the calls of a graph on each of its communicators. */
struct graph_comms {
  const struct tscope_graph_comm *at; /* in the arena of the rank's events */
  u32 n;
};

/* A call in a captured graph, or another captured graph in it. */
struct captured_item {
  i64 time;     /* at which it got there */
  u32 captured; /* the graph it is in */
  u32 order;    /* in which it was read */
  u32 child;    /* number of the captured graph that it is; 0: it is a call */
  struct graph_comms comms;
  struct tscope_graph_collective_record call;
};

struct called_replay {
  i64 start, end; /* end NS_UNKNOWN if the launch never returned */
  u32 graph, thread;
  u16 stream;
  bool failed;
  struct graph_comms comms;
};

struct graph_replays {
  VECTOR(struct captured_item) items;
  VECTOR(struct called_replay) replays;
};

/* Adds the calls of all replays to the retained records, unsorted; those of one replay a nanosecond
 * apart, in the order of capture, as far as the budget for them goes. */
void graph_replays_expand(struct graph_replays *graphs, struct rank_events *events);

void graph_replays_release(struct graph_replays *graphs);

/* Whether a part of the graph runs as often as the GPU decides. */
bool rank_graph_is_conditional(const struct rank_events *events, u32 graph);

/* NULL if there is none of that number. */
const struct rank_graph *rank_find_graph(const struct rank_events *events, u32 graph);
