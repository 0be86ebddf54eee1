/* SPDX-License-Identifier: MIT
 *
 * Which rank called which collective of which group, in which order, and how far it got: what is
 * known about a job that hangs. Both PyTorch's flight-recorder dumps and tscope's own traces are
 * converted to this. One verdict is made from it (analyses/hang/verdict.h).
 *
 * Calls are identified by their group and sequence number, never by their position: recorders keep
 * only the last calls, and each rank's record begins at another one. What is in no rank's record is
 * unknown. Everything lives in the arena into which it was read.
 */
#pragma once

#include "base/arena.h"
#include "model/span_call_sites.h"

#define SEQ_UNKNOWN (-1ll)

/* How far a call got that the host made: F(STATE, its word, what it means). Of one that is CALLED
 * that is not known; one that is SCHEDULED is not known to have begun on the device. */
#define TSCOPE_FLIGHT_STATES(F)                                                                    \
  F(CALLED, "called", "called")                                                                    \
  F(SCHEDULED, "scheduled", "scheduled, not begun")                                                \
  F(STARTED, "started", "begun, not completed")                                                    \
  F(COMPLETED, "completed", "completed")

enum flight_state {
#define F(STATE, ...) FLIGHT_##STATE,
  TSCOPE_FLIGHT_STATES(F)
#undef F
};
extern const struct flight_state_words { const char *word, *meaning; } flight_states[];

/* Innermost first. Calls made at one place share one. */
struct flight_stack {
  const struct call_frame *frames;
  u32 n;
};

#define FLIGHT_NO_THREAD UINT64_MAX

struct flight_call {
  u32 rank;  /* index into flight.ranks */
  u32 group; /* index into flight.groups */
  i64 seq; /* in the group: the same on all ranks for collectives; this rank's own for a message */
  u64 order;      /* of all calls of the rank */
  i64 created;    /* ns: of the wall clock in dumps, of the model's axis in traces; NS_UNKNOWN */
  const char *op; /* all_reduce, send, ..., coalesced */
  const char *in, *out; /* sizes in the recorder's words; equal texts are one; NULL not known */
  const char *in_type, *out_type;   /* element types, likewise */
  u64 in_count, out_count;          /* elements, all tensors together */
  const struct flight_stack *stack; /* NULL if not known */
  const char *where;                /* phase or range it was called in; NULL if not known */
  u64 thread;     /* that made it, by a number of its rank's; FLIGHT_NO_THREAD if not known */
  u32 peer;       /* of a message: the other rank, an index into flight.ranks; else INDEX_NONE */
  u32 root;       /* of a broadcast, reduce, gather or scatter: likewise; dumps do not have it */
  u8 state;       /* enum flight_state */
  u8 like;        /* enum tscope_op that its words mean; 0: another one */
  bool message;   /* send or recv */
  bool sends;     /* a message's direction */
  bool closes;    /* the entry that ends a coalesced group, and stands for it */
  bool coalesced; /* part of a coalesced group; shares its sequence number */
};

static inline bool flight_call_is_pending(const struct flight_call *call) {
  return call->state == FLIGHT_SCHEDULED || call->state == FLIGHT_STARTED;
}

/* How far a rank got in a group by its own count, which may go beyond the calls that are kept.
 * SEQ_UNKNOWN if not known. */
struct flight_progress {
  u32 rank, group;
  i64 called, completed;
};

/* What NCCL reports about a rank's communicator while the job stalls. */
struct flight_nccl {
  u32 rank, group;
  i32 result; /* its asynchronous error, 0 for none */
};

struct flight_group {
  const char *name; /* as the job names it */
  const char *desc; /* what it is for; NULL if not known */
  u32 *members;     /* [n_members] indices into flight.ranks, in the order of ranks of the group */
  u32 n_members;
  bool members_known; /* else those are the ones seen in it */
};

static inline const char *flight_group_label(const struct flight_group *group) {
  return group->desc ? group->desc : group->name;
}

struct flight_rank {
  u32 rank; /* global */
  const char *host;
  const char *path;
  bool seen;       /* it left a record */
  bool ended;      /* it ended normally: it will never make the calls that it did not make */
  bool silent;     /* its signs of life stopped long before those of others */
  bool kept_all;   /* the beginning of its record was not dropped */
  const char *why; /* what is wrong with its record, NULL if nothing */
  u32 first_call, n_calls; /* in flight.calls, by order */
  i64 first_created;       /* of what is kept; NS_UNKNOWN */
  i64 last_seen;           /* last sign of life, on the calls' clock; NS_UNKNOWN */
  const char *where;       /* what it was last doing, outside any collective; NULL */
};

struct flight_record {
  const char *source;        /* "flight-recorder dumps", "tscope traces" */
  const char *version;       /* of the dumps; NULL */
  struct flight_rank *ranks; /* sorted by global rank; includes members that left no record */
  u32 n_ranks;
  struct flight_group *groups;
  u32 n_groups;
  struct flight_call *calls; /* by (rank, order) */
  u32 n_calls;
  struct flight_progress *progress; /* by (group, rank) */
  u32 n_progress;
  struct flight_nccl *nccl; /* by rank; dumps do not have it */
  u32 n_nccl;
  i64 end; /* when the record of the last rank ends, if that shows how long a call has been pending;
              NS_UNKNOWN */
};

/* What traces have of the run's calls, made in `arena`; NULL if the input has no traces. What dumps
 * have is model.flight. */
const struct flight_record *model_traced_calls(const struct model *model, struct arena *arena);
