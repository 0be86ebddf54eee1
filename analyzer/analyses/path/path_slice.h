/* SPDX-License-Identifier: MIT
 *
 * Shared by path_slice.c, which makes nodes from a rank's spans, and path_slice_links.c, which
 * finds what they waited for.
 */
#pragma once

#include "analyses/path/path_graph.h"
#include "analyses/queries.h"

#define MAX_DEPTH 16

/* A lane while its spans are added. */
struct lane_state {
  u32 base, next; /* of its nodes */
  i64 covered;    /* host: up to here there are nodes, or a gap that belongs to the next node */
  u32 leaf;       /* latest call, INDEX_NONE */
  u32 shift;      /* by how much its nodes moved down when unused room was closed */
  u32 depth;
  struct {
    i64 begin, end; /* begin: phase_begin(); what is before is of no phase */
    u32 key, label; /* of its own time */
    u8 phase;
    bool op, batch; /* batch: input that other processes prepare */
    u32 piece;      /* node of its longest own time; INDEX_NONE */
  } open[MAX_DEPTH];
};

/* `from` must end before `node` starts; or before it ends, if `node` is blocked. */
struct dep {
  u32 node, from;
};

struct slice_builder {
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
  u32 n_pauses, pause; /* that was looked at last */
  struct dep *thread_deps;
  u32 n_thread_deps;
  struct dep *inferred; /* between streams: path_inferred.c */
  u32 n_inferred;
};

/* Spans of the sample have numbers by position: first those that were running when it began, then
 * those that start in it. */
static inline u32 span_at(const struct slice_builder *c, u32 position) {
  return position < c->n_carried ? c->carried[position] : c->low + position - c->n_carried;
}

/* path_slice_links.c: launches, event waits, waits of the host and of threads for each other. */
void slice_link(struct slice_builder *c, u32 n_spans);

/* path_inferred.c: fills `inferred` from what is linked already. */
void slice_infer(struct slice_builder *c);

/* path_batches.c: how many processes prepare input, and how busy they are. */
void slice_watch_workers(struct slice_builder *c);
