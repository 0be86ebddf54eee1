/* SPDX-License-Identifier: MIT
 *
 * Parts of the program compared over ranks: slow_parts.c, which compares, and slow_reasons.c, which
 * says what explains that a rank is late.
 */
#pragma once

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "analyses/thresholds.h"
#include "base/persistence.h"

/* A part on a rank. */
struct entry {
  const struct sampled_part *part;
  u32 rank;
};

/* Time and steps in each slice. */
struct sums {
  double ns[SLICES], steps[SLICES], seen[SLICES];
};

struct difference {
  double ms, peers_ms, more_ms, error_ms, chance;
};

/* Of a rank. */
struct best_parts {
  double own_ms;     /* at any line, a step */
  u32 n[PART_KINDS]; /* parts seen */
  const struct sampled_part *part[PART_KINDS];
  struct difference of[PART_KINDS];
  const struct sampled_part *next; /* the line with the next largest difference */
  struct difference of_next;
  const struct sampled_part *alone; /* of the lines at which its peers are hardly ever, the one
                                       that takes most beside waits for a core */
  struct difference of_alone;
  bool lacks_cores;               /* of a straggler: that explains it, see lacks_cores() */
  bool before;                    /* compared are the steps before those in which it is late */
  bool compared[TRAINING_SLICES]; /* slices with a step in which the rank is late */
  double late_share;              /* of the steps in these slices */
};

struct comparison {
  struct analysis *a;
  struct entry *all; /* by part */
  u32 n;
  double steps[SLICES]; /* of all ranks that count as peers */
  u32 peers;
  struct best_parts *best;               /* [n_ranks] */
  bool before;                           /* of those that are late, the steps before are compared */
  struct sums own, others, all_peers;    /* of the part and the rank that are compared */
  struct persistence all_follow, follow; /* how a peer's time there follows from slice to slice */
};

static inline const struct rank_parts *parts_of(const struct comparison *c, u32 rank) {
  return &c->a->line_sums[rank].parts;
}

/* Stragglers are nobody's peers, unless all are. */
static inline bool is_peer(const struct comparison *c, u32 rank) {
  return !c->a->results->ranks[rank].straggler || c->peers == 0;
}

/* Whether a step of training is one in which the rank is late, where it is so in some only. */
static inline bool is_late_in(const struct comparison *c, u32 rank, u32 step) {
  const struct analysis *a = c->a;
  return straggler_is_late_in(&a->results->ranks[rank], a->model->steps.first + step);
}

/* Whether it is enough of the time by which a straggler is late. */
static inline bool explains(const struct rank_result *rank, const struct difference *d) {
  return d->more_ms >= REASON_SHARE * rank->late_a_step_ms;
}

/* Whether its peers are hardly ever there. */
static inline bool is_of_one(const struct difference *d) {
  return d->peers_ms < LINE_OF_ONE * d->ms;
}

/* As many parts are assumed to be compared where fewer were seen. */
#define PARTS_AT_LEAST 10.0

/* The rank against its peers at all lines together. */
struct difference difference_of_lines(struct comparison *c, u32 rank);

/* Says of a rank whose parts were compared what takes longer there, and of a straggler why. */
void slow_reasons_set(struct comparison *c, u32 rank);
