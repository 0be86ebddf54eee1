/* SPDX-License-Identifier: MIT
 *
 * An all-to-all that a program makes of sends and receives, as PyTorch does: each member puts its
 * messages into one group of calls, also the part that it keeps, as a message to itself. Parts of
 * zero elements are left out. To NCCL they are messages. To whoever waits they are one collective.
 *
 * Groups that exchange messages belong together. They are an all-to-all if each rank has one of
 * them, and
 *   - somebody sends to itself, which nothing else does, and there is more than one sender and more
 *     than one receiver (else it is a scatter or a gather); or
 *   - each sends to and receives from all others, of at least four ranks (of fewer, the neighbours
 *     in a ring are all others).
 * Where this cannot be told they stay messages.
 */
#pragma once

#include "join/joining.h"

enum { LEAST_WITHOUT_OWN = 4 }; /* ranks of an exchange in which nobody sends to itself */

/* The messages of one rank on one communicator in one group. */
struct bundle {
  u32 rank, comm, group; /* comm: index into model.comms */
  u32 first, last;       /* its messages are among these calls */
  u32 previous;          /* of this rank and communicator; INDEX_NONE */
  u32 before;            /* how many collectives of the communicator its rank had called by then */
  u32 targets, sources;  /* how many other ranks it sends to and receives from */
  u32 exchange;          /* index into exchanges.list; INDEX_NONE */
  u64 sent, received;    /* elements, to and from other ranks */
  u64 kept;              /* elements to itself */
  u64 place;             /* order on the communicator: `before` of all, then a counter */
  u8 dtype;
  bool keeps; /* has a message to itself */
  bool lone;  /* cannot be part of an exchange: outside any group, or of several types */
  bool more;  /* its rank called more on this communicator later */
};

/* All bundles that exchange messages with each other. */
struct exchange {
  u32 comm, seq;
  u32 members;        /* ranks whose bundles are here */
  u32 absent;         /* ranks that they name and whose bundles are not */
  u32 source, target; /* one that sends to another, and one that receives; INDEX_NONE */
  u32 last_rank;      /* of the bundles looked at so far */
  u64 place;
  bool sources, targets; /* there are more than one of them */
  bool keeps;            /* somebody sends to itself */
  bool sparse;           /* not each sends to and receives from all others */
  bool blames;           /* a message's other side is not there, though its rank is */
  bool unsettled;        /* nothing shows that it is over */
  bool refused;
};

struct exchanges {
  struct model *model;
  VECTOR(struct bundle) bundles; /* by rank, in order of time */
  VECTOR(struct exchange) list;  /* once numbered: by communicator and number, none refused */
};

/* Finds them, with their places in the order of calls on each communicator. Costs one look at each
 * call where no group has such messages. */
void find_exchanges(struct exchanges *all, unsigned threads);
