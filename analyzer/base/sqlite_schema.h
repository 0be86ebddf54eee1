/* SPDX-License-Identifier: MIT
 *
 * Makes of the file that SCHEMA_FILE names, written as sqlite_columns.def says, `schema_tables`
 * and `schema_views` for a struct sqlite_schema.
 */
#include "base/sqlite_writer.h"

#define TABLE(name, ...) static const struct sqlite_column columns_##name[] = {
#define COLUMN(name, type, what, kind, value) {#name, type, what},
#define END_TABLE                                                                                  \
  }                                                                                                \
  ;
#include SCHEMA_FILE

static const struct sqlite_table schema_tables[] = {
#define TABLE(name, what, ...) {#name, what, columns_##name, LENGTH_OF(columns_##name)},
#include SCHEMA_FILE
};

static const struct sqlite_view schema_views[] = {
#define VIEW(name, what, select) {#name, what, select},
#include SCHEMA_FILE
};
