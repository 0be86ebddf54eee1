/* SPDX-License-Identifier: MIT
 *
 * Rows into the tables of sqlite_schema.def. A row is written column by column in the order of the
 * schema:
 *
 *   struct sqlite_row row = sqlite_row(writer, SQLITE_STEPS);
 *   sqlite_int(&row, ...); ... sqlite_end(&row);
 *
 * The first error is kept and nothing is written after it.
 */
#ifndef TSCOPE_SQLITE_WRITER_H
#define TSCOPE_SQLITE_WRITER_H

#include <sqlite3.h>
#include <stdbool.h>

#include "model/model.h"
#include "report/sqlite/sqlite_schema.def"

#define T(name, what) SQLITE_TABLE_##name,
enum sqlite_table { TSCOPE_SQLITE_TABLES(T) SQLITE_TABLE_COUNT };
#undef T

struct sqlite_writer {
  sqlite3 *db;
  sqlite3_stmt *inserts[SQLITE_TABLE_COUNT];
  u64 rows;
  int error; /* of SQLite, SQLITE_OK */
};

struct sqlite_row {
  struct sqlite_writer *writer;
  sqlite3_stmt *insert;
  int column;
};

/* Makes the tables and views in the empty file at `path`. 0, or negative errno with the reason in
 * `why`; close it in any case. */
int sqlite_writer_open(struct sqlite_writer *writer, const char *path);

/* Makes the indices and ends. 0, or negative errno. */
int sqlite_writer_close(struct sqlite_writer *writer);

static inline struct sqlite_row sqlite_row(struct sqlite_writer *writer, enum sqlite_table table) {
  return (struct sqlite_row){.writer = writer, .insert = writer->inserts[table]};
}

static inline void sqlite_null(struct sqlite_row *row) {
  sqlite3_bind_null(row->insert, ++row->column);
}

static inline void sqlite_int(struct sqlite_row *row, i64 value) {
  sqlite3_bind_int64(row->insert, ++row->column, value);
}

/* NULL for NS_UNKNOWN. */
static inline void sqlite_ns(struct sqlite_row *row, i64 ns) {
  if (ns == NS_UNKNOWN)
    sqlite_null(row);
  else
    sqlite_int(row, ns);
}

/* NULL for INDEX_NONE. */
static inline void sqlite_index(struct sqlite_row *row, u32 index) {
  if (index == INDEX_NONE)
    sqlite_null(row);
  else
    sqlite_int(row, index);
}

/* NULL for NAN and infinities. */
void sqlite_real(struct sqlite_row *row, double value);

/* Rounded; NULL likewise. */
void sqlite_rounded(struct sqlite_row *row, double value);

/* NULL for NULL. Text that is no UTF-8 gets replacement characters. */
void sqlite_text(struct sqlite_row *row, const char *text);

/* Text of the program's own, which is valid and stays. */
static inline void sqlite_word(struct sqlite_row *row, const char *word) {
  sqlite3_bind_text(row->insert, ++row->column, word, -1, SQLITE_STATIC);
}

/* Puts the row into the table. */
void sqlite_end(struct sqlite_row *row);

#endif
