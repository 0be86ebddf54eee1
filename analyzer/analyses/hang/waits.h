/* SPDX-License-Identifier: MIT
 *
 * The graph of waiting: its nodes are ranks, and the calls that block them. An edge
 * leads from a rank to a call that it is in, and from a call to a rank that it waits for.
 */
#pragma once

#include "analyses/hang/verdict.h"

/* A call in which at least one member is stuck: a collective, or the messages of a channel. */
struct blocked_call {
  u32 group;
  i64 seq;
  u32 call;        /* as the first of the ranks in it made it; index into flight.calls */
  u32 channel;     /* index into the channels; INDEX_NONE for a collective */
  u32 members_in;  /* that are in it */
  u32 n_waits_for; /* members that it waits for */
  u32 absent;      /* of these, ranks with a record that does not have the call */
  u32 unrecorded;  /* and those without a record */
  u32 done, unknown;
  u32 presumed; /* of unknown, members without a record that must have made it */
};

struct wait_edge {
  u32 from, to;
};

struct wait_graph {
  struct call_index *index;
  u32 ranks, nodes;
  VECTOR(struct blocked_call) blocked_calls;
  VECTOR(struct wait_edge) edges; /* by (from, to) */
  u32 *first_edge;                /* [nodes + 1] */
  u32 *cycle;                     /* [nodes]: the cycle of waits that it is in */
  u32 cycles;
  u32 *ranks_in_cycle; /* [cycles] */
  bool *waits_outside; /* [cycles]: it waits for something outside itself */
};

void graph_make(struct wait_graph *g, struct call_index *index, const channel_list *channels);
void graph_release(struct wait_graph *g);

/* Whether any call that a rank is in waits for another rank. */
bool graph_waits_for_others(const struct wait_graph *g, u32 rank);

/* wait_list.c: fills in the check's list of waits. */
void waits_list(const struct wait_graph *g, struct collective_check *check);

/* The ranks in a call. */
u32 *graph_members_in(const struct wait_graph *g, u32 blocked, u32 *n);
