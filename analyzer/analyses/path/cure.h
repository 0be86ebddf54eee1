/* SPDX-License-Identifier: MIT
 *
 * What a replay of the steps changes (path_replay.h), and what it then saves.
 */
#pragma once

#include "format/tscope_format.h"

enum change_kind {
  CHANGE_RANKS = 1,     /* `ranks` do their work as fast as the median of all others */
  CHANGE_EVERY_RANK,    /* every rank as the median of all, of an even number as the faster */
  CHANGE_COMMUNICATION, /* transfers; ranks still wait for each other */
  CHANGE_TRANSFERS,     /* of one operation (`of`) on one communicator (`which`); of messages those
                           between `from` and `to` */
  CHANGE_COMPUTE,       /* kernels; without a GPU the host's phases */
  CHANGE_COPIES,        /* of memory by the device, and fills */
  CHANGE_FILLS,         /* only these */
  CHANGE_GPU_AWAY,      /* what work waits for a GPU that does nothing of its rank */
  CHANGE_LAUNCHES,      /* the host of a GPU, but for input; and launch latency */
  CHANGE_INPUT,         /* the data phase */
  CHANGE_OUTSIDE,       /* the host in no phase */
  CHANGE_ASLEEP,        /* of that, where each rank's CPU does nothing */
  CHANGE_PHASE,         /* the host in phase `which`, and what it launches there */
  CHANGE_LINE,          /* the host's waits at the line with line_key() `which` */
  CHANGE_LONG_STEPS,    /* steps longer than the median take as long as it */
  CHANGE_NAME           /* work named `which` (path_labels.h), of enum node_kind `of` */
};

/* A class of work keeps `left` of its time: 0 takes it away. */
struct cure_change {
  enum change_kind kind;
  u32 which, of;
  double left;
  const bool *ranks;     /* [n_ranks] CHANGE_RANKS */
  u32 since;             /* of which only steps from this one on; 0: all */
  const double *left_of; /* [n_ranks] CHANGE_ASLEEP */
  const bool *from, *to; /* [n_ranks] senders and receivers; NULL: no messages */
  bool both_ways;        /* or the other way round */
};

/* Changes that are made together; none: not known what to change. */
struct cure {
  const struct cure_change *changes;
  u32 n;
};

/* What a step is shorter, in ms: mean and quartiles over the steps of the samples, and the mean's
 * standard error. Never negative. NAN if there is no replay, or none that can be relied on. */
struct saving {
  double ms, low_ms, high_ms, error_ms;
  double hidden_ms;      /* and how much less communication is then exposed; if asked for */
  double correlation;    /* of what neighbouring steps save, base/persistence.h */
  u32 steps, half_saved; /* and of how many steps that is; half_saved: of at least half the mean */
};

/* A straggler, or all of a host, or of a stage of a pipeline: what slows a host slows its ranks
 * together, and taking it from one of them alone saves nothing. */
struct straggler_group {
  bool *ranks;         /* [n_ranks] */
  u32 n, first, worst; /* indices of ranks; worst: for which the others wait longest */
  struct cure cure;    /* by which the group was judged; n = 0: it was not */
  struct saving saving;
  bool with_others; /* saved only if all stragglers that were judged are mended: what this group
                       adds to the others */
};
