/* SPDX-License-Identifier: MIT */
#include "cuda/graphs/graph_content.h"

#include <string.h>

enum { MAX_COMMS = 16384 };

/* The first is never used: index 0 means none. Guarded by the graphs' lock, except the content of
 * an executable as long as it exists. */
static struct graph_comm pool[MAX_COMMS];
static u32 n_pool = 1, first_free;

const struct graph_comm *graph_comm_first(const struct graph_content *content) {
  return content->first_comm ? &pool[content->first_comm] : NULL;
}

const struct graph_comm *graph_comm_next(const struct graph_comm *comm) {
  return comm->next ? &pool[comm->next] : NULL;
}

static u32 allocate_entry(void) {
  u32 entry = first_free;
  if (entry)
    first_free = pool[entry].next;
  else if (n_pool < MAX_COMMS)
    entry = n_pool++;
  return entry;
}

struct graph_comm *graph_content_comm(struct graph_content *content, u32 comm) {
  u32 *at = &content->first_comm;
  for (; *at; at = &pool[*at].next)
    if (pool[*at].comm == comm)
      return &pool[*at];
  u32 entry = content->n_comms < GRAPH_COMMS ? allocate_entry() : 0;
  if (!entry) {
    tscope_count_lost(TSCOPE_LOSS_GRAPHS, 1);
    return NULL;
  }
  pool[entry] = (struct graph_comm){.comm = comm};
  content->n_comms++;
  *at = entry;
  return &pool[entry];
}

void graph_content_clear(struct graph_content *content) {
  for (u32 entry = content->first_comm, next; entry; entry = next) {
    next = pool[entry].next;
    pool[entry].next = first_free;
    first_free = entry;
  }
  memset(content, 0, sizeof(*content));
}

static void add_count(u32 *sum, u32 more) {
  *sum = *sum == TSCOPE_UNKNOWN || more == TSCOPE_UNKNOWN ? TSCOPE_UNKNOWN : *sum + more;
}

u32 graph_content_add(struct graph_content *outer, const struct graph_content *child,
                      struct tscope_graph_comm *places) {
  u32 n = 0;
  add_count(&outer->nodes, child->nodes);
  add_count(&outer->kernels, child->kernels);
  add_count(&outer->memcpys, child->memcpys);
  add_count(&outer->memsets, child->memsets);
  outer->collectives += child->collectives;
  for (const struct graph_comm *from = graph_comm_first(child); from;
       from = graph_comm_next(from)) {
    struct graph_comm *to = graph_content_comm(outer, from->comm);
    places[n] = (struct tscope_graph_comm){from->comm, TSCOPE_UNKNOWN, TSCOPE_UNKNOWN, 0};
    if (to) {
      places[n].first_collective = to->collectives;
      places[n].first_transfer = to->transfers;
      to->next_collective = from->next_collective;
      to->next_transfer = from->next_transfer;
      to->collectives += from->collectives;
      to->transfers += from->transfers;
    }
    n++;
  }
  return n;
}

void graph_content_copy(struct graph_content *to, const struct graph_content *from) {
  struct tscope_graph_comm places[GRAPH_COMMS];
  *to = (struct graph_content){.captured = from->captured};
  graph_content_add(to, from, places);
}
