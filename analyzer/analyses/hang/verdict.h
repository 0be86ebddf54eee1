/* SPDX-License-Identifier: MIT
 *
 * What a flight record of calls says about a job that hangs or whose ranks went different ways:
 *
 * call_index.c: every call by (group, sequence), and how far each member got.
 *
 * match_calls.c: do the members of each call agree on what it is. match_messages.c: which send
 * meets which receive.
 *
 * waits.c: who waits for whom; wait_list.c: the same as a list. suspects.c: the ends of the chains
 * of waiting, to be examined first. group_order.c: where there is no such end, calls that all
 * members are in. nccl_reports.c: what NCCL itself reports.
 *
 * verdict.c: all of these in order, into results.check.
 */
#pragma once

#include "analyses/queries.h"
#include "analyses/results/results.h"
#include "base/arena.h"
#include "base/vector.h"
#include "model/flight_record.h"

/* The state of one member in one call of a group. */
enum call_state {
  CALL_ABSENT,    /* has not made it */
  CALL_PENDING,   /* is in it */
  CALL_DONE,      /* has completed it, or is past it */
  CALL_MADE,      /* has made it; it is not known whether it completed */
  CALL_UNKNOWN,   /* its record does not go back that far */
  CALL_UNRECORDED /* it left no record at all */
};

/* One member of one group. */
struct member_progress {
  u32 group, rank;
  i64 called;              /* newest sequence number known to have been called; SEQ_UNKNOWN */
  i64 completed;           /* newest known to have completed; SEQ_UNKNOWN */
  i64 oldest_pending;      /* the oldest one that is pending; SEQ_UNKNOWN if none is */
  u32 oldest_pending_call; /* index into flight.calls; INDEX_NONE */
};

/* One call as one member made it. The closing entry of a coalesced group represents the group. */
struct call_entry {
  u32 group, rank;
  i64 seq;
  u32 call; /* index into flight.calls */
};

struct call_index {
  const struct flight_record *flight;
  struct arena *arena;
  struct member_progress *members; /* by (group, rank) */
  u32 *first_place;                /* [n_groups + 1] */
  struct call_entry *entries;      /* collectives only, by (group, seq, rank) */
  u32 n_entries;
};

void call_index_make(struct call_index *index, const struct flight_record *flight,
                     struct arena *arena);

/* NULL where that rank is no member. */
struct member_progress *member_progress_of(const struct call_index *index, u32 group, u32 rank);

/* The entry of a rank in a group at a number; NULL. */
const struct call_entry *call_entry_of(const struct call_index *index, u32 group, i64 seq,
                                       u32 rank);

/* First entry at a number, and how many there are. */
const struct call_entry *call_entries(const struct call_index *index, u32 group, i64 seq, u32 *n);

enum call_state call_entry_state(const struct call_index *index,
                                 const struct member_progress *member, i64 seq, i64 created);

/* Collectives that no member can finish before all members have come; see op_is_barrier_like(). */
bool verdict_waits_for_all(const struct flight_call *call);

struct mismatch {
  enum match_state state;
  u32 group;
  i64 seq;
  bool pending; /* on any member */
  bool message;
  u32 *ranks; /* indices into flight.ranks: the odd ones out, or all if there are none */
  u32 n_ranks;
  bool minority; /* the ranks are few, against many that agree */
  char *detail;
  const char *op;
};

struct matching {
  u64 matched, calls; /* collectives that all members agree on, and all that were examined */
  VECTOR(struct mismatch) mismatches;
  u64 *matched_of; /* [n_groups] */
  u64 *mismatched_of;
};

void matching_make(struct call_index *index, struct matching *matching);

/* What goes from one rank to another in one group, as far as it is pending on either side. */
struct channel {
  u32 group, from, to;         /* INDEX_NONE: a side that is not known */
  u32 send, recv;              /* oldest pending call of each side; INDEX_NONE */
  bool send_alone, recv_alone; /* the other side has not made the matching call */
};

typedef VECTOR(struct channel) channel_list;

void messages_match(struct call_index *index, struct matching *matching, channel_list *channels);

/* Fills in nccl, nccl_errors and nccl_ranks of the check. */
void add_nccl_reports(const struct call_index *index, struct collective_check *check);

/* Whether NCCL reports an error of the communicator on a rank (index into flight.ranks): the error;
 * 0 for none, or if it is not known. */
i32 nccl_error_of(const struct flight_record *flight, u32 group, u32 rank);

struct suspect {
  u32 rank; /* index into flight.ranks */
  enum suspect_reason reason;
  struct suspect_facts facts;
};

typedef VECTOR(struct suspect) suspect_list;

/* A rank's calls, `n` of them; NULL if it has none. */
const struct flight_call *waits_calls_of(const struct flight_record *flight, u32 global, u32 *n);

/* What a rank that is in that wait called itself: of a message, the other side of it. NULL if it is
 * not known. */
const struct flight_call *waits_call_of(const struct flight_record *flight, u32 global,
                                        const struct check_wait *wait);

/* Fills in what the check says of waits and pending calls, and why there is no suspect. */
void waits_find_suspects(struct call_index *index, const struct matching *matching,
                         const channel_list *channels, struct collective_check *check,
                         suspect_list *suspects);

/* The whole of it, into results in `arena`. */
void verdict_of_flight_record(const struct flight_record *flight, struct arena *arena,
                              struct collective_check *check);

/* "all_to_all 20537 of EXPERT_MODEL_PARALLEL_GROUP (group 74)" */
char *verdict_call_name(const struct call_index *index, const struct flight_call *call);
char *verdict_name_call(const struct call_index *index, const char *op, i64 seq, u32 group);

/* The numbers in the job of indices into flight.ranks. */
u32 *verdict_global_ranks(const struct call_index *index, const u32 *ranks, u32 n);

/* "ranks 1-3, 7 and 2 more" of such indices. */
char *verdict_rank_list(const struct call_index *index, const u32 *ranks, u32 n);
