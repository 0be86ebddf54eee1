/* SPDX-License-Identifier: MIT
 *
 * What a graph holds. Communicators lie in a pool of fixed size, chained, since most graphs have
 * none and few have many.
 */
#ifndef TSCOPE_GRAPH_CONTENT_H
#define TSCOPE_GRAPH_CONTENT_H

#include "record/hook.h"

/* Communicators in one graph that are distinguished. More than Megatron's parallel groups of one
 * rank together; a record has room for 125 behind it. */
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

/* All of the following but the next two are called with the graphs' lock held. */

/* The first communicator of a content, and the next; NULL at the end. */
const struct graph_comm *graph_comm_first(const struct graph_content *content);
const struct graph_comm *graph_comm_after(const struct graph_comm *comm);

/* A communicator's entry, made if there is none. NULL if there is no room: what is captured on it
 * gets no numbers then. */
struct graph_comm *graph_content_comm(struct graph_content *content, u32 comm);

/* Gives the communicators back and leaves nothing in it. */
void graph_content_clear(struct graph_content *content);

/* Gives `to`, which is empty, what `from` holds. */
void graph_content_copy(struct graph_content *to, const struct graph_content *from);

/* Adds what `child` holds to `outer`. In `places` of GRAPH_COMMS it says from which index on the
 * child's calls count there; returns on how many communicators. */
u32 graph_content_add(struct graph_content *outer, const struct graph_content *child,
                      struct tscope_graph_comm *places);

#endif
