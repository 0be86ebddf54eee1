/* SPDX-License-Identifier: MIT
 *
 * Writes the rows of each table: what sqlite_schema.def says of its columns.
 */
#include <math.h>

#include "analyses/queries.h"
#include "report/sqlite/sqlite_run.h"
#define SCHEMA_FILE "report/sqlite/sqlite_schema.def"
#include "base/sqlite_schema.h"

int sqlite_open(struct sqlite_writer *writer, const char *path) {
  return sqlite_writer_open(writer, &schema, path);
}

/* NS_UNKNOWN for what is in no step. */
static i64 sqlite_step(const struct sqlite_run *run, i32 step) {
  return step < 0 ? NS_UNKNOWN : (i64)run->scope.results->model->steps.first + step;
}

static i64 sqlite_collective_id(const struct sqlite_run *run, u32 collective) {
  return collective == INDEX_NONE ? NS_UNKNOWN : (i64)(run->collectives + collective + 1);
}

#define TABLE(name, what, ...)                                                                     \
  void sqlite_put_##name(struct sqlite_run *run, ##__VA_ARGS__) {                                  \
    __attribute__((unused)) const struct results *r = run->scope.results;                          \
    __attribute__((unused)) const struct model *model = r->model;                                  \
    struct sqlite_row row = sqlite_row(run->writer, SCHEMA_TABLE_##name);
#define COLUMN(name, type, what, kind, value) sqlite_##kind(&row, value);
#define END_TABLE                                                                                  \
  sqlite_end(&row);                                                                                \
  }
#include "report/sqlite/sqlite_schema.def"
