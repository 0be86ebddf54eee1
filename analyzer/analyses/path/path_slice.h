/* SPDX-License-Identifier: MIT
 *
 * Shared by slice.c, which makes nodes of a rank's spans, and slice_links.c, which says what they
 * waited for.
 */
#ifndef TSCOPE_SLICE_H
#define TSCOPE_SLICE_H

#include "analyses/path/path_graph.h"
#include "analyses/queries.h"

#define MAX_DEPTH 16

/* A lane while its spans are taken. */
struct lane_state {
  u32 base, next; /* of its nodes */
  i64 covered;    /* host: up to here there are nodes, or a gap that the next node takes */
  u32 leaf;       /* latest call, INDEX_NONE */
  u32 shift;      /* by how much its nodes moved down when unused room was closed */
  u32 depth;
  struct {
    i64 end;
    u32 key, label; /* of its own time */
    u8 phase;
    bool op;
  } open[MAX_DEPTH];
};

/* `from` must end before `node` starts, or, where it is blocked, before it ends. */
struct dep {
  u32 node, from;
};

struct cutter {
  struct analysis *a;
  const struct timeline *t;
  struct arena scratch;
  u32 *name_keys; /* by name, 0: not computed yet */
  u32 n_names;
  struct lane_state *lanes;
  /* of the sample being cut */
  struct slice *slice;
  u32 *carried; /* spans already running at its begin */
  u32 n_carried;
  u32 low, high; /* spans that started in it */
  u32 *node_of;  /* by position: carried, then low.. */
  struct input_pause *pauses;
  u32 n_pauses;
  int error; /* found where it could not be returned */
  struct dep *thread_deps;
  u32 n_thread_deps;
  struct dep *inferred; /* between streams: path_inferred.c */
  u32 n_inferred;
};

/* Spans of the sample are numbered by position: those carried into it, then those that start in
 * it. */
static inline u32 span_at(const struct cutter *c, u32 position) {
  return position < c->n_carried ? c->carried[position] : c->low + position - c->n_carried;
}

/* slice_links.c: launches, event waits, waits of the host and of threads for each other. 0, or
 * -ENOMEM. */
int slice_link(struct cutter *c, u32 n_spans);

/* path_inferred.c: fills `inferred` by what is linked already. 0, or -ENOMEM. */
int slice_infer(struct cutter *c);

#endif
