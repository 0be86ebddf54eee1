/* SPDX-License-Identifier: MIT
 *
 * How each rank ended; outcome/ says who ended the run.
 *
 *   causes.c   how a rank ended, when, and whether by itself or because of another
 *   calls.c    who called fewer collectives than its peers, or more, and which
 *   outlived.c who fell silent first, where the clocks cannot tell
 *   run_end.c  all of these, in the order in which the ranks ended
 */
#pragma once

#include "analyses/analyses.h"
#include "analyses/analysis.h"
#include "analyses/queries.h"

enum ending_class {
  ENDING_IN_ORDER,  /* status 0 */
  ENDING_OWN,       /* for its own reason: an exception, an exit status, a signal */
  ENDING_LOST_PEER, /* because it lost another rank */
  ENDING_STOPPED,   /* by its launcher, or by whoever sent it the signal to end */
  ENDING_SILENT,    /* its trace stops, and no record says why */
  ENDING_OLDER,     /* its trace stops because it was copied before those of its peers */
  ENDING_NONE,      /* no record at all */
};

struct ending {
  u32 rank; /* index into model.ranks; INDEX_NONE: no record */
  u32 global;
  enum ending_class what;
  i64 from; /* when the reason for its end came, or the last moment before it that is known */
  i64 at;   /* it had ended by then, as far as is known */
  enum end_cause cause;
  const char *why;                   /* in words; NULL */
  const struct arrival *last;        /* collective or message; NULL */
  const struct arrival *last_of_all; /* that all members of a group make: the last in time; NULL */
  bool pending;                      /* the last had not returned */
  bool killed_late;                  /* STOPPED, but only by SIGKILL, long after another */
  bool said_lost;                    /* its trace stops after it wrote that it lost another rank */
};

/* Fills in everything for a rank that left a record. */
void ending_of_rank(struct analysis *a, u32 rank, struct ending *ending);

/* Whether it ended with Python's words for a SIGINT (Ctrl-C, or a launcher's): where it comes is
 * where the program was, not why it ended. */
bool was_interrupted(const struct rank_end *end);

/* When it told that a peer of it was gone; NS_UNKNOWN. */
i64 told_loss_at(const struct rank_end *end);

/* Where the program raised the exception that it ended with: "train.py:38 (load)"; NULL if that is
 * not known. In the results' arena. */
char *exception_place(struct analysis *a, const struct rank_end *end);

/* [n_ranks] The ranks that fell silent first: every other one outlived them by at least `apart`
 * (ns), whatever the clocks say. NULL if that is not certain of any. `of` [n_ranks]: how each
 * ended. */
bool *outlived_first(const struct analysis *a, const struct ending *const *of, i64 apart);

struct call_counts {
  u32 *odd; /* [n_odd] indices into model.ranks: not as many calls as most members */
  u32 n_odd;
  char *words; /* who left out which call, or made one too many; NULL if all made as many */
};

/* What is known of all ranks; analysis.endings, NULL where the input does not record ends. */
struct endings {
  struct ending *at; /* in the order in which they ended */
  u32 n;
  struct call_counts counts;
};

/* Compares how many collectives the members of each communicator called. */
void calls_compare(const struct analysis *a, struct call_counts *counts);
