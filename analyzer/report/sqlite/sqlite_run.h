/* SPDX-License-Identifier: MIT
 *
 * One run in the database: sqlite_facts.c finds facts about the whole run, sqlite_detail.c what ran
 * in the steps that are shown, and sqlite_rows.c writes both.
 */
#pragma once

#include "analyses/analysis.h"
#include "base/sqlite_writer.h"
#include "base/text_numbers.h"
#include "kernels/precision.h"
#include "model/flight_record.h"
#include "model/gemms.h"
#include "report/timeline/shown.h"

struct sqlite_run {
  struct sqlite_writer *writer;
  struct text_numbers *names; /* whole names that are in the database; the id is the number + 1 */
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

/* A step on one rank. */
struct step_row {
  u32 step, rank; /* indices */
  struct window window;
  i64 host_begin, host_end; /* NS_UNKNOWN */
  double compute_ms;        /* NAN */
  struct phase_times phases;
};

/* When a collective's members began, and who was ready last. NS_UNKNOWN, INDEX_NONE. */
struct member_order {
  i64 first, last, end;
  i64 last_by; /* as in struct last_member */
  u32 last_rank;
};

/* Work on a GPU, beside what its span says. */
struct work_row {
  const char *kind;
  i64 launch;     /* id of the call; NS_UNKNOWN */
  double flops;   /* NAN */
  u32 collective; /* index; INDEX_NONE */
};

/* As sqlite_writer_open(), with the tables of a report. */
int sqlite_open(struct sqlite_writer *writer, const char *path);

/* sqlite_put_steps(run, row) and so on: each writes a row of a table. */
#define TABLE(name, what, ...) void sqlite_put_##name(struct sqlite_run *run, ##__VA_ARGS__);
#include "report/sqlite/sqlite_schema.def"

/* Each 0, or negative errno. */
void sqlite_write_facts(struct sqlite_run *run);
int sqlite_write_detail(struct sqlite_run *run);

/* What was left out, once all is written. */
void sqlite_write_left_out(struct sqlite_run *run);
