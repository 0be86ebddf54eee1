/* SPDX-License-Identifier: MIT
 *
 * Whether the ranks of a job called the same collectives, and who holds it up if it hangs: a part
 * of struct results. It comes from flight-recorder dumps, or from traces of a run that did not end.
 */
#pragma once

#include <stdbool.h>

#include "analyses/results/words.h"
#include "format/tscope_format.h"

struct flight_record;

enum { CHECK_WAITS_LISTED = 60 };

/* What the calls show of a suspect, by its reason; outcome/outcome_words.c makes a sentence of it.
 */
struct suspect_facts {
  const char *call, *before; /* "all_reduce 7 of dp (group 3)"; that it makes before another */
  const char *others;        /* "ranks 0-2": that wait in the call, or that it waits for */
  u32 n_others;
  u32 some, all;      /* ranks of which the same is so, and of which it could be */
  i64 last_called;    /* sequence number; SEQ_UNKNOWN */
  const char *where;  /* where its own record saw it; NULL */
  const char *detail; /* how its call differs from the others' */
  bool two_threads;   /* make the two calls */
};

#define RESULT_TABLE "analyses/hang/check_result.def"
#include "analyses/results/result_structs.h"
