/* SPDX-License-Identifier: MIT */
#include "base/sqlite_writer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/utf8.h"

/* "tscope": a reader can check this first. */
#define APPLICATION_ID "1953719120"

static void execute(struct sqlite_writer *w, const char *sql) {
  if (w->error == SQLITE_OK)
    w->error = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
}

static void make_table(struct sqlite_writer *w, u32 index) {
  const struct sqlite_table *table = &w->schema->tables[index];
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
  struct sqlite_row row = sqlite_row(w, w->schema->documentation);
  sqlite_word(&row, object);
  sqlite_word(&row, column);
  sqlite_word(&row, what);
  sqlite_end(&row);
}

static void document_all(struct sqlite_writer *w) {
  FOR_EACH(w->schema->tables, w->schema->n_tables, table) {
    document(w, table->name, NULL, table->what);
    FOR_EACH(table->columns, table->n, column)
      document(w, table->name, column->name, column->what);
  }
  FOR_EACH(w->schema->views, w->schema->n_views, view)
    document(w, view->name, NULL, view->what);
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

int sqlite_writer_open(struct sqlite_writer *w, const struct sqlite_schema *schema,
                       const char *path) {
  *w = (struct sqlite_writer){.schema = schema,
                              .batches = memory_zeroed(schema->n_tables, sizeof(*w->batches))};
  /* Calls come from one thread at a time: no locks inside, and no counts of memory. */
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  w->error = sqlite3_open_v2(path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix-none");
  /* The file is built once and then moved into place. There is nothing to go back to and nobody
   * else uses it, so it needs no journal and no locks, which shared file systems often lack. */
  execute(w, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
             "PRAGMA page_size = 8192; PRAGMA cache_size = -65536;"
             "PRAGMA application_id = " APPLICATION_ID "; PRAGMA user_version = 1; BEGIN");
  if (w->error == SQLITE_OK)
    w->error = sqlite_batch_register(w);
  for (u32 i = 0; i < schema->n_tables; i++)
    make_table(w, i);
  FOR_EACH(schema->views, schema->n_views, view) {
    SCOPED char *create = memory_printf("CREATE VIEW %s AS %s", view->name, view->select);
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

int sqlite_writer_close(struct sqlite_writer *w, const char *indices) {
  FOR_EACH_CHANGED(w->batches, w->schema->n_tables, batch)
    flush(w, batch);
  execute(w, indices);
  execute(w, "COMMIT");
  FOR_EACH_CHANGED(w->batches, w->schema->n_tables, batch) {
    sqlite3_finalize(batch->insert);
    arena_release(&batch->text);
    free(batch->values);
  }
  free(w->batches);
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
