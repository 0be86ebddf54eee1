/* SPDX-License-Identifier: MIT
 *
 * Rows for the library: a virtual table [sqlite.org/vtab.html] named `batch` with the rows of
 * writer->feeding, so that INSERT ... SELECT writes many at a time. One statement for each row
 * would take twice as long.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/sqlite_writer.h"

enum { MOST_COLUMNS = 32 };

struct batch_table {
  sqlite3_vtab base;
  struct sqlite_writer *writer;
};

struct batch_cursor {
  sqlite3_vtab_cursor base;
  const struct sqlite_batch *batch;
  u32 row;
};

static int connect_batch(sqlite3 *db, void *writer, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **why) {
  (void)argc, (void)argv, (void)why;
  char create[512];
  int n = snprintf(create, sizeof(create), "CREATE TABLE x(c0");
  for (int i = 1; i < MOST_COLUMNS; i++)
    n += snprintf(create + n, sizeof(create) - (size_t)n, ", c%d", i);
  snprintf(create + n, sizeof(create) - (size_t)n, ")");
  struct batch_table *table = memory_zeroed(1, sizeof(*table));
  table->writer = writer;
  *out = &table->base;
  return sqlite3_declare_vtab(db, create);
}

static int disconnect_batch(sqlite3_vtab *table) {
  free(table);
  return SQLITE_OK;
}

/* Always read from the first row to the last. */
static int choose_plan(sqlite3_vtab *table, sqlite3_index_info *info) {
  (void)table;
  info->estimatedCost = SQLITE_BATCH_ROWS;
  return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
  (void)table;
  struct batch_cursor *cursor = memory_zeroed(1, sizeof(*cursor));
  *out = &cursor->base;
  return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor) {
  free(cursor);
  return SQLITE_OK;
}

static int first_row(sqlite3_vtab_cursor *base, int number, const char *name, int argc,
                     sqlite3_value **argv) {
  (void)number, (void)name, (void)argc, (void)argv;
  struct batch_cursor *cursor = (struct batch_cursor *)base;
  cursor->batch = ((struct batch_table *)base->pVtab)->writer->feeding;
  cursor->row = 0;
  return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base) {
  ((struct batch_cursor *)base)->row++;
  return SQLITE_OK;
}

static int is_past_the_end(sqlite3_vtab_cursor *base) {
  const struct batch_cursor *cursor = (const struct batch_cursor *)base;
  return !cursor->batch || cursor->row >= cursor->batch->rows;
}

static int return_column(sqlite3_vtab_cursor *base, sqlite3_context *to, int column) {
  const struct batch_cursor *cursor = (const struct batch_cursor *)base;
  const struct sqlite_value *value =
      &cursor->batch->values[(size_t)cursor->row * cursor->batch->columns + (u32)column];
  switch (value->kind) {
  case SQLITE_VALUE_INT:
    sqlite3_result_int64(to, value->integer);
    break;
  case SQLITE_VALUE_REAL:
    sqlite3_result_double(to, value->real);
    break;
  case SQLITE_VALUE_TEXT:
    sqlite3_result_text(to, value->text, -1, SQLITE_STATIC);
    break;
  default:
    sqlite3_result_null(to);
  }
  return SQLITE_OK;
}

static int return_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row) {
  *row = ((struct batch_cursor *)base)->row;
  return SQLITE_OK;
}

int sqlite_batch_register(struct sqlite_writer *writer) {
  static const sqlite3_module module = {.xConnect =
                                            connect_batch, /* no xCreate: it is just there */
                                        .xBestIndex = choose_plan,
                                        .xDisconnect = disconnect_batch,
                                        .xOpen = open_cursor,
                                        .xClose = close_cursor,
                                        .xFilter = first_row,
                                        .xNext = next_row,
                                        .xEof = is_past_the_end,
                                        .xColumn = return_column,
                                        .xRowid = return_rowid};
  return sqlite3_create_module(writer->db, "batch", &module, writer);
}
