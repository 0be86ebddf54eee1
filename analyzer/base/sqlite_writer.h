/* SPDX-License-Identifier: MIT
 *
 * Rows into the tables of a database, column by column in the order of its schema. The first error
 * is kept and nothing is written after it.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/intervals.h"

/* Made by sqlite_schema.h. */
struct sqlite_schema {
  const struct sqlite_table {
    const char *name, *what;
    const struct sqlite_column { const char *name, *type, *what; } * columns;
    u32 n;
  } * tables;
  const struct sqlite_view { const char *name, *what, *select; } * views;
  u32 n_tables, n_views;
  u32 documentation; /* the table in which the database explains itself */
};

enum sqlite_value_kind {
  SQLITE_VALUE_NULL,
  SQLITE_VALUE_INT,
  SQLITE_VALUE_REAL,
  SQLITE_VALUE_TEXT
};

struct sqlite_value {
  union {
    i64 integer;
    double real;
    const char *text;
  };
  enum sqlite_value_kind kind;
};

/* Rows of one table before they are written: the library takes many at a time (sqlite_batch.c). */
enum { SQLITE_BATCH_ROWS = 1024 };
struct sqlite_batch {
  sqlite3_stmt *insert;
  struct sqlite_value *values; /* [SQLITE_BATCH_ROWS * columns] */
  struct arena text;
  u32 rows, columns;
};

struct sqlite_writer {
  sqlite3 *db;
  const struct sqlite_schema *schema;
  struct sqlite_batch *batches; /* [schema->n_tables] */
  struct sqlite_batch *feeding; /* that the library reads now */
  struct arena shared_texts;    /* of many rows */
  u64 rows;
  int error; /* of SQLite, SQLITE_OK */
};

struct sqlite_row {
  struct sqlite_writer *writer;
  struct sqlite_batch *batch;
  struct sqlite_value *next;
};

/* Makes the tables and views in the empty file at `path`. 0, or negative errno; close it in any
 * case. */
int sqlite_writer_open(struct sqlite_writer *writer, const struct sqlite_schema *schema,
                       const char *path);

/* sqlite_batch.c: a virtual table with the rows of writer->feeding. Returns a SQLite error. */
int sqlite_batch_register(struct sqlite_writer *writer);

/* Executes "CREATE INDEX" and ends. 0, or negative errno. */
int sqlite_writer_close(struct sqlite_writer *writer, const char *indices);

static inline struct sqlite_row sqlite_row(struct sqlite_writer *writer, u32 table) {
  struct sqlite_batch *batch = &writer->batches[table];
  return (struct sqlite_row){writer, batch, batch->values + (size_t)batch->rows * batch->columns};
}

static inline void sqlite_null(struct sqlite_row *row) {
  (row->next++)->kind = SQLITE_VALUE_NULL;
}

static inline void sqlite_int(struct sqlite_row *row, i64 value) {
  *row->next++ = (struct sqlite_value){.integer = value, .kind = SQLITE_VALUE_INT};
}

static inline void sqlite_flag(struct sqlite_row *row, bool value) {
  sqlite_int(row, value);
}

/* NULL for NS_UNKNOWN. */
static inline void sqlite_ns(struct sqlite_row *row, i64 ns) {
  if (ns == NS_UNKNOWN)
    sqlite_null(row);
  else
    sqlite_int(row, ns);
}

/* NULL for 0. */
static inline void sqlite_positive(struct sqlite_row *row, i64 value) {
  if (value)
    sqlite_int(row, value);
  else
    sqlite_null(row);
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

/* NULL for NULL. Text that is not UTF-8 gets replacement characters. */
void sqlite_text(struct sqlite_row *row, const char *text);

/* The program's own text, which is valid and stays in memory; NULL for NULL. */
static inline void sqlite_word(struct sqlite_row *row, const char *word) {
  *row->next++ =
      (struct sqlite_value){.text = word, .kind = word ? SQLITE_VALUE_TEXT : SQLITE_VALUE_NULL};
}

/* Text that may not be UTF-8, but stays in memory until the database is closed. */
void sqlite_static_text(struct sqlite_row *row, const char *text);

/* A copy of text for sqlite_word(), for texts that many rows share; NULL for NULL. */
const char *sqlite_shared(struct sqlite_writer *writer, const char *text);

/* Puts the row into the table. */
void sqlite_end(struct sqlite_row *row);
