/* SPDX-License-Identifier: MIT
 *
 * What happened to a job that stopped, to whom, and who only followed. hang/ knows the calls that
 * did not finish, stalls/ what the threads did, run_end/ how each rank ended; each of them only
 * gives facts.
 *
 *   culprits.c      who ended the run
 *   outcome.c       puts the three together: where they disagree, the end of the run decides
 *   outcome_words.c the sentences, all of them
 */
#pragma once

#include "analyses/run_end/run_end.h"

struct outcome {
  struct analysis *a;
  const struct ending *endings; /* those of run_end/ */
  u32 n;
  struct call_counts counts;
  bool *culprit;      /* [n] */
  bool ordered;       /* times of different ranks can be compared */
  bool stopped_first; /* the culprits are those that somebody stopped while the others went on */
};

u32 count_endings(const struct outcome *o, enum ending_class what);

/* Whether a rank (index into model.ranks) made other calls than its peers. */
bool is_odd(const struct outcome *o, u32 rank);

/* Whether its process did not run until just before its end. */
bool was_paused(const struct ending *ending);

/* Whether a trace stops, and no record says why, when somebody stopped a job that hung: its
 * launcher did not live to see that end. */
bool lived_to_the_stop(const struct outcome *o, const struct ending *ending);

/* Whether a library's abort is all that anybody ended with for a reason of its own: one that
 * receives something other than it waits for may end the process, on any rank. */
bool only_aborts(const struct outcome *o);

/* Marks those that ended the run; how many. */
u32 mark_culprits(struct outcome *o);

/* Whether a rank that is no culprit shows that it followed: it waited, lost a peer or was stopped.
 */
bool only_followed(const struct outcome *o, const struct ending *ending);

/* NULL if there is none. */
const struct ending *first_culprit(const struct outcome *o);

/* Whether no rank that only followed ended before this one. */
bool ended_first(const struct outcome *o, const struct ending *first);

/* The host of which all ranks, and nobody else, stopped without a word; NULL. */
const char *find_lost_host(const struct outcome *o);

/* "all_reduce 7 of dp", the last call of a rank that has one. */
char *words_of_last_call(const struct analysis *a, const struct ending *ending);

/* "Rank 3 ended first in step 7, waiting in …: …. Ranks 0-2 only followed." */
char *words_of_end(const struct outcome *o, const struct run_end *end);

/* Likewise where nobody is known to have ended the run: who had left before. */
char *words_of_unknown_end(const struct outcome *o);

/* What the calls show of a suspect; and what it was doing, if its stall is known, or where it was
 * last seen. */
char *words_of_suspect(struct arena *arena, const struct check_suspect *suspect);
char *words_with_stall(struct arena *arena, const char *words, const struct stalled_rank *stall);
char *words_with_last_seen(struct arena *arena, const char *words, const char *place);
