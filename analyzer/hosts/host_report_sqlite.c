/* SPDX-License-Identifier: MIT
 *
 * The report on hosts as a database (docs/hosts.md).
 */
#include "hosts/host_report.h"

#define SCHEMA_FILE "hosts/host_schema.def"
#include "base/sqlite_schema.h"

static const struct run_record *run_of(const struct host_report *report, u32 run) {
  return &report->records->runs.at[run];
}

#define TABLE(name, what, ...)                                                                     \
  __attribute__((unused)) static void put_##name(                                                  \
      struct sqlite_writer *writer, const struct host_report *report, ##__VA_ARGS__) {             \
    (void)report;                                                                                  \
    struct sqlite_row row = sqlite_row(writer, SCHEMA_TABLE_##name);
#define COLUMN(name, type, what, kind, value) sqlite_##kind(&row, value);
#define END_TABLE                                                                                  \
  sqlite_end(&row);                                                                                \
  }
#include "hosts/host_schema.def"

int host_report_sqlite(const struct host_report *report, const char *path) {
  struct sqlite_writer writer;
  sqlite_writer_open(&writer, &schema, path);
  EACH_EFFECT(report, measure, effect)
  put_effects(&writer, report, measure, effect);
  FOR_EACH(report->lost.at, report->lost.n, lost)
    put_lost(&writer, report, lost);
  FOR_EACH(report->trends.at, report->trends.n, trend)
    for (u32 i = 0; i < trend->stretches.n; i++)
      put_trends(&writer, report, trend, i, &trend->stretches.at[i]);
  return sqlite_writer_close(&writer, "");
}
