/* SPDX-License-Identifier: MIT */
#include "report/sqlite/sqlite_writer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/utf8.h"

/* "tscope", and the version of the schema: a reader can check these first. */
#define APPLICATION_ID "1953719120"
#define SCHEMA_VERSION "1"

struct column {
  const char *name, *type, *what;
};

#define TABLE(name, ...) static const struct column columns_##name[] = {
#define COLUMN(name, type, what, kind, value) {#name, type, what},
#define END_TABLE                                                                                  \
  }                                                                                                \
  ;
#include "report/sqlite/sqlite_schema.def"

static const struct table {
  const char *name, *what;
  const struct column *columns;
  u32 n;
} tables[] = {
#define TABLE(name, what, ...) {#name, what, columns_##name, LENGTH_OF(columns_##name)},
#include "report/sqlite/sqlite_schema.def"
};

static const struct view {
  const char *name, *what, *select;
} views[] = {
#define VIEW(name, what, select) {#name, what, select},
#include "report/sqlite/sqlite_schema.def"
};

static void execute(struct sqlite_writer *w, const char *sql) {
  if (w->error == SQLITE_OK)
    w->error = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
}

static void make_table(struct sqlite_writer *w, u32 index) {
  const struct table *table = &tables[index];
  struct sqlite_batch *batch = &w->batches[index];
  char create[4096], insert[512];
  int c = snprintf(create, sizeof(create), "CREATE TABLE %s(", table->name);
  int i = snprintf(insert, sizeof(insert), "INSERT INTO %s SELECT ", table->name);
  for (u32 k = 0; k < table->n; k++) {
    bool last = k + 1 == table->n;
    c += snprintf(create + c, sizeof(create) - (size_t)c, "%s %s%s", table->columns[k].name,
                  table->columns[k].type, last ? ")" : ", ");
    i += snprintf(insert + i, sizeof(insert) - (size_t)i, "c%u%s", k, last ? " FROM batch" : ", ");
  }
  batch->columns = table->n;
  batch->values = memory_zeroed(size_product(SQLITE_BATCH_ROWS, table->n), sizeof(*batch->values));
  execute(w, create);
  if (w->error == SQLITE_OK)
    w->error =
        sqlite3_prepare_v3(w->db, insert, -1, SQLITE_PREPARE_PERSISTENT, &batch->insert, NULL);
}

/* The database explains itself to a reader who has nothing else. */
static void document(struct sqlite_writer *w, const char *object, const char *column,
                     const char *what) {
  struct sqlite_row row = sqlite_row(w, SQLITE_TABLE_documentation);
  sqlite_word(&row, object);
  sqlite_word(&row, column);
  sqlite_word(&row, what);
  sqlite_end(&row);
}

static void document_all(struct sqlite_writer *w) {
  for (u32 i = 0; i < SQLITE_TABLE_COUNT; i++) {
    document(w, tables[i].name, NULL, tables[i].what);
    for (u32 k = 0; k < tables[i].n; k++)
      document(w, tables[i].name, tables[i].columns[k].name, tables[i].columns[k].what);
  }
  for (u32 i = 0; i < LENGTH_OF(views); i++)
    document(w, views[i].name, NULL, views[i].what);
}

static int errno_of(int error) {
  switch (error & 0xff) {
  case SQLITE_OK:
    return 0;
  case SQLITE_NOMEM:
    memory_is_short(1, 1);
  case SQLITE_FULL:
    return -ENOSPC;
  case SQLITE_CANTOPEN:
  case SQLITE_PERM:
    return -EACCES;
  case SQLITE_TOOBIG:
    return -E2BIG;
  default:
    return -EIO;
  }
}

int sqlite_writer_open(struct sqlite_writer *w, const char *path) {
  *w = (struct sqlite_writer){.db = NULL};
  /* Calls come from one thread at a time: no locks inside, and no counts of memory. */
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  w->error = sqlite3_open_v2(path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix-none");
  /* The file is built once and then moved into place. There is nothing to go back to and nobody
   * else uses it, so it needs no journal and no locks, which shared file systems often lack. */
  execute(w, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
             "PRAGMA page_size = 8192; PRAGMA cache_size = -65536;"
             "PRAGMA application_id = " APPLICATION_ID "; PRAGMA user_version = " SCHEMA_VERSION ";"
             "BEGIN");
  if (w->error == SQLITE_OK)
    w->error = sqlite_batch_register(w);
  for (u32 i = 0; i < SQLITE_TABLE_COUNT; i++)
    make_table(w, i);
  for (u32 i = 0; i < LENGTH_OF(views); i++) {
    char create[2048];
    snprintf(create, sizeof(create), "CREATE VIEW %s AS %s", views[i].name, views[i].select);
    execute(w, create);
  }
  if (w->error == SQLITE_OK)
    document_all(w);
  return errno_of(w->error);
}

static void flush(struct sqlite_writer *w, struct sqlite_batch *batch) {
  if (batch->rows == 0 || w->error != SQLITE_OK)
    return;
  w->feeding = batch;
  int stepped = sqlite3_step(batch->insert);
  int reset = sqlite3_reset(batch->insert);
  if (stepped != SQLITE_DONE)
    w->error = reset != SQLITE_OK ? reset : SQLITE_ERROR;
  arena_release(&batch->text);
  batch->rows = 0;
}

int sqlite_writer_close(struct sqlite_writer *w) {
  for (u32 i = 0; i < SQLITE_TABLE_COUNT; i++)
    flush(w, &w->batches[i]);
  /* What joins need in addition to the primary keys. */
  execute(w, "CREATE INDEX members_by_collective ON members(collective);"
             "CREATE INDEX steps_by_step ON steps(run, step);"
             "COMMIT");
  for (u32 i = 0; i < SQLITE_TABLE_COUNT; i++) {
    sqlite3_finalize(w->batches[i].insert);
    arena_release(&w->batches[i].text);
    free(w->batches[i].values);
  }
  arena_release(&w->shared_texts);
  int closed = sqlite3_close(w->db);
  return errno_of(w->error != SQLITE_OK ? w->error : closed);
}

void sqlite_real(struct sqlite_row *row, double value) {
  if (isfinite(value))
    *row->next++ = (struct sqlite_value){.real = value, .kind = SQLITE_VALUE_REAL};
  else
    sqlite_null(row);
}

void sqlite_rounded(struct sqlite_row *row, double value) {
  if (isfinite(value) && fabs(value) < 9e18)
    sqlite_int(row, llround(value));
  else
    sqlite_null(row);
}

static const char *valid_text(struct arena *arena, const char *text) {
  SCOPED char *valid = text ? utf8_valid_copy(text) : NULL;
  return valid ? arena_text(arena, valid) : NULL;
}

void sqlite_text(struct sqlite_row *row, const char *text) {
  sqlite_word(row, valid_text(&row->batch->text, text));
}

const char *sqlite_shared(struct sqlite_writer *w, const char *text) {
  return valid_text(&w->shared_texts, text);
}

void sqlite_static_text(struct sqlite_row *row, const char *text) {
  bool ascii = true;
  for (const char *at = text; at && *at && ascii; at++)
    ascii = !(*at & 0x80);
  if (ascii)
    sqlite_word(row, text);
  else
    sqlite_text(row, text);
}

void sqlite_end(struct sqlite_row *row) {
  row->writer->rows++;
  if (row->writer->error == SQLITE_OK && ++row->batch->rows == SQLITE_BATCH_ROWS)
    flush(row->writer, row->batch);
}
