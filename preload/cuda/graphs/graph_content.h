/* SPDX-License-Identifier: MIT
 *
 * What a graph holds. Communicators are chained entries of a pool of fixed size, since most graphs
 * have none and few have many.
 */
#pragma once

#include "record/hook.h"

/* Most communicators that are distinguished in one graph. This is more than all of Megatron's
 * parallel groups of one rank together; a record has room for 125. */
enum { GRAPH_COMMS = 80 };

struct graph_content {
  u32 captured; /* number of the capture, 0: not seen */
  u32 nodes;    /* TSCOPE_UNKNOWN where not known, and the next three */
  u32 kernels;
  u32 memcpys;
  u32 memsets;
  u32 collectives;
  u32 n_comms;
  u32 first_comm; /* in the pool */
};

/* What a graph has captured on one communicator. */
struct graph_comm {
  u32 *next_collective, *next_transfer; /* the communicator's counters */
  u32 comm;                             /* its number */
  u32 collectives, transfers;
  u32 next; /* in the pool, 0 at the end */
};

/* All following functions except the next two are called with the graphs' lock held. */

/* The first communicator of a content, and the next; NULL at the end. */
const struct graph_comm *graph_comm_first(const struct graph_content *content);
const struct graph_comm *graph_comm_next(const struct graph_comm *comm);

/* A communicator's entry, made if there is none. NULL if there is no room: then calls captured on
 * it get no numbers. */
struct graph_comm *graph_content_comm(struct graph_content *content, u32 comm);

/* Returns the communicators to the pool and empties the content. */
void graph_content_clear(struct graph_content *content);

/* Gives `to`, which is empty, what `from` holds. */
void graph_content_copy(struct graph_content *to, const struct graph_content *from);

/* Adds the content of `child` to `outer`. Fills `places` (room for GRAPH_COMMS) with the index of
 * the child's first call on each communicator there; returns the number of communicators. */
u32 graph_content_add(struct graph_content *outer, const struct graph_content *child,
                      struct tscope_graph_comm *places);
