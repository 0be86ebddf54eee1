/* SPDX-License-Identifier: MIT
 *
 * One run in the database: sqlite_facts.c writes facts about the whole run, sqlite_detail.c what
 * ran in the steps that are shown.
 */
#ifndef TSCOPE_SQLITE_RUN_H
#define TSCOPE_SQLITE_RUN_H

#include "analyses/analysis.h"
#include "base/vector.h"
#include "report/sqlite/sqlite_writer.h"
#include "report/timeline/shown.h"

/* Names that are in the database, by their text. */
struct sqlite_names {
  struct arena arena;
  const char **known; /* whole names; the id is the place + 1 */
  u32 *slots;         /* open addressing: id */
  u32 n, room, n_slots;
};

struct sqlite_run {
  struct sqlite_writer *writer;
  struct sqlite_names *names;
  struct shown_scope scope;
  u32 run;   /* 1 or 2 */
  u64 comms; /* added to the model's indices, for ids of both runs */
  u64 collectives;
  u64 *spans;   /* ids that calls and work have, counted over both runs */
  double limit; /* rows of calls and work, less those that are there */
  u32 ranks_left_out;
  bool ring_only;    /* collectives of the shown steps only: all of them would be too many */
  bool *shown_steps; /* [steps.n] */
  bool *shown_ranks; /* [n_ranks] */
};

/* Each 0, or negative errno. */
void sqlite_write_facts(struct sqlite_run *run);
int sqlite_write_detail(struct sqlite_run *run);

/* What was left out, once all is written. */
void sqlite_write_left_out(struct sqlite_run *run);

/* The id of a name, which is added if it is new. */
i64 sqlite_name(struct sqlite_writer *writer, struct sqlite_names *names,
                const struct shown_name *name);
void sqlite_names_release(struct sqlite_names *names);

#endif
