/* SPDX-License-Identifier: MIT
 *
 * How long each kind of work takes on each rank of a sample, compared with its peers.
 */
#pragma once

#include "analyses/path/path_graph.h"

/* Work is compared by its key, but a rank is only as much slower as it is in all work of a class
 * together: on a busy machine each rank is slower in some of it. */
enum work_class { CLASS_HOST, CLASS_KERNELS, CLASS_COPIES, CLASS_OPEN, CLASSES };

enum work_class work_class_of(const struct sample_graph *g, u32 key);

/* Work that is summed between two collectives: a phase of the host, or all else of one class. */
#define WORK_GROUPS (HOST_KEYS + CLASSES)

/* path_even_steps.c: what is left of a rank's work in a row, which lies between two collectives, if
 * it is as much of what that rank usually does as it is on all ranks in that row. */
struct even_steps {
  u8 *step_of_node;                 /* [g->n] of the sample; NULL with the next */
  u32 *row_of_node;                 /* [g->n]; NULL: the sample has one step, and nothing changes */
  u8 *group_of_key;                 /* [g->n_keys] */
  bool may_be_waiting[WORK_GROUPS]; /* that no record shows */
  float *left;                      /* [(row * WORK_GROUPS + group) * n_ranks + rank] */
};

/* What a rank calls in most steps to communicate: how often, and a hash of in which order. */
struct calls {
  u32 n, order;
};

static inline bool calls_alike(struct calls one, struct calls other) {
  return one.n == other.n && one.order == other.order;
}

/* Where in a step the nodes of a rank are: before which of its calls they come. */
struct places {
  u32 n;        /* 0: not known */
  u16 *of_node; /* from the rank's first node on; NO_PLACE: of a step with other calls */
  float *left;  /* [key * n + place] of the time of its host in phases and in none */
};
#define NO_PLACE UINT16_MAX

struct peers {
  const struct analysis *a;
  struct sample sample;
  bool *late_in;   /* [rank * sample.n + step] those in which the rank is late; NULL: all, always */
  double *work;    /* [key * n_ranks + rank] its time, ns */
  double *late;    /* [n_ranks] by how much its peers wait for it at the deciding collectives, ns */
  float *as_peers; /* likewise: the share that is left if the rank is as fast as its peers */
  float *as_median;       /* and if every rank is as fast as the median of all */
  struct even_steps even; /* and what is left of it in a row, if all have an equal share */
  bool alike, call_alike; /* the ranks do the same, but for a little; and call it */
  struct calls
      *calls; /* [2 * n_ranks] of each collectives, and with messages; n 0: none, or steps differ */
};

void peers_compare(struct peers *p, const struct sample_graph *g, const struct analysis *a,
                   const struct sample *sample);
void peers_free(struct peers *p);

/* `of_key`: like peers.work */
void even_steps_new(struct even_steps *e, const struct sample_graph *g, u32 steps,
                    const double *of_key);
void even_steps_free(struct even_steps *e);

static inline float even_steps_left(const struct even_steps *e, const struct sample_graph *g, u32 n,
                                    u32 key) {
  if (!e->left)
    return 1;
  size_t row = (size_t)e->row_of_node[n] * WORK_GROUPS + e->group_of_key[key];
  return e->left[row * g->n_ranks + g->nodes[n].rank];
}

/* Whether a rank is late in the step of its node: else nothing changes if it is as its peers. */
static inline bool peers_late_in(const struct peers *p, const bool *late_in, u32 n, u32 rank) {
  u32 step = p->even.step_of_node ? p->even.step_of_node[n] : 0;
  return !late_in || late_in[(size_t)rank * p->sample.n + step];
}

/* What is left if several ranks are together as fast as the median of all others, in the steps in
 * which they are late; to be freed by the caller. */
float *peers_compare_group(const struct peers *p, const struct sample_graph *g, const bool *group,
                           const bool *late_in);

/* path_peers.c: of such ranks some, spread evenly. Returns how many. */
#define PEERS_ASKED 3u
u32 peers_choose(const struct sample_graph *g, const bool *of, u32 peers[PEERS_ASKED]);

/* path_uneven.c: what is left of the time of each node, [g->n], where some of these ranks are slow
 * only now and then; below 0: as `factor` says. NULL: all of it is so. To be freed by the caller.
 */
float *peers_uneven(const struct peers *p, const struct sample_graph *g, const bool *ranks,
                    const bool *late_in, const float *factor);

/* path_places.c: fills in `calls`. */
void peers_find_calls(struct peers *p, const struct sample_graph *g);

/* path_places.c: what is left by place, [n_ranks], of these ranks, where they call the same as some
 * peers, as much in each step. NULL: of none. To be freed by the caller. */
struct places *peers_by_place(const struct peers *p, const struct sample_graph *g,
                              const bool *ranks, const bool *late_in, const float *factor);

/* The steps in which ranks are late, if each is so from a step of the run on: like peers.late_in.
 * To be freed by the caller. */
bool *peers_late_since(const struct peers *p, u32 n_ranks, const u32 *since);
