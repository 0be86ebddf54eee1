/* SPDX-License-Identifier: MIT
 *
 * The run as an SQLite database: the whole run's ranks, steps and collectives, and what ran in the
 * steps shown. The tables are in sqlite_schema.def; see docs/outputs/sqlite.md.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "diff/diff_result.h"
#include "report/report.h"
#include "report/sqlite/sqlite_run.h"

/* Bytes of a row, about, and rows that a record of the input makes. */
#define BYTES_PER_ROW 60.0
#define ROWS_PER_RECORD 2.0

/* What joins need in addition to the primary keys. */
static const char indices[] = "CREATE INDEX members_by_collective ON members(collective);"
                              "CREATE INDEX steps_by_step ON steps(run, step);";

/* Of the whole run: steps, collectives and their members. */
static double rows_of_facts(const struct model *model) {
  return (double)model->n_arrivals + model->n_collectives + (double)model->steps.n * model->n_ranks;
}

static void mark_shown(struct sqlite_run *run) {
  const struct model *model = run->scope.results->model;
  run->shown_steps = arena_array(&run->scope.arena, model->steps.n, sizeof(bool));
  run->shown_ranks = arena_array(&run->scope.arena, model->n_ranks, sizeof(bool));
  FOR_EACH(run->scope.steps, run->scope.n_steps, step)
    run->shown_steps[step->step] = true;
  for (u32 i = 0; i < run->scope.n_ranks && run->scope.source == SHOWN_TIMELINES; i++)
    run->shown_ranks[run->scope.ranks[i]] = true;
}

static int write_run(struct sqlite_run *run, const struct results *results,
                     const struct report_view *view, double bytes) {
  double rows = bytes / BYTES_PER_ROW, facts = rows_of_facts(results->model);
  bool too_many = facts > rows / 2; /* then those of the steps shown, which are few */
  double detail = too_many ? rows / 2 : rows - facts;
  struct shown_request request = {.all_steps = INFINITY,
                                  .most_events = detail / ROWS_PER_RECORD,
                                  SAME(view, ranks, steps_requested, threads)};
  run->limit = (double)run->writer->rows + rows;
  shown_choose(results, &request, &run->scope);
  int error = 0;
  mark_shown(run);
  run->ring_only = run->scope.n_steps && too_many;
  sqlite_write_facts(run);
  error = sqlite_write_detail(run);
  if (!error)
    sqlite_write_left_out(run);
  return error;
}

static int write_runs(const struct results *const *results, u32 n, const struct report_view *view) {
  struct sqlite_writer writer;
  struct text_numbers names = {0};
  u64 comms = 0, collectives = 0, spans = 0;
  if (!view->building)
    return -ENODATA;
  int error = sqlite_open(&writer, view->building);
  for (u32 i = 0; i < n && !error; i++) {
    struct sqlite_run run = {.writer = &writer,
                             .names = &names,
                             .run = i + 1,
                             .comms = comms,
                             .collectives = collectives,
                             .spans = &spans};
    error = write_run(&run, results[i], view, view->limit_bytes / n);
    comms += results[i]->model->n_comms;
    collectives += results[i]->model->n_collectives;
    shown_release(&run.scope);
  }
  int closed = sqlite_writer_close(&writer, indices);
  text_numbers_free(&names);
  return closed && (!error || error == -EIO) ? closed : error;
}

static int write_one(const struct results *results, const struct report_view *view, FILE *out) {
  (void)out;
  return write_runs(&results, 1, view);
}

/* Every run of both sides, the earlier ones first. */
static int write_all(const struct results *results, const struct report_view *view, FILE *out) {
  const struct diff_result *diff = results->diff;
  u32 n_before = (u32)diff->runs_before, n = n_before + (u32)diff->runs_after;
  SCOPED const struct results **all = memory_zeroed(n, sizeof(*all));
  (void)out;
  for (u32 i = 0; i < n; i++)
    all[i] = i < n_before ? diff->earlier_all[i] : diff->later_all[i - n_before];
  return write_runs(all, n, view);
}

const struct report_backend report_sqlite = {
    .write = write_one,
    .write_diff = write_all,
    .no_data = "a database is a file: give its name with --output",
    .binary = true};
