/* SPDX-License-Identifier: MIT
 *
 * Whether the ranks of a job called the same collectives, and who holds it up if it hangs: a part
 * of struct results. Made from flight-recorder dumps, or from traces of a run that did not end.
 */
#ifndef TSCOPE_CHECK_RESULT_H
#define TSCOPE_CHECK_RESULT_H

#include <stdbool.h>

#include "format/tscope_format.h"

struct ledger;

struct check_group {
  const char *name, *desc;    /* desc is NULL if not said */
  double size;                /* members; NAN if not known */
  double recorded;            /* of them, that left a record */
  double matched, mismatched; /* collectives in the record */
  double pending;             /* members that are in a call that has not finished */
};

struct check_mismatch {
  const char *group; /* what it is for, or its name */
  const char *group_name;
  double seq;
  const char *op, *state, *detail;
  u32 *ranks; /* global */
  u32 n_ranks;
  u32 group_index; /* in the ledger */
  bool message;
};

struct check_suspect {
  u32 rank; /* global */
  const char *host;
  const char *reason, *evidence;
  const char *stack; /* innermost frames of the call it is in, one a line; NULL */
};

/* A call that ranks are in, and whom it waits for: global ranks. */
struct check_wait {
  const char *group, *group_name; /* as in struct check_mismatch */
  const char *op;
  double seq;
  u32 *ranks, *waits_for;
  u32 n_ranks, n_waits_for;
};

enum { CHECK_WAITS_LISTED = 60 };

struct collective_check {
  const struct ledger *ledger; /* NULL: nothing to check */
  const char *source;
  const char *verdict;     /* "hang", "desync", "hang and desync", "none", "cannot tell"; NULL */
  const char *cannot_tell; /* why, NULL if it can */
  struct check_group *groups;
  u32 n_groups;
  double matched, checked;           /* collectives and messages */
  struct check_mismatch *mismatches; /* the first of each group */
  u32 n_mismatches;
  struct check_mismatch *every_mismatch; /* all of them */
  u32 n_every_mismatch;
  double mismatches_found;  /* all */
  struct check_wait *waits; /* most ranks first, CHECK_WAITS_LISTED at most */
  u32 n_waits;
  double calls_waiting;           /* how many there are */
  struct check_suspect *suspects; /* to look at first */
  u32 n_suspects;
  u32 *hang_ranks, *desync_ranks; /* global */
  u32 n_hang_ranks, n_desync_ranks;
  const char *desync; /* the first disagreement, in words; NULL */
  double pending_ranks, victims;
  double pending_s; /* since the oldest pending call was made, to the end of the record; NAN */
  u32 *unrecorded;  /* members without a record, global */
  u32 n_unrecorded;
};

/* Nothing to check. */
struct collective_check collective_check_unknown(void);

#endif
