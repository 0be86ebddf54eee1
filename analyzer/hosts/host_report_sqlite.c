/* SPDX-License-Identifier: MIT
 *
 * The report on hosts as a database: tables effects, lost and trends (docs/hosts.md).
 */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>

#include "hosts/host_report.h"

#define RUNS " first_run TEXT, first_began_s REAL, last_run TEXT, last_began_s REAL,"
static const char schema[] =
    "PRAGMA journal_mode = OFF; BEGIN;"
    "CREATE TABLE effects(kind TEXT, name TEXT, effect REAL, low REAL, high REAL, runs INTEGER,"
    " of_runs INTEGER," RUNS " began_later INTEGER, is_over INTEGER, p_value REAL);"
    "CREATE TABLE lost(name TEXT, lost INTEGER, of_runs INTEGER, expected REAL, p_value REAL);"
    "CREATE TABLE trends(job TEXT, stretch INTEGER," RUNS " runs INTEGER, step_ms REAL);";

/* `values`: t for text, i for int, r for double, which is NULL if it is no number. */
static int insert(sqlite3 *db, const char *sql, const char *values, ...) {
  sqlite3_stmt *row;
  va_list list;
  int error = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
  va_start(list, values);
  for (int i = 1; *values && error == SQLITE_OK; values++, i++) {
    if (*values == 't') {
      error = sqlite3_bind_text(row, i, va_arg(list, const char *), -1, SQLITE_STATIC);
    } else if (*values == 'i') {
      error = sqlite3_bind_int(row, i, va_arg(list, int));
    } else {
      double value = va_arg(list, double);
      error = isfinite(value) ? sqlite3_bind_double(row, i, value) : SQLITE_OK;
    }
  }
  va_end(list);
  if (error == SQLITE_OK && sqlite3_step(row) != SQLITE_DONE)
    error = sqlite3_errcode(db);
  sqlite3_finalize(row);
  return error;
}

static int insert_effect(sqlite3 *db, const struct host_report *report, enum host_measure measure,
                         const struct effect *effect) {
  const struct run_record *first = &report->records->runs.at[effect->first];
  const struct run_record *last = &report->records->runs.at[effect->last];
  return insert(db, "INSERT INTO effects VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", "ttrrriitrtriir",
                host_measures[measure].word, host_effect_unit(report, measure, effect->unit),
                host_effect_share(measure, effect->size), host_effect_share(measure, effect->low),
                host_effect_share(measure, effect->high), (int)effect->runs, (int)effect->unit_runs,
                first->name, first->began_s, last->name, last->began_s, (int)effect->begins,
                (int)effect->ends, effect->probability);
}

static int insert_lost(sqlite3 *db, const struct host_report *report,
                       const struct lost_host *lost) {
  return insert(db, "INSERT INTO lost VALUES(?,?,?,?,?)", "tiirr",
                report->records->hosts.texts.at[lost->host], (int)lost->lost, (int)lost->runs,
                lost->expected, lost->probability);
}

static int insert_trend(sqlite3 *db, const struct host_report *report,
                        const struct job_trend *trend) {
  int error = SQLITE_OK;
  for (u32 i = 0; i < trend->stretches.n && error == SQLITE_OK; i++) {
    const struct trend_stretch *one = &trend->stretches.at[i];
    const struct run_record *first = &report->records->runs.at[one->first];
    const struct run_record *last = &report->records->runs.at[one->last];
    error = insert(db, "INSERT INTO trends VALUES(?,?,?,?,?,?,?,?)", "titrtrir",
                   report->records->jobs.texts.at[trend->job], (int)i, first->name, first->began_s,
                   last->name, last->began_s, (int)one->runs, one->step_ms);
  }
  return error;
}

static int insert_all(sqlite3 *db, const struct host_report *report) {
  int error = sqlite3_exec(db, schema, NULL, NULL, NULL);
  EACH_EFFECT(report, measure, effect)
  if (error == SQLITE_OK)
    error = insert_effect(db, report, measure, effect);
  for (u32 i = 0; i < report->lost.n && error == SQLITE_OK; i++)
    error = insert_lost(db, report, &report->lost.at[i]);
  for (u32 i = 0; i < report->trends.n && error == SQLITE_OK; i++)
    error = insert_trend(db, report, &report->trends.at[i]);
  return error == SQLITE_OK ? sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) : error;
}

int host_report_sqlite(const struct host_report *report, const char *path) {
  sqlite3 *db = NULL;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  int error = sqlite3_open_v2(path, &db, flags, NULL);
  if (error == SQLITE_OK)
    error = insert_all(db, report);
  sqlite3_close(db);
  return error == SQLITE_OK ? 0 : error == SQLITE_FULL ? -ENOSPC : -EIO;
}
