/* SPDX-License-Identifier: MIT
 *
 * How long each kind of work takes on each rank of a sample, compared with its peers.
 */
#ifndef TSCOPE_PATH_PEERS_H
#define TSCOPE_PATH_PEERS_H

#include "analyses/path/path_graph.h"

struct peers {
  double *work;    /* [key * n_ranks + rank] its time, ns */
  double *late;    /* [n_ranks] by how much its peers wait for it at the deciding collectives, ns */
  float *as_peers; /* likewise: the share that is left if the rank is as fast as its peers */
  float *as_median; /* and if every rank is as fast as the median of all */
  bool alike;       /* the ranks do the same, but for a little */
};

/* `steps`: in the sample. */
void peers_compare(struct peers *p, const struct sample_graph *g, const struct results *r,
                   u32 steps);
void peers_free(struct peers *p);

/* What is left if several ranks are together as fast as the median of all others; to be freed by
 * the caller. */
float *peers_compare_group(const struct peers *p, const struct sample_graph *g, const bool *group);

#endif
