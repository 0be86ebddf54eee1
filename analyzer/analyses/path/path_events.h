/* SPDX-License-Identifier: MIT
 *
 * What path_replay.c replays: the starts and ends of a sample's nodes in order, and how the time of
 * each follows from those before it.
 */
#ifndef TSCOPE_PATH_EVENTS_H
#define TSCOPE_PATH_EVENTS_H

#include "analyses/path/path_graph.h"

enum event_rule {
  EVENT_FIXED,          /* a start that nothing recorded decides: `delay` is its time */
  EVENT_AFTER,          /* a start, `delay` after all that it waits for */
  EVENT_AFTER_GAP,      /* a start on the host, `delay` of own time after the node before */
  EVENT_ARRIVED,        /* all members of join `node` have started */
  EVENT_WAIT_ENDS,      /* the end of a wait, `delay` after all that it waits for */
  EVENT_COLLECTIVE_ENDS /* `length` after all of its joins */
};

struct event {
  u32 node;
  u32 key, rank;           /* the node's */
  u32 launch;              /* node that must have launched it, INDEX_NONE */
  u32 first_dep, n_deps;   /* in the graph's deps; of a collective's end in its `joined` */
  i64 delay, length;       /* ns; of a node its duration */
  i64 call;                /* so much of the launch's call had passed when it began, ns */
  u8 kind, phase;          /* the node's */
  u8 rule;                 /* enum event_rule */
  bool on_gpu : 1;         /* the rank uses one */
  bool after_previous : 1; /* waits for the node before, too */
  bool latency : 1;        /* the delay is that of a launch */
  bool ends_alone : 1;     /* a start, of a node whose end no other event decides */
  bool awaited_batch : 1;
  bool ended_before : 1; /* a wait's end: what it waited for had ended when it began */
};

/* Puts the events in order; to be freed by the caller. Returns how many dependencies contradict
 * each other. */
u64 events_new(const struct sample_graph *g, struct event **events, u32 *n);

static inline i64 later(i64 a, i64 b) {
  return a > b ? a : b;
}

#endif
